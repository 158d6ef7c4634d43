"""Ask a busy provider again, for a while, before a turn fails.

Observers and Reflectors need none of this: their cycles rest and are run again. Somebody waits for
a turn, so it is tried again at once, and not for long.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from memory import llm
from memory.ask import retry_after

logger = logging.getLogger(__name__)

#: Who asks to be left alone for longer is: the turn fails and says when to try again.
LONGEST_WAIT = 20.0

Sleep = Callable[[float], Awaitable[object]]


class Patient(WrapperModel):
    """Open a stream again where a provider is busy; nobody has heard a word of it by then.

    ``tries`` counts all. Between them it waits as long as the provider says, else twice as long
    each time, a little more or less so that many do not come back together.
    """

    def __init__(self, wrapped: Model, *, tries: int, sleep: Sleep = asyncio.sleep) -> None:
        super().__init__(wrapped)
        self._tries = tries
        self._sleep = sleep

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncIterator[StreamedResponse]:
        """Return the answer as it comes. Raises what the last try raises."""
        # The tries of a provider's own package would multiply with these.
        settings: ModelSettings = {"max_retries": 0, **(model_settings or {})}
        async with AsyncExitStack() as stack:
            answer = await self._opened(
                lambda: stack.enter_async_context(
                    self.wrapped.request_stream(
                        messages, settings, model_request_parameters, run_context
                    )
                )
            )
            yield answer

    async def _opened(self, open_: Callable[[], Awaitable[StreamedResponse]]) -> StreamedResponse:
        for tried in range(1, self._tries):
            try:
                return await open_()
            except Exception as error:
                wait = wait_after(error, tried)
                if wait is None:
                    raise
                logger.info("%s is busy; it is asked again in %.1f s.", self.model_name, wait)
            await self._sleep(wait)
        return await open_()


def wait_after(error: BaseException, tried: int) -> float | None:
    """Return how many seconds to wait before a call is tried again; None: it is not.

    What took its time already, like a timeout, is not tried again.
    """
    if not llm.is_busy(error):
        return None
    asked = retry_after(error)
    if asked is None:
        return 2.0 ** (tried - 1) * random.uniform(0.75, 1.25)
    return asked if asked <= LONGEST_WAIT else None
