"""Make a small world for a seed: a resource, its conversations and the options of its agent."""

from collections import Counter, defaultdict

from django.db import connection
from pydantic_ai import ModelRetry, RunContext, Tool

from agents import tools
from agents.models import AgentProfile, RequestSnapshot, Turn
from agents.services.thread import start
from memory.models import (
    Blob,
    Cursor,
    Cycle,
    Line,
    MemoryRecord,
    Message,
    Observation,
    ReflectionSource,
    Resource,
    Revision,
    Thread,
)

from .atoms import Atom
from .models import TOOL

TABLES = (
    *(RequestSnapshot, Turn, ReflectionSource, Line, Revision, Observation, Cycle, Cursor),
    *(MemoryRecord, Message, Thread, Resource, Blob),
)
AGENT = "fuzz"
WELL = (*(0.8,) * 6, 0.05)
"""How often a model that thinks does well; in some worlds it hardly ever does."""


def empty():
    """Delete every row of earlier seeds."""
    names = [model._meta.db_table for model in TABLES]
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"TRUNCATE {', '.join(names)} CASCADE")
            return
        cursor.execute("PRAGMA foreign_keys = OFF")
        for name in names:
            cursor.execute(f"DELETE FROM {name}")
        cursor.execute("PRAGMA foreign_keys = ON")


class World:
    """Hold the things of one seed that every process of it knows."""

    def __init__(self, seed, random):
        self.seed = seed
        self.series = ""
        self.well = random.choice(WELL)
        self.numbers = Counter()
        self.happened = Counter()
        self.log = []
        self.visible = {}
        self.messages = defaultdict(dict)
        self._threads = []
        self._names = {}
        self._seen = set()
        self._records = {}
        self.alone = True
        self.found = []
        self.told = []
        self.causes = {}
        self.erased = set()
        self.forgotten = set()
        self.shown_again = Counter()
        self.erased_lines = set()
        self.erased_texts = set()
        self.gone = defaultdict(set)
        self.operations = 0
        self.check = None
        self.meanwhile = None
        self.options = options(random)
        self.resource_id = None

    def make(self, random):
        """Store the resource, its agent and its first conversations."""
        self.resource_id = Resource.objects.create(key=f"fuzz-{self.seed}", name="Fuzz").pk
        AgentProfile.objects.update_or_create(
            slug=AGENT,
            defaults={
                "name": "Fuzz",
                "instructions": "Be brief.",
                "model": "fake",
                "memory_options": self.options,
                "tools": [TOOL],
            },
        )
        self.begin_threads(random.choice((2, 2, 3)))

    def begin_threads(self, count):
        """Begin conversations that say nothing yet."""
        resource = Resource.objects.get(pk=self.resource_id)
        for _ in range(count):
            start(resource, AgentProfile.objects.get(slug=AGENT))
        self.grown()

    def threads(self):
        """Return the conversations in the order they were begun, as read when one was."""
        if not self._threads or not self.alone:
            self._threads = self._read_threads()
        return self._threads

    def grown(self):
        """Read anew what was taken for fixed: something was copied or destroyed."""
        self._threads = []
        self.visible.clear()
        self.messages.clear()

    def _read_threads(self):
        own = Thread.objects.filter(resource=self.resource_id).order_by("created_at", "pk")
        found = list(own)
        self._seen |= {thread.pk for thread in found}
        return found

    def lost_a_thread(self):
        """Tell whether another process erased a conversation while this one works with it."""
        if self.alone:
            return False
        return bool(self._seen - {thread.pk for thread in self._read_threads()})

    def records(self):
        """Return the open records."""
        found = MemoryRecord.objects.filter(resource=self.resource_id, closed_at__isnull=True)
        return list(found.order_by("created_at", "pk"))

    def name(self, thread_id):
        """Return a short name for a conversation."""
        if thread_id not in self._names:
            for thread in self.threads():
                self._names.setdefault(thread.pk, f"t{len(self._names) + 1}")
        # One that another process made and erased before anybody looked has none.
        return self._names.setdefault(thread_id, f"t{len(self._names) + 1}")

    def name_of_record(self, record_id):
        """Return a short name for a record."""
        return f"r{self._records.setdefault(record_id, len(self._records) + 1)}"

    def place(self, thread):
        """Return the series of what is said in a conversation."""
        return self.name(thread.pk)[1:]

    def mint(self, kind, of=""):
        """Return an atom that nothing says yet."""
        series = f"{of}{self.series}" or "0"  # Unlike any other process's.
        self.numbers[kind, series] += 1
        return Atom(kind, series, self.numbers[kind, series])

    def broken(self, invariant, sentence):
        """Note that something is wrong."""
        self.found.append((invariant, sentence))

    def before_taking(self, process, what):
        """Let somebody else be first, now and then."""
        if self.meanwhile is not None and self.alone:
            self.meanwhile(process, what)

    def asked(self, process, gate):
        """Look at a request when it reaches a model."""
        self.happened[f"asked {gate.who}"] += 1
        if self.check is not None and gate.who == "actor":
            self.check(process, gate)


def options(random):
    """Return options small enough that everything happens within a few messages."""
    chosen = {
        "message_tokens": random.choice((90, 140, 220)),
        "observation_tokens": random.choice((120, 190, 300)),
        "buffer_tokens": random.choice((0.2, 0.2, 0.3, False)),
        "buffer_activation": random.choice((0.5, 0.8, 1)),
        "share_token_budget": random.random() < 0.15,
        "scope": random.choice(("thread", "thread", "resource")),
        "thread_title": random.random() < 0.3,
        "wait_seconds": 0.5,
        "reflection_block_after": random.choice((1.2, 1.5)),
        "previous_observer_tokens": random.choice((2000, 0, 30, False)),
    }
    if random.random() < 0.06:
        # So much lies raw that the model's window does not hold it.
        chosen |= {"message_tokens": 900, "buffer_tokens": False, "context_tokens": 1000}
    if chosen["buffer_tokens"]:
        chosen["block_after"] = random.choice((1.0, 1.2, 2.0))
    return chosen


async def _look_up(ctx: RunContext, said: str) -> str:
    """Look something up."""
    world = playing[0]
    thread = Thread.objects.get(pk=ctx.deps.thread_id)
    atom = world.mint("m", world.place(thread))
    if atom.number % 4 == 0:
        world.happened["tool_retries"] += 1
        raise ModelRetry(f"{atom} cannot be found, try again.")
    return f"{atom} was found."


playing = []


def install():
    """Give the agent of these worlds its tool."""
    tools.TOOLS[TOOL] = Tool(_look_up, name=TOOL, max_retries=50)
