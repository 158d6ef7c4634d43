"""Route the websockets of the pages."""

from django.urls import path

from agents.consumers import ChatConsumer

websocket_urlpatterns = [
    path("ws/chat/<uuid:thread_id>/", ChatConsumer.as_asgi()),
]
