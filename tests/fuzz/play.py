"""Let one random thing after another happen in a world, in processes that come and go."""

import asyncio
import traceback
from contextlib import suppress
from datetime import UTC, datetime

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart

from agents.models import Turn, TurnLost
from agents.services import sweep as agents_sweep
from agents.services import turn as turns
from agents.services.begin import begin
from agents.services.send import BadPrompt, send, withdraw
from memory.messages import user_prompt
from memory.models import Cycle, Message, Thread
from memory.services import sweep as memory_sweep
from memory.services.append import append
from memory.services.blank import ERASED
from memory.services.change import Refused
from memory.services.due import run_due
from memory.services.prepare import prepare

from . import demands, models, people, requests, sql
from .atoms import read, write
from .clock import quiet
from .models import Answer, Trouble
from .people import PAST
from .processes import Killed, Process, harness
from .requests import Answering, under_way
from .watch import Audits

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SLOW = 130
OTHERS_FIRST = 0.08
MEANWHILE = ("prepare", "prepare", "prepare", "edit", "forget", "note")
WEIGHTS = {
    **{"send": 20, "begin": 30, "insert": 3, "act": 46, "cycle": 30, "think": 46},
    **{"pass_time": 3, "lapse": 2, "sweep": 3, "rest": 5, "stop": 0.5, "withdraw": 0.5},
    **{"kill": 2, "restart": 2},
    **people.WEIGHTS,
    **demands.WEIGHTS,
}
WAITING = """
SELECT DISTINCT u.thread_id FROM agents_turn u JOIN memory_thread t ON t.id = u.thread_id
WHERE t.resource_id = %s AND u.status = 'waiting'
"""
MOST_ATTEMPTS = 3
TOO_LONG = "The request is longer than the model can read"
SIZES = ("Please reduce the length of the messages.", "900 > 120", "900 > 300", "9000 > 800")


