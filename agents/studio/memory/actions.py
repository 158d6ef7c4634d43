"""Change memory from its page: every change is one revision, and can be undone."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from agents.access import Right, author, require, thread_or_404
from agents.studio.memory.asked import Asked
from agents.studio.memory.editor import Conflict, Typed
from agents.studio.memory.reading import Reading
from agents.studio.memory.reflections import home_of
from agents.studio.memory.views import MOST_AT_ONCE, line_or_404, page_of, record_or_404
from agents.studio.respond import frame
from memory.models import Line, MemoryRecord, Thread
from memory.services import history
from memory.services.asked import ask_for
from memory.services.change import Refused, Stale
from memory.services.edit import edit as edit_line
from memory.services.forget import forget as forget_lines
from memory.services.forget import show_again
from memory.services.look import record_of
from memory.services.note import note as write_note
from memory.services.pin import pin as pin_lines
from memory.services.pin import unpin as unpin_lines
from memory.services.restore import restore as restore_revision

OPERATIONS = ("observe", "reflect")


@require_POST
def edit(request: HttpRequest, line_id: UUID) -> HttpResponse:
    """Let a line say something else; 409 with both texts when somebody changed it meanwhile.

    ``onto`` names the line to change when that is settled, ``both`` keeps what was typed as a
    note beside it.
    """
    line = _editable(request, line_id)
    typed = Typed(
        request.POST.get("text", ""), request.POST.get("kind", ""), request.POST.get("reason", "")
    )
    if "both" in request.POST:
        return _keep_both(request, line, typed)
    target = _onto(request, line)
    try:
        new = edit_line(
            target.pk,
            typed.text,
            kind=typed.kind or None,
            author=author(request),
            reason=typed.reason,
            expected=_expected(request),
        )
    except Refused as refused:
        return _refused(request, line, typed, refused)
    return _done(request, _record(line), new.since or 0, "Edited.", new.pk)


def _onto(request: HttpRequest, line: Line) -> Line:
    """Return the line to change: the one that stands there now, once that was chosen."""
    try:
        onto = UUID(request.POST.get("onto", ""))
    except ValueError:
        return line
    current = Line.objects.filter(observation=line.observation, ordinal=line.ordinal, pk=onto)
    return current.select_related("observation").first() or line


def _keep_both(request: HttpRequest, line: Line, typed: Typed) -> HttpResponse:
    owner = line.observation
    try:
        new = write_note(
            owner.record_id,
            typed.text,
            kind=typed.kind or line.kind,
            said_at=line.said_at,
            thread_id=owner.thread_id,
            author=author(request),
            reason=typed.reason,
        )
    except Refused as refused:
        return _refused(request, line, typed, refused)
    return _done(request, _record(line), new.since or 0, "Kept both: yours is a note.", new.pk)


def _refused(request: HttpRequest, line: Line, typed: Typed, refused: Refused) -> HttpResponse:
    """Return the editor with what was typed and why it was not taken."""
    stale = refused if isinstance(refused, Stale) else None
    status = 409 if stale else 422
    record = _record(line)
    if request.headers.get("HX-Request"):
        record.refresh_from_db()
        context = {
            "conflict": Conflict.of(stale, record.revision) if stale else None,
            "line": line,
            "refusal": str(refused),
        }
        return render(request, "studio/memory/conflict.html", context, status=status)
    thread = record.remembering().filter(deleted_at=None).select_related("resource").first()
    if thread is None:
        known = {**frame(request, page="memory", resource=record.resource), "typed": typed}
        known["refusal"] = str(refused)
        return render(request, "studio/memory/typed.html", known, status=status)
    reading = Reading(thread, Asked(edit=line.pk), timezone.now())
    why = "" if stale else str(refused)
    return page_of(request, reading, status=status, typed=typed, refusal=why, stale=stale)


@require_POST
def pin(request: HttpRequest, line_id: UUID) -> HttpResponse:
    """Pin a line, so that every reflection leaves it standing."""
    line = _editable(request, line_id)

    def act() -> tuple[int, UUID]:
        (new,) = pin_lines(line.pk, author=author(request), expected=_expected(request))
        return new.since or 0, new.pk

    return _change(request, _record(line), act, "Pinned: every reflection leaves it standing.")


@require_POST
def unpin(request: HttpRequest, line_id: UUID) -> HttpResponse:
    """Let go of a pinned line."""
    line = _editable(request, line_id)

    def act() -> tuple[int, UUID]:
        (new,) = unpin_lines(line.pk, author=author(request), expected=_expected(request))
        return new.since or 0, new.pk

    return _change(request, _record(line), act, "Unpinned: the next reflection may condense it.")


@require_POST
def forget(request: HttpRequest, line_id: UUID) -> HttpResponse:
    """Take a line out of sight; it stays in history."""
    line = _editable(request, line_id)
    reason = request.POST.get("reason", "")

    def act() -> tuple[int, None]:
        number = forget_lines(
            line.pk,
            author=author(request),
            reason=reason,
            expected=_expected(request),
        )
        return number, None

    return _change(request, _record(line), act, "Forgotten. It stays in history.")


@require_POST
def show(request: HttpRequest, line_id: UUID) -> HttpResponse:
    """Show a line again that a reflection dropped or somebody took out of sight."""
    line = _editable(request, line_id)

    def act() -> tuple[int, UUID]:
        new = show_again(line.pk, author=author(request), reason=request.POST.get("reason", ""))
        return new.since or 0, new.pk

    return _change(request, _record(line), act, "Restored: the line is visible again.")


@require_POST
def several(request: HttpRequest, record_id: UUID, what: str) -> HttpResponse:
    """Pin or forget the lines that were ticked, as one revision; or give them out as text."""
    record = record_or_404(request, record_id)
    acts = {"pin": _pin_several, "unpin": _unpin_several, "forget": _forget_several}
    if what == "copy":
        return _as_text(request, record)
    if what not in acts:
        raise Http404
    require(request, Right.EDIT, record.resource)
    return _change(request, record, lambda: (acts[what](request, record), None), _SAID[what])


_SAID = {
    "pin": "Pinned: every reflection leaves these lines standing.",
    "unpin": "Unpinned: the next reflection may condense these lines.",
    "forget": "Forgotten. The lines stay in history.",
}


def _pin_several(request: HttpRequest, record: MemoryRecord) -> int:
    """Pin what is not pinned of the ticked lines; return the revision."""
    lines = [line.pk for line in _ticked(request, record) if not line.pinned]
    if not lines:
        raise Refused("These lines are pinned already.")
    return pin_lines(lines, author=author(request), expected=_expected(request))[0].since or 0


def _unpin_several(request: HttpRequest, record: MemoryRecord) -> int:
    """Let go of what is pinned of the ticked lines; return the revision."""
    lines = [line.pk for line in _ticked(request, record) if line.pinned]
    if not lines:
        raise Refused("None of these lines is pinned.")
    return unpin_lines(lines, author=author(request), expected=_expected(request))[0].since or 0


def _forget_several(request: HttpRequest, record: MemoryRecord) -> int:
    lines = [line.pk for line in _ticked(request, record)]
    return forget_lines(lines, author=author(request), expected=_expected(request))


def _as_text(request: HttpRequest, record: MemoryRecord) -> HttpResponse:
    """Return the ticked lines as text to copy."""
    try:
        text = "\n".join(line.text for line in _ticked(request, record))
    except Refused as refused:
        return _answer(request, str(refused), _back(request, record), status=422)
    return HttpResponse(f"{text}\n", content_type="text/plain; charset=utf-8")


def _ticked(request: HttpRequest, record: MemoryRecord) -> list[Line]:
    """Return the lines of a record that were ticked, in their order on the page. Raises Refused."""
    try:
        ids = list(dict.fromkeys(UUID(text) for text in request.POST.getlist("line")))
    except ValueError:
        raise Http404 from None
    if not ids:
        raise Refused("Tick lines first.")
    if len(ids) > MOST_AT_ONCE:
        raise Refused(f"{len(ids):,} lines are ticked; tick at most {MOST_AT_ONCE} at once.")
    found = Line.objects.filter(observation__record=record).in_bulk(ids)
    if len(found) != len(ids):
        raise Refused("One of these lines is not there any more: it was erased.")
    return [found[each] for each in ids]


@require_POST
def note(request: HttpRequest, thread_id: UUID) -> HttpResponse:
    """Write a line of one's own into a thread's memory."""
    thread = thread_or_404(request, thread_id)
    require(request, Right.EDIT, thread.resource)
    typed = Typed(
        request.POST.get("text", ""), request.POST.get("kind", ""), request.POST.get("reason", "")
    )
    try:
        new = _noted(request, thread, typed)
    except Refused as refused:
        if request.headers.get("HX-Request"):
            context = {"refusal": str(refused)}
            return render(request, "studio/memory/conflict.html", context, status=422)
        reading = Reading(thread, Asked(), timezone.now())
        return page_of(request, reading, status=422, note=typed, refusal=str(refused))
    return _done(request, new.observation.record, new.since or 0, "Noted.", new.pk)


def _noted(request: HttpRequest, thread: Thread, typed: Typed) -> Line:
    if not thread.remembers:
        raise Refused("This conversation does not remember: its memory is off.")
    record = record_of(thread)
    return write_note(
        record.pk,
        typed.text,
        kind=typed.kind or Line.Kind.HIGH,
        thread_id=thread.pk if record.thread_id is None else None,
        author=author(request),
        reason=typed.reason,
    )


@require_POST
def undo(request: HttpRequest, record_id: UUID, number: int) -> HttpResponse:
    """Take back what a revision changed, as a new revision."""
    record = _changeable(request, record_id, number)

    def act() -> tuple[int, None]:
        return history.undo(record.pk, number, author=author(request)), None

    return _change(request, record, act, f"Undid revision {number}.")


@require_POST
def restore(request: HttpRequest, record_id: UUID, number: int) -> HttpResponse:
    """Show again what was visible at a revision, with what was observed since."""
    record = _changeable(request, record_id, number)
    reason = request.POST.get("reason", "")

    def act() -> tuple[int, None]:
        return restore_revision(record.pk, number, author=author(request), reason=reason), None

    return _change(request, record, act, f"Restored revision {number}.")


@require_POST
def operate(request: HttpRequest, thread_id: UUID, operation: str) -> HttpResponse:
    """Have the Observer or the Reflector try again, in the background."""
    thread = thread_or_404(request, thread_id)
    require(request, Right.OPERATE, thread.resource)
    home = f"/memory/{thread.pk}/"
    try:
        ask_for(operation, thread.pk)
    except Refused as refused:
        return _answer(request, str(refused), home, status=422)
    return _answer(request, "Asked for. It runs in the background.", home)


Act = Callable[[], tuple[int, UUID | None]]


def _change(request: HttpRequest, record: MemoryRecord, act: Act, said: str) -> HttpResponse:
    """Carry out a change and answer; what is refused is told, and nothing was changed."""
    try:
        number, line = act()
    except Refused as refused:
        status = 409 if isinstance(refused, Stale) else 422
        return _answer(request, _told(refused), _back(request, record), status=status)
    return _done(request, record, number, said, line)


def _told(refused: Refused) -> str:
    theirs = refused.theirs if isinstance(refused, Stale) else None
    return f"{refused} It says now: “{theirs}”." if theirs else str(refused)


def _done(
    request: HttpRequest,
    record: MemoryRecord,
    number: int,
    said: str,
    line: UUID | None = None,
) -> HttpResponse:
    to = _back(request, record, line)
    undoing = reverse("memory-undo", args=[record.pk, number])
    answer = _answer(request, said, to)
    if answer.status_code == 204:
        answer["X-Undo"] = undoing
    return answer


def _answer(request: HttpRequest, said: str, to: str, *, status: int = 204) -> HttpResponse:
    """Tell a script in a line of text, everybody else on the page they come back to."""
    if request.headers.get("HX-Request"):
        if status != 204:
            return HttpResponse(said, status=status, content_type="text/plain; charset=utf-8")
        return HttpResponse(status=204, headers={"X-Toast": quote(said)})
    (messages.success if status == 204 else messages.error)(request, said)
    answer = redirect(to)
    answer.status_code = 303
    return answer


def _back(request: HttpRequest, record: MemoryRecord, line: UUID | None = None) -> str:
    """Return where somebody came from, without the editor; else the memory's own page."""
    came = request.headers.get("Referer", "")
    home = home_of(record)
    allowed = url_has_allowed_host_and_scheme(came, {request.get_host()}, request.is_secure())
    path = came.split("/", 3)[3] if allowed and came.count("/") > 2 else ""
    elsewhere = any(part in path for part in ("lines/", "records/", "edit=", "rev="))
    if path.startswith("memory/") and not elsewhere:
        home = f"/{path.split('#')[0]}"
    return f"{home}#line-{line}" if line else home


def _editable(request: HttpRequest, line_id: UUID) -> Line:
    line = line_or_404(request, line_id)
    require(request, Right.EDIT, line.observation.record.resource)
    return line


def _changeable(request: HttpRequest, record_id: UUID, number: int) -> MemoryRecord:
    record = record_or_404(request, record_id)
    require(request, Right.EDIT, record.resource)
    if number > record.revision:
        raise Http404(f"There is no revision {number}; the latest is {record.revision}.")
    return record


def _record(line: Line) -> MemoryRecord:
    return line.observation.record


def _expected(request: HttpRequest) -> int | None:
    """Return the revision the change was made on; without one it is not compared."""
    text = request.POST.get("seen") or request.POST.get("expected", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 12 else None
