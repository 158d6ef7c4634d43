"""Show the figures: at an address of the site, or on a port of a worker's own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from hmac import compare_digest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from omsite import watch

logger = logging.getLogger(__name__)

ASK = {"WWW-Authenticate": 'Bearer realm="metrics"'}


@login_not_required
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Answer with the figures of this process, to staff and to who sends the token.

    404 while nothing is measured, 401 for nobody, 403 for who is signed in and is not staff.
    """
    meter = watch.meter()
    if meter is None:
        raise Http404
    if is_scraper(request.headers.get("Authorization", ""), settings.CONFIG.om_metrics_token):
        return HttpResponse(generate_latest(meter.registry), content_type=CONTENT_TYPE_LATEST)
    user: Any = request.user
    if not user.is_authenticated:
        return HttpResponse(status=401, headers=ASK)
    if not (user.is_active and user.is_staff):
        return HttpResponse(status=403)
    return HttpResponse(generate_latest(meter.registry), content_type=CONTENT_TYPE_LATEST)


def is_scraper(authorization: str, token: str) -> bool:
    """Tell whether a header of a request holds the token; nobody does where there is none."""
    scheme, _, given = authorization.partition(" ")
    given = given.strip()
    return bool(
        token and scheme.lower() == "bearer" and compare_digest(given.encode(), token.encode())
    )


def serve(registry: CollectorRegistry, port: int, token: str) -> ThreadingHTTPServer | None:
    """Show the figures on a port, in a thread of its own; None where the port is taken.

    Everybody's with a token, which has to be sent; without one only this machine's.
    """
    handler = _handler(lambda: generate_latest(registry), token)
    try:
        server = ThreadingHTTPServer(("0.0.0.0" if token else "127.0.0.1", port), handler)
    except OSError as error:
        logger.error("The figures are not shown on port %s: %s", port, error.strerror)
        return None
    server.daemon_threads = True
    Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    return server


def _handler(figures: Callable[[], bytes], token: str) -> type[BaseHTTPRequestHandler]:
    class Figures(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if token and not is_scraper(self.headers.get("Authorization", ""), token):
                self._answer(401, b"", ASK)
            elif self.path.partition("?")[0] != "/metrics":
                self._answer(404, b"", {})
            else:
                self._answer(200, figures(), {"Content-Type": CONTENT_TYPE_LATEST})

        def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Write nothing: a scraper comes every few seconds."""

    return Figures
