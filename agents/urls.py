"""Route the pages of the chat."""

from django.urls import path

from agents import views

urlpatterns = [
    path("", views.home, name="home"),
    path("healthz", views.healthz, name="healthz"),
    path("sign-in/", views.sign_in, name="sign-in"),
    path("sign-out/", views.sign_out, name="sign-out"),
    path("chat/", views.threads, name="threads"),
    path("chat/new", views.new_thread, name="new-thread"),
    path("chat/<uuid:thread_id>/", views.chat, name="chat"),
    path("chat/<uuid:thread_id>/send", views.send, name="send"),
    path("chat/<uuid:thread_id>/stop", views.stop, name="stop"),
    path("chat/<uuid:thread_id>/turns/<int:number>/withdraw", views.withdraw, name="withdraw"),
    path("chat/<uuid:thread_id>/turns/<int:number>/retry", views.retry, name="retry"),
    path("chat/<uuid:thread_id>/regions", views.regions, name="regions"),
    path("chat/<uuid:thread_id>/earlier", views.earlier, name="earlier"),
]
