"""Ask memory to work at once, as a person does who does not wait for thresholds."""

from memory.services import operate
from memory.services.change import Refused
from memory.services.compact import compact, finalize
from memory.services.operate import activate_now, buffer_now, observe_now, reflect_now

WEIGHTS = {"demand": 2.5}
FOR_EVER = 10**9
SELDOM = 20
"""How often to look whether others are done: two minutes may pass in one thing that happens."""
DEMANDS = ("observe", "buffer", "activate", "reflect", "finalize", "compact", "compact")


def install():
    """Let who waits for others look for them seldom."""
    operate.POLL_SECONDS = SELDOM


class Demands:
    """Hold what people demand of memory; mixed into a play."""

    def _demand(self, process):
        thread, what = self._some_thread(), self.random.choice(DEMANDS)
        name = f"{what} of {self.world.name(thread.pk)}"
        if process.busy(name):
            return None
        # The bound is of a real clock, which must not decide what happens.
        patience = {"wait_seconds": self.random.choice((0, FOR_EVER))}
        target = self.random.choice((0, 40, 120))
        models = {"resolve": process.models, **patience}
        demanded = {
            "observe": lambda: observe_now(thread.pk, **models),
            "buffer": lambda: buffer_now(thread.pk, **models),
            "activate": lambda: activate_now(thread.pk),
            "reflect": lambda: reflect_now(thread.pk, **models),
            "finalize": lambda: finalize(thread.pk, **models),
            "compact": lambda: compact(thread.pk, target, **models),
        }
        process.start(name, self._demanded(what, demanded[what]()))
        return name

    async def _demanded(self, what, work):
        try:
            outcome = await work
        except Refused:
            self.world.happened["refused"] += 1
            return
        self.world.happened[f"demanded {what}"] += 1
        if outcome.changed:
            self.world.happened["compacts"] += what == "compact"
