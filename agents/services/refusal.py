"""Say why a prompt is not taken."""

from __future__ import annotations

from ..limits import Reached


class BadPrompt(ValueError):
    """Say in one sentence why a prompt cannot be taken."""


class LimitReached(BadPrompt):
    """Say which limit a prompt met, what is left of it, and when to try again."""

    def __init__(self, reached: Reached) -> None:
        super().__init__(reached.sentence)
        self.reached = reached

    @property
    def status(self) -> int:
        """Return the HTTP status that says so: of what is too large as it is, 422."""
        return 422 if self.reached.retry_after is None else 429

    @property
    def headers(self) -> dict[str, str]:
        """Return what an HTTP answer says besides."""
        wait = self.reached.retry_after
        return {} if wait is None else {"Retry-After": str(wait)}

    @property
    def facts(self) -> dict[str, str | int | float | None]:
        """Return the limit as machines read it."""
        return facts_of(self.reached)


def facts_of(reached: Reached) -> dict[str, str | int | float | None]:
    """Return a limit as machines read it; amounts of money are in US dollars."""
    return {
        "limit": reached.limit,
        "allowed": _number(reached.allowed),
        "used": _number(reached.used),
        "left": _number(reached.left),
        "retry_after": reached.retry_after,
    }


def _number(amount: object) -> int | float:
    return amount if isinstance(amount, int) else float(str(amount))
