"""Answer HTTP and websockets."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
http = get_asgi_application()

from channels.auth import AuthMiddlewareStack  # noqa: E402 - Django must be set up first
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from channels.security.websocket import AllowedHostsOriginValidator  # noqa: E402
from django.conf import settings  # noqa: E402

from agents.routing import websocket_urlpatterns  # noqa: E402
from omsite import watch  # noqa: E402

meter = watch.watch_web(settings.CONFIG)
websocket = AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(websocket_urlpatterns)))

application = ProtocolTypeRouter(
    {
        "http": http,
        "websocket": meter.counting(websocket) if meter is not None else websocket,
    }
)
