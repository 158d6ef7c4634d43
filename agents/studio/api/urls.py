"""Route the pages about the API, and the tokens that let scripts in."""

from django.urls import path

from . import views

urlpatterns = [
    path("api/openapi.json", views.openapi, name="openapi"),
    path("api/docs", views.docs, name="api-docs"),
    path("api/", views.docs, name="api"),
    path("account/tokens/", views.tokens, name="tokens"),
    path("account/tokens/<uuid:token_id>/revoke", views.revoke, name="revoke-token"),
]
