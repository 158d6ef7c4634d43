"""Play random conversations with their memory, one service call at a time.

Every step is one call of a service, so that each kind of event is at some time the only one
that tells of a change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

from asgiref.sync import sync_to_async
from django.db.models.functions import Now
from pydantic_ai.messages import ModelRequest as Request
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart

from agents.events import TurnDelta
from agents.models import AgentProfile, Turn
from agents.services import erase as erasing
from agents.services.begin import Running, begin
from agents.services.close import close_lapsed
from agents.services.fork import fork
from agents.services.scope import change_scope
from agents.services.send import send, withdraw
from agents.services.turn import close
from memory.messages import user_prompt
from memory.models import Cycle, Line, MemoryRecord, Thread
from memory.models.state import read_state
from memory.publish import send as send_event
from memory.services import observe, reflect
from memory.services.append import append
from memory.services.change import Refused
from memory.services.clear import clear
from memory.services.configure import configure
from memory.services.cycles import retire_lapsed
from memory.services.edit import edit
from memory.services.forget import forget
from memory.services.fork import cuts
from memory.services.note import note
from memory.services.pin import pin, unpin
from memory.services.prepare import prepare
from memory.services.restore import restore
from tests.fakes import Models, merge_all, observe_each

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
OPTIONS = {"message_tokens": 150, "observation_tokens": 60, "thread_title": True}
WORDS = (
    *("bees", "hive", "roof", "queen", "spring", "honey", "frames", "smoke", "clover", "winter"),
    *("sugar", "jars", "market", "neighbour", "letter", "Tuesday", "Porto", "Mara", "oven", "oak"),
    *("worktop", "quote", "invoice", "train", "<b>bold</b>", "&amp;", "**strong**"),
)


class Play:
    """Hold one conversation and the next random things that happen in it."""

    def __init__(self, thread: Thread, seed: int, without: Collection[str] = ()) -> None:
        self.thread_id = thread.pk
        self.without = without
        self.random = Random(seed)
        self.at = START
        self.running: Running | None = None
        self.observing: observe.Claimed | None = None
        self.reflecting: reflect.Claimed | None = None
        self.models = Models(observer=self._written, reflector=self._condensed)
        self.waiting: list[int] = []
        self.options = 0
        self.happened: list[str] = []

    async def step(self, wanted: str | None = None) -> str:
        """Do the thing that is wanted if it is possible, or a random one; return what it was.

        A claim when nothing is due is no step: then something else is done.
        """
        while True:
            possible = self._possible()
            name = self.random.choices(list(possible), list(possible.values()))[0]
            if wanted in possible:
                name, wanted = wanted, None
            self.at += timedelta(minutes=self.random.choice((1, 2, 30, 2000)))
            if await getattr(self, f"_{name}")() is not False:
                self.happened.append(name)
                return name

    def _possible(self) -> dict[str, int]:
        """Return what can happen now, and how likely it is beside the rest."""
        steps = {"queue": 3 if len(self.waiting) < 3 else 0, "withdraw": len(self.waiting)}
        if self.running is None:
            steps |= {"insert": 3, "begin": 9 if self.waiting else 0}
        else:
            steps |= {"hear": 4, "answer": 5, "use_tool": 1, "prepare": 6, "close": 2}
            steps |= {"lose_turn": 1}
        steps |= {"edit": 1, "note": 1, "pin": 1, "forget": 1, "restore": 1, "clear": 1}
        steps |= {"erase_line": 1, "configure": 1, "fork": 1, "change_scope": 1}
        if self.running is None:
            steps |= {"erase_messages": 1}
        if self.observing is None:
            steps |= {"claim_observation": 6}
        else:
            steps |= {"observe": 5, "lose_observation": 1}
        if self.reflecting is None:
            steps |= {"claim_reflection": 6}
        else:
            steps |= {"reflect": 5}
        return {name: share for name, share in steps.items() if name not in self.without}

    def _text(self, longest: int = 60) -> str:
        return " ".join(self.random.choices(WORDS, k=self.random.randint(3, longest)))

    def _written(self, text: str) -> str:
        if self.random.random() < 0.15:
            return "nothing that can be read"
        hints = [
            "<current-task>Sell honey</current-task>",
            f"<thread-title>{self._text(4)}</thread-title>",
        ]
        return "\n".join([observe_each(text), *hints[self.random.randrange(3) :]])

    def _condensed(self, text: str) -> str:
        return merge_all(text) if self.random.random() < 0.8 else "<observations></observations>"

    async def _queue(self) -> None:
        turn = await sync_to_async(send)(self.thread_id, self._text())
        self.waiting.append(turn.number)

    async def _withdraw(self) -> None:
        number = self.random.choice(self.waiting)
        self.waiting.remove(number)
        await sync_to_async(withdraw)(self.thread_id, number)

    async def _begin(self) -> None:
        self.running = await sync_to_async(begin)(self.thread_id, at=self.at)
        self.waiting.pop(0)

    async def _hear(self) -> None:
        assert self.running is not None
        turn = self.running.turn
        self.running.text += self._text() + " "
        await sync_to_async(turn.renew)(draft_text=self.running.text)
        after = (await Thread.objects.aget(pk=self.thread_id)).last_position
        text = self.running.text
        await send_event(TurnDelta(thread=self.thread_id, turn=turn.number, after=after, text=text))

    async def _answer(self) -> None:
        assert self.running is not None
        said = self.running.text or self._text()
        self.running.text = ""
        await self._append(ModelResponse(parts=[TextPart(said)], timestamp=self.at))

    async def _use_tool(self) -> None:
        call = ToolCallPart("recall", {"query": self._text(3)}, f"call-{len(self.happened)}")
        await self._append(ModelResponse(parts=[call], timestamp=self.at))
        returned = ToolReturnPart(call.tool_name, self._text(), call.tool_call_id)
        await self._append(Request(parts=[returned], timestamp=self.at))

    async def _append(self, message: Any) -> None:
        assert self.running is not None
        fence = self.running.fence
        await sync_to_async(append)(self.thread_id, [message], at=self.at, fence=fence)

    async def _close(self) -> None:
        assert self.running is not None
        status = self.random.choice((Turn.Status.DONE, Turn.Status.DONE, Turn.Status.FAILED))
        error = "The model was overloaded." if status == Turn.Status.FAILED else ""
        await sync_to_async(close)(self.running, status, error=error)
        self.running = None

    async def _lose_turn(self) -> None:
        assert self.running is not None
        await Turn.objects.filter(pk=self.running.turn.pk).aupdate(
            lease_expires_at=Now() - timedelta(minutes=1)
        )
        await sync_to_async(close_lapsed)(self.thread_id)
        self.running = None

    async def _prepare(self) -> None:
        assert self.running is not None
        position = self.running.turn.first_position or 0
        await sync_to_async(prepare)(
            self.thread_id, prompt_position=position, at=self.at, may_wait=False
        )

    async def _insert(self) -> None:
        pair = [
            user_prompt(self._text(), self.at),
            ModelResponse(parts=[TextPart(self._text())], timestamp=self.at),
        ]
        await sync_to_async(append)(self.thread_id, pair, at=self.at)

    async def _claim_observation(self) -> bool:
        waiting = self.running is not None and self.random.random() < 0.3
        self.observing = await sync_to_async(observe.claim)(self.thread_id, waiting=waiting)
        return self.observing is not None

    async def _observe(self) -> None:
        assert self.observing is not None
        await observe.run(self.observing, resolve=self.models)
        self.observing = None
        # A failed lane rests; here time passes as the test wants it to.
        await Cycle.objects.filter(thread=self.thread_id, status="failed").aupdate(
            next_attempt_at=None
        )

    async def _lose_observation(self) -> None:
        assert self.observing is not None
        mine = Cycle.objects.filter(pk=self.observing.cycle.pk)
        await mine.aupdate(lease_expires_at=Now() - timedelta(minutes=1))
        await sync_to_async(retire_lapsed)(mine)
        self.observing = None

    async def _claim_reflection(self) -> bool:
        self.reflecting = await sync_to_async(reflect.claim)(self.thread_id)
        return self.reflecting is not None

    async def _reflect(self) -> None:
        assert self.reflecting is not None
        await reflect.run(self.reflecting, resolve=self.models)
        self.reflecting = None

    async def _edit(self) -> bool:
        return await self._change_line(lambda line: edit(line.pk, self._text(8), reason="Wrong."))

    async def _pin(self) -> bool:
        return await self._change_line(lambda line: (unpin if line.pinned else pin)(line.pk))

    async def _forget(self) -> bool:
        return await self._change_line(lambda line: forget(line.pk, author=self._ada()))

    async def _erase_line(self) -> bool:
        return await self._change_line(lambda line: erasing.erase_line(line.pk))

    async def _note(self) -> bool:
        text = self._text(8)
        return await self._change(lambda record: note(record.pk, text, thread_id=self.thread_id))

    async def _restore(self) -> bool:
        return await self._change(
            lambda record: restore(record.pk, self.random.randint(0, max(0, record.revision - 1)))
        )

    async def _clear(self) -> bool:
        return await self._change(lambda record: clear(record.pk, thread_id=self.thread_id))

    async def _configure(self) -> bool:
        self.options += 1
        changes = {"observation_tokens": 60 + self.options % 2 * 20}
        return await self._change(lambda record: configure(self.thread_id, changes))

    async def _erase_messages(self) -> bool:
        thread = await Thread.objects.aget(pk=self.thread_id)
        first = self.random.randint(1, max(1, thread.last_position))
        return await self._do(lambda: erasing.erase_messages(self.thread_id, first, first + 1))

    async def _fork(self) -> bool:
        places = await sync_to_async(cuts)(self.thread_id)
        place = self.random.choice([0, *places])
        return await self._do(lambda: fork(self.thread_id, place, reason="Try again."))

    async def _change_scope(self) -> bool:
        thread = await Thread.objects.select_related("resource").aget(pk=self.thread_id)
        wanted = "thread" if thread.resource.scope == "resource" else "resource"
        return await self._do(lambda: change_scope(thread.resource, wanted) or refuse())

    def _ada(self) -> Any:
        return Thread.objects.get(pk=self.thread_id).resource.members.first()

    async def _change_line(self, act: Callable[[Line], object]) -> bool:
        def change(record: MemoryRecord) -> None:
            lines = list(Line.objects.as_of(record.pk, record.revision).in_order())
            act(self.random.choice(lines)) if lines else refuse()

        return await self._change(change)

    async def _change(self, act: Callable[[MemoryRecord], object]) -> bool:
        def change() -> None:
            record = read_state(self.thread_id).record
            act(record) if record is not None else refuse()

        return await self._do(change)

    async def _do(self, act: Callable[[], object]) -> bool:
        """Do what a person asks for; nothing happens where it is refused."""
        try:
            await sync_to_async(act)()
        except Refused:
            return False
        return True


def refuse() -> None:
    """Say that there is nothing to do."""
    raise Refused("There is nothing to do this with.")


def profile() -> AgentProfile:
    """Return the agent these conversations are with."""
    found, _ = AgentProfile.objects.get_or_create(
        slug="player",
        defaults={
            "name": "Player",
            "instructions": "Be brief.",
            "model": "fake",
            "memory_options": OPTIONS,
        },
    )
    return found
