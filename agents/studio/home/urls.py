"""Route the home page."""

from django.urls import path

from . import views

urlpatterns = [
    path("", views.home, name="home"),
    path("demo", views.load_demo, name="load-demo"),
]
