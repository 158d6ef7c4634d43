"""Route the timeline pages."""

from django.urls import path

from . import views

urlpatterns = [
    path("<uuid:thread_id>/", views.timeline, name="timeline"),
    path("<uuid:thread_id>/events.jsonl", views.exported, name="timeline-events"),
    path("<uuid:thread_id>/fork", views.forked, name="timeline-fork"),
]
