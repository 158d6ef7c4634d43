"""Route the pages of the Studio."""

from django.urls import include, path

from agents.studio import looked, views
from agents.studio.styleguide import styleguide

urlpatterns = [
    path("find/", views.find, name="find"),
    path("scopes/", views.scopes, name="scopes"),
    path("chat/looked", looked.threads, name="looked-at-threads"),
    path("chat/<uuid:thread_id>/looked", looked.thread, name="looked-at-thread"),
    path("memory/records/<uuid:record_id>/looked", looked.memory, name="looked-at-memory"),
    path("memory/of/<slug:key>/looked", looked.memories, name="looked-at-memories"),
    path("styleguide/", styleguide, name="styleguide"),
    *(path(f"{page}/", views.newest, {"page": page}) for page in ("context", "timeline")),
    path("", include("agents.studio.home.urls")),
    path("bell/", include("agents.studio.bell.urls")),
    path("chat/", include("agents.studio.threads.urls")),
    path("memory/", include("agents.studio.memory.urls")),
    path("context/", include("agents.studio.context.urls")),
    path("timeline/", include("agents.studio.timeline.urls")),
    path("lab/", include("agents.studio.lab.urls")),
    path("agents/", include("agents.studio.agents.urls")),
    path("settings/", include("agents.studio.settings.urls")),
    path("", include("agents.studio.api.urls")),
    path("memory/", views.newest, {"page": "memory"}),
    path("settings/", views.newest, {"page": "settings"}),
]