class Play(people.People, demands.Demands):
    """Hold the processes of one seed and do the next thing."""

    def __init__(self, world, random, processes=3, weights=WEIGHTS):
        self.world = world
        # Where models fail again and again, what they failed at is tried again and again.
        self.weights = weights if world.well > 0.5 else {**weights, "rest": 30}
        self.random = random
        self.count = processes
        self.born = 0
        self.processes = []
        world.check = self._check
        world.meanwhile = self._meanwhile
        self.graveyard = []
        self.audits = Audits(world)
        for _ in range(processes):
            self._bear()

    def _bear(self):
        self.born += 1
        self.processes.append(Process(f"p{self.born}", self.world))

    async def step(self):
        """Do one thing that is possible now; return what it was, for the log."""
        while (said := await self._try()) is None:
            pass
        return said

    async def _try(self):
        name = self.random.choices(list(self.weights), list(self.weights.values()))[0]
        process = self.random.choice(self._able(name))
        told = f"{process.name} {name}"
        try:
            with process.acting():
                said = getattr(self, f"_{name}")(process)
                if asyncio.iscoroutine(said):
                    said = await said
                if said is not None:
                    await quiet()
        except Killed:
            said = "was killed"
        except (Refused, BadPrompt) as refused:
            self.world.happened["refused"] += 1
            said = f"refused: {refused}"
        except Exception as error:  # noqa: BLE001 - whatever it is, it is not expected
            said = self._surprised(name, error)
        self._reap(process)
        self._bury(process)
        self.audits.after(name)
        return None if said is None else f"{told} {said}".strip()

    def _surprised(self, name, error):
        """Note an error that nobody planned, with where it comes from."""
        if isinstance(error, IntegrityError | ObjectDoesNotExist) and self.world.lost_a_thread():
            self.world.happened["too_late"] += 1
            return f"came too late: {error}"
        frames = traceback.extract_tb(error.__traceback__)[-4:]
        places = " < ".join(f"{f.filename.split('/')[-1]}:{f.lineno}" for f in reversed(frames))
        self.world.broken("errors", f"{name}: {type(error).__name__}: {error} ({places})")
        return f"failed: {error}"

    def _reap(self, process):
        """Look at how the work that ended has ended."""
        for what, task in list(process.tasks.items()):
            if task.done():
                del process.tasks[what]
                error = None if task.cancelled() else task.exception()
                if isinstance(error, Exception):
                    self._surprised(what, error)

    def _able(self, name):
        """Return the processes that can do a thing; all of them when none can."""
        if name not in ("act", "think"):
            return self.processes
        able = [p for p in self.processes if p.models.waits(actor=name == "act")]
        return able or self.processes

    # --- What people and turns do -------------------------------------------------------

    def _some_thread(self, **filters):
        return self.random.choice(self.world.threads())

    def _send(self, process):
        thread = self._some_thread()
        atom = self.world.mint("m", self.world.place(thread))
        send(thread.pk, f"{atom} asks about the hive")
        return f"{self.world.name(thread.pk)} {atom}"

    def _withdraw(self, process):
        waiting = Turn.objects.waiting().filter(thread=self._some_thread()).last()
        if waiting is None:
            return None
        withdraw(waiting.thread_id, waiting.number)
        return f"turn {waiting.number}"

    def _insert(self, process):
        return self._add_pair(self._some_thread())

    def _add_pair(self, thread):
        """Store a question and its answer, unless a turn is under way: those are fenced off."""
        asks, says = (self.world.mint("m", self.world.place(thread)) for _ in range(2))
        pair = [
            user_prompt(f"{asks} asks by the way", AT),
            ModelResponse(parts=[TextPart(f"{says} answers by the way")], timestamp=AT),
        ]
        append(thread.pk, pair, at=datetime.now(UTC), fence=lambda: _unless_answering(thread.pk))
        return f"{self.world.name(thread.pk)} {asks} {says}"

    def _begin(self, process):
        with harness():
            threads = [sql.key(pk) for (pk,) in sql.rows(WAITING, self.world.resource_id)]
        names = sorted((self.world.name(pk), pk) for pk in threads)
        names = [(name, pk) for name, pk in names if not process.busy(name)]
        if not names:
            return None
        name, pk = self.random.choice(names)
        process.start(name, self._turn(process, pk))
        return name

    async def _turn(self, process, thread_id):
        running = begin(thread_id)
        while running is not None:
            self.world.happened["turns"] += 1
            answering = Answering(running)
            under_way.set(answering)
            following = await turns.run(running, resolve=process.models)
            self._ended(running, answering)
            running = following

    def _ended(self, running, answering):
        """Compare how a turn ended with what its model did."""
        with harness():
            turn = Turn.objects.filter(pk=running.turn.pk).first()
            # Another process may have erased what it said, and with that why it failed.
            erased = turn is not None and not turn.error and _is_erased(turn)
        if erased:
            return
        if turn is None or turn.lease_token != running.turn.lease_token:
            return
        if turn.status != Turn.Status.FAILED or turn.error in self.world.told:
            return
        if turn.error.startswith(TOO_LONG) and answering.in_step() == MOST_ATTEMPTS:
            self.world.happened["overflows_given_up"] += 1
            return
        cause = self.world.causes.get(turn.error, "")
        if cause.startswith("TimeoutError") and answering.unanswered() >= settings.MODEL_SILENCE:
            self.world.happened["actor_silences"] += 1
            return
        self.world.broken("turns", f"A turn failed: {turn.error} {cause}")

    def _check(self, process, gate):
        answering = under_way.get()
        if answering is not None and answering.memory is not None and not process.dead:
            gate.answering = answering
            answering.asked_at = asyncio.get_running_loop().time()
            with harness():
                requests.check(self.world, answering, gate)

    def _act(self, process):
        gates = process.models.waits(actor=True)
        if not gates:
            return None
        gate = self.random.choice(gates)
        answer, said = self._answer(gate)
        gate.open(answer)
        return said

    def _answer(self, gate):
        draw = self.random.random()
        atoms = [self.world.mint("m", self._series_of(gate)) for _ in range(2)]
        if draw < 0.22:
            calls = atoms[: self.random.choice((1, 1, 2))]
            self.world.happened["tool_calls"] += 1
            return Answer(
                calls=tuple(f"{atom} is looked up" for atom in calls)
            ), f"calls {write(calls)}"
        if draw < 0.26:
            error = Trouble("The Actor is overloaded.")
            self.world.told.append(turns.llm.explain(error))
            self.world.happened["actor_failures"] += 1
            return Answer(text=f"{atoms[0]} says", error=error), "fails"
        if (draw < 0.31 or gate.answering.in_step()) and self.random.random() < 0.6:
            return self._too_long(gate.answering), "reads no more than it can"
        return Answer(text=f"{atoms[0]} says that all is well"), f"says {atoms[0]}"

    def _series_of(self, gate):
        return self.world.name(gate.answering.running.turn.thread_id)[1:]

    def _too_long(self, answering):
        """Refuse a request as providers do that is longer than the model can read."""
        answering.refused.append(answering.memory.step)
        self.world.happened["overflows"] += 1
        said = f"prompt is too long: {self.random.choice(SIZES)}"
        return ModelHTTPError(400, "fake", {"message": said})

    def _stop(self, process):
        return "asked" if turns.stop(self._some_thread().pk) else None

    # --- What others do between what a process reads and what it writes -------------------

    def _meanwhile(self, process, what):
        others = [p for p in self.processes if p is not process and not p.dead and p.fuse is None]
        if not others or self.random.random() > OTHERS_FIRST:
            return
        self.let_others(process, self.random.choice(others), what)

    def let_others(self, process, other, what="record"):
        """Let another process do one thing as if it had committed it just now."""
        self.world.meanwhile = None
        doing = "insert_anywhere" if what == "thread" else self.random.choice(MEANWHILE)
        try:
            with other.acting(), transaction.atomic():
                said = getattr(self, f"_{doing}")(other)
            self.world.happened["others_first"] += 1
            if doing == "forget":
                self.world.forgotten |= set(read(said or ""))
            self.world.log.append(f"      meanwhile {other.name} {doing}")
        except Refused:
            pass
        finally:
            self.world.meanwhile = self._meanwhile

    def _prepare(self, process):
        thread = self._some_thread()
        prepare(thread.pk, prompt_position=1, at=datetime.now(UTC), may_wait=False)

    def _insert_anywhere(self, process):
        self._add_pair(self._some_thread())

    # --- What runs in the background ----------------------------------------------------

    def _cycle(self, process):
        thread = self._some_thread()
        what = f"cycles of {self.world.name(thread.pk)}"
        if process.busy(what):
            return None
        process.start(what, run_due(thread.pk, resolve=process.models))
        return self.world.name(thread.pk)

    async def _think(self, process):
        gates = process.models.waits(actor=False)
        if not gates:
            return None
        gate = self.random.choice(gates)
        draw = self.random.random()
        kinds = ["raise", "empty", "junk", "loop", "slow"]
        kind = "good" if draw < self.world.well else self.random.choice(kinds)
        if kind == "good" and gate.who == "observer" and self.random.random() < 0.12:
            kind = self.random.choice(("nothing", "some", "some"))
        self.world.happened[f"{gate.who}_{kind}"] += 1
        if kind == "slow":
            await asyncio.sleep(SLOW)
        else:
            gate.open(self._thought(gate.who, kind))
        return f"{gate.who} {kind}"

    def _thought(self, who, kind):
        if kind == "raise":
            return Trouble("The model is overloaded.")
        return models.GOOD[who] if kind == "good" else models.THOUGHTS[kind]

    async def _pass_time(self, process):
        seconds = self.random.choice((0.2, 1, 1, 6))
        await asyncio.sleep(seconds)
        return f"{seconds} s"

    def _lapse(self, process):
        """Let a lease run out whose owner, alive or not, did not renew it in time."""
        with harness():
            running = Cycle.objects.running().order_by("started_at", "pk")
            turn = Turn.objects.running().order_by("started_at", "pk")
            rows = [*running, *turn]
            if not rows:
                return None
            row = self.random.choice(rows)
            type(row).objects.filter(pk=row.pk).update(**PAST)
        self.world.happened["lease_lapsed"] += 1
        return f"{row}"

    def _sweep(self, process):
        ended = memory_sweep.sweep() + agents_sweep.sweep()
        self.world.happened["swept"] += ended
        return f"ended {ended}" if ended else None

    def _rest(self, process):
        """Let the rest after failed cycles be over."""
        with harness():
            resting = Cycle.objects.filter(status="failed", next_attempt_at__gt=Now())
            rested = resting.update(next_attempt_at=Now())
            return f"of {rested} lanes" if rested else None

    # --- How processes come and go ------------------------------------------------------

    def _kill(self, process):
        """Let a process die now, or before one of its next statements."""
        process.fuse = self.random.choice((0, 0, 3, 8, 15, 30))
        if process.fuse == 0:
            process.dead = True
        return f"before statement {process.fuse}"

    def _restart(self, process):
        """Let a process that does nothing start anew, with empty caches."""
        process.caches.clear()
        self.world.happened["restarts"] += 1
        return "anew"

    def _bury(self, process):
        if process.dead and process in self.processes:
            self.processes.remove(process)
            self.graveyard.append(process)
            self.world.happened["kills"] += 1
            self._bear()

    def abandon(self):
        """Let every process die with what it is at."""
        for process in [*self.graveyard, *self.processes]:
            process.dead = True
            for task in process.tasks.values():
                task.cancel()

    async def end(self):
        """Let every process die and all leases run out, so that only rows remain."""
        self.abandon()
        for process in [*self.graveyard, *self.processes]:
            for task in process.tasks.values():
                with suppress(BaseException):
                    await task
        Cycle.objects.running().update(**PAST)
        Turn.objects.running().update(**PAST)
        memory_sweep.sweep()
        agents_sweep.sweep()


def _is_erased(turn):
    """Tell whether any message of a turn was erased."""
    rows = Message.objects.filter(thread=turn.thread_id, position__gte=turn.first_position or 1)
    if turn.last_position is not None:
        rows = rows.filter(position__lte=turn.last_position)
    return rows.filter(text__contains=ERASED).exists()


def _unless_answering(thread_id):
    """Raise Refused when the prompt of a running turn is stored. Takes the thread's row."""
    last = Thread.objects.select_for_update().get(pk=thread_id).last_position
    running = Turn.objects.running().filter(thread=thread_id)
    if running.filter(Q(first_position__isnull=True) | Q(first_position__lte=last)).exists():
        raise Refused("An answer is being written.")


__all__ = ["AT", "Play", "TurnLost", "under_way"]
