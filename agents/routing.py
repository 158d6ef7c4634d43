"""Route the websockets of the pages."""

from django.urls import path

from agents.consumers import ChatConsumer
from agents.studio.consumer import StudioConsumer

websocket_urlpatterns = [
    path("ws/chat/<uuid:thread_id>/", ChatConsumer.as_asgi()),
    path("ws/studio/", StudioConsumer.as_asgi()),
]
