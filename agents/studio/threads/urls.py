"""Route the threads pages."""

from django.urls import path

from . import bring, views

urlpatterns = [
    path("", views.threads, name="threads"),
    path("new", views.new_thread, name="new-thread"),
    path("import", bring.imported, name="threads-import"),
    path("bulk", views.bulk, name="threads-bulk"),
    path("undo", views.undo, name="undo"),
    path("<uuid:thread_id>/rename", views.rename, name="rename"),
    path("<uuid:thread_id>/export.<str:extension>", views.exported, name="export"),
]
