"""Route the context pages."""

from django.urls import path

from agents.studio.context import views

urlpatterns = [
    path("calls/<uuid:cycle_id>/", views.call, name="call"),
    path("<uuid:thread_id>/", views.ahead, name="context"),
    path("<uuid:thread_id>/next.json", views.ahead_json, name="context-json"),
    path("<uuid:thread_id>/raw/", views.raw, name="context-raw"),
    path("<uuid:thread_id>/raw.py", views.raw_python, name="context-python"),
    path("<uuid:thread_id>/raw.json", views.raw_json, name="context-download"),
    path("<uuid:thread_id>/compare/", views.compare, name="context-compare"),
    path("<uuid:thread_id>/requests/<int:number>/", views.sent, name="context-sent"),
    path("<uuid:thread_id>/requests/<int:number>/<int:step>/", views.sent, name="context-step"),
]
