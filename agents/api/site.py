"""Put the API together."""

from __future__ import annotations

from typing import Any

from ninja import NinjaAPI
from ninja.operation import Operation

from . import memory, messages, operations, past, problems, threads
from .entry import EITHER

ROOT = "/api/v1/"
ABOUT = """Conversations with agents that remember, and all that is remembered.

Send a personal token with every request: `Authorization: Bearer om_…`. You make one at
[/account/tokens/](/account/tokens/). Lists come in pages: send `next` of one as `cursor` for the
one after it. What cannot be done is answered with a problem (`application/problem+json`) whose
`detail` says why in a sentence."""


class Api(NinjaAPI):
    """Serve the operations, each known by its short name."""

    def get_openapi_operation_id(self, operation: Operation) -> str:
        """Return a name that stays when code moves."""
        module = operation.view_func.__module__.rpartition(".")[2]
        return f"{module}_{operation.view_func.__name__}"


api = Api(
    title="omsite",
    version="1",
    description=ABOUT,
    auth=EITHER,
    openapi_url=None,
    docs_url=None,
    urls_namespace="api",
)
problems.handle(api)
for each in (threads, messages, memory, past, operations):
    api.add_router("", each.router)


PROBLEM = {
    "type": "object",
    "title": "Problem",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "Why, in a sentence."},
    },
    "required": ["title", "status", "detail"],
}


def schema() -> dict[str, Any]:
    """Return the OpenAPI description of every operation."""
    found: dict[str, Any] = dict(api.get_openapi_schema(path_prefix=ROOT))
    found["components"]["schemas"]["Problem"] = PROBLEM
    reference = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for methods in found["paths"].values():
        for operation in methods.values():
            operation["responses"]["default"] = {
                "description": "A problem: what kept it from being carried out.",
                "content": {"application/problem+json": reference},
            }
    return found
