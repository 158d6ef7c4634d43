"""Answer the pages of the lab and the forms on them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote
from uuid import UUID

from django.contrib import messages
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from pydantic import ValidationError

from agents.access import Right, author, require
from agents.lab.faults import SAID
from agents.lab.models import LETTERS, Entry, Lab, Pane
from agents.lab.recording import recording
from agents.lab.requests import facts_of
from agents.lab.run import ask, skip, speak, tell
from agents.lab.scenario import Problem, Scenario, ScenarioError, read
from agents.lab.spent import why_no_more
from agents.lab.stage import open_lab, preset, presets, wipe
from agents.lab.steps import KINDS, Step, Switch
from agents.models import AgentProfile
from agents.services.send import BadPrompt
from agents.studio.respond import respond
from memory.services.change import Refused

from .custom import scenario_from
from .reading import Bench

REGIONS = ("panes", "strips", "matrix", "runlog", "controls")
OPERATIONS = ("observe", "buffer", "activate", "reflect", "check", "crash")


#: What each part of a pane can be told to do, with the words for it.
SWITCHES = [(part, [(how, SAID[how]) for how in Switch.choices(part)]) for part in Switch.PARTS]


def _labs() -> QuerySet[Lab]:
    states = Entry.State
    return Lab.objects.prefetch_related(
        "panes__person", "panes__resource", "panes__thread"
    ).annotate(
        left=Count("entries", filter=Q(entries__state__in=(states.WAITING, states.RUNNING))),
        failed=Count("entries", filter=Q(entries__state=states.FAILED)),
        passed=Count("entries", filter=Q(entries__state=states.PASSED)),
    )


def _lab(request: HttpRequest, lab_id: UUID) -> Lab:
    require(request, Right.LAB)
    return get_object_or_404(Lab, pk=lab_id)


@never_cache
@require_GET
def labs(request: HttpRequest) -> HttpResponse:
    """List the labs there are and the scenarios to open one with."""
    require(request, Right.LAB)
    return _list(request)


def _list(
    request: HttpRequest, *, problems: Any = (), given: Any = None, status: int = 200
) -> HttpResponse:
    context = {
        "labs": _labs().order_by("-created_at"),
        "presets": presets(),
        "letters": LETTERS,
        "agents": [a for a in AgentProfile.objects.order_by("name") if not a.is_of_lab],
        "problems": problems,
        "given": given or {},
    }
    return respond(
        request,
        "studio/lab/page.html",
        context,
        page="lab",
        regions=("labs",),
        watch=("everything",),
        status=status,
    )


@require_POST
def new(request: HttpRequest) -> HttpResponse:
    """Open a lab with a bundled scenario, a form's panes, or YAML; run it where asked to."""
    require(request, Right.LAB)
    try:
        text, scenario = _wanted(request)
        lab = open_lab(scenario, text, author=author(request))
    except ScenarioError as error:
        return _list(request, problems=error.problems, given=request.POST, status=422)
    if "run" in request.POST:
        ask(lab, scenario.steps)
    return redirect("lab", lab.pk)


def _wanted(request: HttpRequest) -> tuple[str, Scenario]:
    if name := request.POST.get("preset"):
        found = preset(name)
        if found is None:
            raise Http404
        return found
    if "source" in request.POST:
        text = request.POST["source"]
        return text, read(text)
    scenario = scenario_from(request.POST)
    return scenario.yaml, scenario


