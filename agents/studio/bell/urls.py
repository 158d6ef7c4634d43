"""Route the bell."""

from django.urls import path

from . import views

urlpatterns = [
    path("", views.bell, name="bell"),
    path("mark", views.mark, name="bell-mark"),
    path("looked", views.looked, name="bell-looked"),
]
