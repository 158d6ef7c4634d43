"""Ask before something is done: say what it does in numbers, and have dangerous things typed.

An act is a page: opened, it says what would happen; only a POST of its form carries it out. What
cannot be taken back asks for a word that names it, and every act leaves a line in the audit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextInputWidget

from agents.audit import LONGEST_REASON, note_act
from memory.models import Resource
from memory.services.change import Refused

Report = Mapping[str, Any]


@dataclass(frozen=True)
class Done:
    """Say what an act did: in a sentence, in numbers, and where to go on."""

    sentence: str
    numbers: Report = field(default_factory=dict)
    go: str = ""


@dataclass(frozen=True)
class Act:
    """Describe something that can be done to a row.

    ``facts`` are its consequences as (what, how many), ``type_this`` what must be typed to go on.
    ``number`` names a whole number that is asked for, with the value it begins with.
    """

    name: str
    title: str
    says: str
    button: str
    carry_out: Callable[[Mapping[str, Any]], Done]
    back: str
    resource: Resource | str = ""
    thread: UUID | None = None
    facts: Sequence[tuple[str, object]] = ()
    type_this: str = ""
    number: tuple[str, int] | None = None
    why: bool = True


class Answer(forms.Form):
    """Take the answer to what an act asks."""

    def __init__(self, act: Act, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.act = act
        if act.number is not None:
            name, value = act.number
            self.fields["number"] = forms.IntegerField(
                label=name, min_value=0, initial=value, widget=UnfoldAdminIntegerFieldWidget
            )
        if act.why:
            self.fields["reason"] = forms.CharField(
                label="Reason, for the history",
                required=False,
                max_length=LONGEST_REASON,
                widget=UnfoldAdminTextInputWidget,
            )
        if act.type_this:
            self.fields["typed"] = forms.CharField(
                label=f"Type {act.type_this} to go on",
                widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
            )

    def clean_typed(self) -> str:
        """Return what was typed. Raises ValidationError when it is something else."""
        typed = str(self.cleaned_data["typed"]).strip()
        if typed != self.act.type_this:
            raise forms.ValidationError("This is not what was asked for. Nothing was done.")
        return typed


def ask(request: HttpRequest, site: Any, act: Act) -> HttpResponse:
    """Show what an act would do, or carry it out; show its report where it has one."""
    form = Answer(act, request.POST) if request.method == "POST" else Answer(act)
    if request.method == "POST" and form.is_valid():
        try:
            done = act.carry_out(form.cleaned_data)
        except Refused as refusal:
            form.add_error(None, str(refusal))
        else:
            _note(request, act, done, form.cleaned_data)
            return _answer(request, site, act, done)
    status = 422 if request.method == "POST" else 200
    context = {**site.each_context(request), "title": act.title, "act": act, "form": form}
    return TemplateResponse(request, "admin/ask.html", context, status=status)


def _note(request: HttpRequest, act: Act, done: Done, given: Mapping[str, Any]) -> None:
    note_act(
        request,
        act.name,
        resource=act.resource,
        thread=act.thread,
        reason=given.get("reason", ""),
        numbers=done.numbers,
    )


def _answer(request: HttpRequest, site: Any, act: Act, done: Done) -> HttpResponse:
    if act.type_this:
        context = {**site.each_context(request), "title": act.title, "act": act, "done": done}
        return TemplateResponse(request, "admin/done.html", context)
    messages.success(request, done.sentence)
    return HttpResponseRedirect(done.go or act.back)
