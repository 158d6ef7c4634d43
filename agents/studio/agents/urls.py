"""Route the agents pages."""

from django.urls import path

from . import views

urlpatterns = [
    path("", views.overview, name="agents"),
    path("new/", views.new, name="agent-new"),
    path("new/test", views.try_out, name="agent-new-test"),
    path("<slug:slug>/", views.agent, name="agent"),
    path("<slug:slug>/copy", views.copy, name="agent-copy"),
    path("<slug:slug>/remove", views.remove, name="agent-remove"),
    path("<slug:slug>/test", views.try_out, name="agent-test"),
]
