"""Route the pages of the chat."""

from django.urls import path

from agents import acts, uploads, views

urlpatterns = [
    path("sign-in/", views.sign_in, name="sign-in"),
    path("sign-out/", views.sign_out, name="sign-out"),
    path("chat/<uuid:thread_id>/", views.chat, name="chat"),
    path("chat/<uuid:thread_id>/send", acts.send, name="send"),
    path("chat/<uuid:thread_id>/files", uploads.upload, name="upload"),
    path("chat/<uuid:thread_id>/files/<int:position>/<int:number>", uploads.show, name="file"),
    path("chat/<uuid:thread_id>/stop", acts.stop, name="stop"),
    path("chat/<uuid:thread_id>/turns/<int:number>/withdraw", acts.withdraw, name="withdraw"),
    path("chat/<uuid:thread_id>/turns/<int:number>/retry", acts.retry, name="retry"),
    path("chat/<uuid:thread_id>/again", acts.again, name="again"),
    path("chat/<uuid:thread_id>/fork", acts.fork, name="fork"),
    path("chat/<uuid:thread_id>/discard", acts.discard, name="discard"),
    path("chat/<uuid:thread_id>/operate/<slug:operation>", acts.operate, name="operate"),
    path("chat/<uuid:thread_id>/cycles/<uuid:cycle_id>/cancel", acts.cancel, name="cancel"),
    path("chat/<uuid:thread_id>/panel/", views.panel, name="panel"),
    path("chat/<uuid:thread_id>/regions", views.regions, name="regions"),
    path("chat/<uuid:thread_id>/earlier", views.earlier, name="earlier"),
]
