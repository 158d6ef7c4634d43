"""Route the pages of the memory."""

from django.urls import path

from memory.views.generations import generations
from memory.views.lines import sources

urlpatterns = [
    path("lines/<uuid:line_id>/sources", sources, name="line-sources"),
    path("<uuid:record_id>/generations", generations, name="generations"),
]
