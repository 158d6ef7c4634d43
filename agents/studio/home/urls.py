"""Route the home page."""

from django.urls import path

from . import seen_as, views

urlpatterns = [
    path("", views.home, name="home"),
    path("as/<str:username>/", seen_as.seen_as, name="seen-as"),
    path("demo", views.load_demo, name="load-demo"),
]
