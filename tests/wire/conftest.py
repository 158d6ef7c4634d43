"""Fixtures: each provider's wire format on a loopback port, and a model that speaks to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from pydantic_ai.models import Model

from memory.llm import resolve
from tests.wire.dialects import DIALECTS, KEY
from tests.wire.server import Call, Cut, Dialect, Hang, Refuse, Say, Wire, serve

Open = Callable[..., tuple[Wire, Model]]


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    return request.param


@pytest.fixture
def open_wire(dialect: Dialect, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Serve a script in the dialect and return the server with the model resolved by name."""
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)
    with ExitStack() as stack:

        def start(*script: Say | Call | Refuse | Hang | Cut) -> tuple[Wire, Model]:
            wire = stack.enter_context(serve(Wire(dialect, list(script))))
            monkeypatch.setenv(dialect.key_variable, KEY)
            for variable, value in dialect.environment(wire.address).items():
                monkeypatch.setenv(variable, value)
            return wire, resolve(f"{dialect.name}:{dialect.model}")

        yield start