@never_cache
@require_GET
def bench(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Show a lab."""
    return _bench(request, _lab(request, lab_id))


def _bench(
    request: HttpRequest,
    lab: Lab,
    *,
    said: str = "",
    letter: str = "",
    source: str | None = None,
    problems: Any = (),
) -> HttpResponse:
    shown = Bench(lab, timezone.now())
    context = {
        "lab": lab,
        "bench": shown,
        "said": said,
        "letter": letter,
        "source": lab.source if source is None else source,
        "problems": problems,
        "switches": SWITCHES,
    }
    return respond(
        request,
        "studio/lab/bench.html",
        context,
        page="lab",
        regions=REGIONS,
        watch=[f"thread:{thread}" for thread in shown.scenes],
        status=422 if problems else 200,
    )


def _done(request: HttpRequest, lab: Lab, toast: str = "") -> HttpResponse:
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"X-Toast": quote(toast)} if toast else {})
    if toast:
        messages.info(request, toast)
    return redirect("lab", lab.pk)


def _refused(request: HttpRequest, lab: Lab, why: str, **given: Any) -> HttpResponse:
    problems = [Problem(0, why)]
    if request.headers.get("HX-Request"):
        return render(request, "studio/lab/problems.html", {"problems": problems}, status=422)
    return _bench(request, lab, problems=problems, **given)


def _pane(lab: Lab, letter: str) -> Pane:
    if letter not in LETTERS or not letter:
        raise Http404
    panes = lab.panes.select_related("person")
    return get_object_or_404(panes, ordinal=LETTERS.index(letter))


@require_POST
def say(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Send a message in a pane as its person."""
    lab = _lab(request, lab_id)
    pane, text = _pane(lab, request.POST.get("pane", "")), request.POST.get("text", "")
    if why := why_no_more(lab):
        return _refused(request, lab, why, said=text, letter=pane.letter)
    try:
        speak(pane, text)
    except BadPrompt as refusal:
        return _refused(request, lab, str(refusal), said=text, letter=pane.letter)
    step = {"say": {"pane": pane.letter, "text": text}}
    now = timezone.now()
    lab.entries.create(
        step=step, state=Entry.State.DONE, text="sent", started_at=now, finished_at=now
    )
    tell(lab)
    return _done(request, lab)


@require_POST
def broadcast(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Send one message in all panes, at the same instant where asked to."""
    lab = _lab(request, lab_id)
    fields: dict[str, Any] = {"text": request.POST.get("text", "")}
    if "at_once" in request.POST:
        fields["at_once"] = True
    return _ask(request, lab, "broadcast", fields)


@require_POST
def do(request: HttpRequest, lab_id: UUID, name: str) -> HttpResponse:
    """Have a pane's memory worked on, checked, or left by the process that observes it."""
    lab = _lab(request, lab_id)
    if name not in OPERATIONS:
        raise Http404
    pane = _pane(lab, request.POST.get("pane", ""))
    return _ask(request, lab, name, {"pane": pane.letter})


@require_POST
def fill_up(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Store filler text in a pane."""
    lab = _lab(request, lab_id)
    pane = _pane(lab, request.POST.get("pane", ""))
    fields = {"pane": pane.letter, "messages": request.POST.get("messages", "").strip()}
    return _ask(request, lab, "fill", fields, "Write how many messages: 1 to 500.")


@require_POST
def rested(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Let time pass for all panes."""
    lab = _lab(request, lab_id)
    fields = {"minutes": request.POST.get("minutes", "").strip()}
    return _ask(request, lab, "rest", fields, "Write how many minutes, at most a year of them.")


@require_POST
def collided(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Give a line of a pane two texts at the same instant."""
    lab = _lab(request, lab_id)
    pane = _pane(lab, request.POST.get("pane", ""))
    fields = {
        "pane": pane.letter,
        "line": request.POST.get("line", ""),
        "texts": request.POST.getlist("texts"),
    }
    why = "Write what the line says, and the two texts it gets."
    return _ask(request, lab, "collide", fields, why)


@require_POST
def bled(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Look whether a pane is led on by what another conversation is at."""
    lab = _lab(request, lab_id)
    pane = _pane(lab, request.POST.get("pane", ""))
    fields = {"pane": pane.letter, "by": _pane(lab, request.POST.get("by", "")).letter}
    return _ask(request, lab, "bleed", fields)


@require_POST
def leaked(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Plant a fact in a pane that must not know it, to see that the matrix finds it."""
    lab = _lab(request, lab_id)
    pane = _pane(lab, request.POST.get("pane", ""))
    number = request.POST.get("fact", "")
    known = {str(at): fact.text for at, fact in enumerate(facts_of(lab))}
    if number not in known:
        raise Http404
    return _ask(request, lab, "note", {"pane": pane.letter, "text": f"Planted: {known[number]}"})


@require_POST
def switched(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Have parts of a pane fail, say nothing, be slow, or work again."""
    lab = _lab(request, lab_id)
    pane = _pane(lab, request.POST.get("pane", ""))
    parts = {part: request.POST[part] for part in Switch.PARTS if request.POST.get(part)}
    why = "Choose what the Actor, the Observer or the Reflector is to do."
    return _ask(request, lab, "switch", {"pane": pane.letter, **parts}, why)


NO_TEXT = "The message is empty or too long. Write something first."


def _ask(
    request: HttpRequest, lab: Lab, name: str, fields: dict[str, Any], why: str = NO_TEXT
) -> HttpResponse:
    try:
        step: Step = KINDS[name].model_validate(fields)
    except ValidationError:
        return _refused(request, lab, why)
    ask(lab, [step])
    return _done(request, lab)


@require_POST
def facts(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Look for one more text, or no longer for one."""
    lab = _lab(request, lab_id)
    if "remove" in request.POST:
        number = request.POST["remove"]
        kept = [fact for at, fact in enumerate(lab.facts) if str(at) != number]
    else:
        text = " ".join(request.POST.get("text", "").split())[:500]
        if len(text) < 2:
            return _refused(request, lab, "Write at least two letters to look for.")
        kept = [*(fact for fact in lab.facts if fact["text"] != text), {"text": text, "pane": None}]
    lab.facts = kept
    lab.save(update_fields=["facts"])
    tell(lab)
    return _done(request, lab)


@require_POST
def run(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Run the lab's scenario, or the steps of the one that was written."""
    lab = _lab(request, lab_id)
    text = request.POST.get("source", lab.source)
    try:
        scenario = read(text)
        _same_panes(lab, scenario)
    except ScenarioError as error:
        if request.headers.get("HX-Request"):
            context = {"problems": error.problems}
            return render(request, "studio/lab/problems.html", context, status=422)
        return _bench(request, lab, source=text, problems=error.problems)
    known = {fact["text"] for fact in lab.facts}
    lab.facts += [f.model_dump(mode="json") for f in scenario.head.facts if f.text not in known]
    lab.source = text
    lab.save(update_fields=["facts", "source"])
    ask(lab, scenario.steps)
    return _done(request, lab)


def _same_panes(lab: Lab, scenario: Scenario) -> None:
    """Raise ScenarioError when a scenario is about panes that the lab has not."""
    there = {pane.letter for pane in lab.panes.all()}
    if missing := sorted(set(scenario.head.panes) - there):
        said = f"this lab has no pane {', '.join(missing)}; open a new lab with this scenario"
        raise ScenarioError([Problem(1, said)])


@require_POST
def stop(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Leave out the steps that nobody has begun."""
    lab = _lab(request, lab_id)
    left = skip(lab)
    return _done(request, lab, f"{left} step{'' if left == 1 else 's'} left out.")


@require_POST
def reset(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Wipe a lab and lay it out anew."""
    lab = _lab(request, lab_id)
    try:
        scenario = read(lab.source)
        wipe(lab)
        again = open_lab(scenario, lab.source, author=author(request))
    except (Refused, ScenarioError) as refusal:
        return _refused(request, lab, str(refusal))
    return _gone(request, reverse("lab", args=(again.pk,)))


@require_POST
def remove(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Wipe a lab with everything that was made for it."""
    lab = _lab(request, lab_id)
    try:
        counts = wipe(lab)
    except Refused as refusal:
        return _refused(request, lab, str(refusal))
    said = ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))
    messages.info(request, f"“{lab.name}” was wiped: {said}.")
    return _gone(request, reverse("labs"))


def _gone(request: HttpRequest, to: str) -> HttpResponse:
    if request.headers.get("HX-Request"):
        return HttpResponse(status=204, headers={"X-Go": to})
    return redirect(to)


@require_GET
def recorded(request: HttpRequest, lab_id: UUID) -> HttpResponse:
    """Return what was done in a lab as a scenario."""
    lab = _lab(request, lab_id)
    response = HttpResponse(recording(lab), content_type="text/yaml; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="lab-{lab.pk.hex[-8:]}.yaml"'
    return response
