"""Route requests to the apps."""

from django.urls import include, path

urlpatterns = [
    path("", include("agents.urls")),
    path("memory/", include("memory.urls")),
]
