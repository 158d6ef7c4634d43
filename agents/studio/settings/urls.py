"""Route the settings pages."""

from django.urls import path

from . import moves, views

urlpatterns = [
    path("", views.overview, name="settings"),
    path("<uuid:thread_id>/", views.of_thread, name="settings-thread"),
    path("<uuid:thread_id>/preview", views.preview_of_thread),
    path("<uuid:thread_id>/back", views.back_of_thread),
    path("<uuid:thread_id>/test", views.try_of_thread),
    path("<uuid:thread_id>/scope/<str:to>", moves.of_scope, name="settings-scope"),
    path("<uuid:thread_id>/memory/<str:to>", moves.of_memory, name="settings-memory"),
    path("agents/<slug:slug>/", views.of_agent, name="settings-agent"),
    path("agents/<slug:slug>/preview", views.preview_of_agent),
    path("agents/<slug:slug>/back", views.back_of_agent),
    path("agents/<slug:slug>/test", views.try_of_agent),
]
