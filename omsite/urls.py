"""Route requests to the apps."""

from django.contrib import admin
from django.urls import include, path

from omsite import health
from omsite.metrics import serve

handler500 = "omsite.failed.failed"

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", serve.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("agents.api.urls")),
    path("", include("agents.studio.urls")),
    path("", include("agents.urls")),
]
