"""Route the memory pages."""

from django.urls import path

from agents.studio.memory import actions, asking, views

urlpatterns = [
    path("of/<slug:key>/", views.of_resource, name="memory-of"),
    path("<uuid:thread_id>/", views.memory, name="memory"),
    path("<uuid:thread_id>/raw", views.raw, name="memory-raw"),
    path("<uuid:thread_id>/ask", asking.ask_model, name="memory-ask"),
    path("<uuid:thread_id>/note", actions.note, name="memory-note"),
    *(
        path(f"<uuid:thread_id>/{operation}", actions.operate, {"operation": operation})
        for operation in actions.OPERATIONS
    ),
    path("<uuid:record_id>/generations", views.generations, name="generations"),
    path("lines/<uuid:line_id>/", views.line, name="memory-line"),
    path("lines/<uuid:line_id>/sources", views.sources, name="line-sources"),
    path("lines/<uuid:line_id>/edit", actions.edit, name="line-edit"),
    path("lines/<uuid:line_id>/pin", actions.pin, name="line-pin"),
    path("lines/<uuid:line_id>/unpin", actions.unpin, name="line-unpin"),
    path("lines/<uuid:line_id>/forget", actions.forget, name="line-forget"),
    path("lines/<uuid:line_id>/show", actions.show, name="line-show"),
    path("records/<uuid:record_id>/lines/<str:what>", actions.several, name="memory-lines"),
    path("records/<uuid:record_id>/undo/<int:number>", actions.undo, name="memory-undo"),
    path("records/<uuid:record_id>/restore/<int:number>/", views.restoring, name="memory-restore"),
    path("records/<uuid:record_id>/restore/<int:number>/do", actions.restore, name="restore-do"),
]
