"""Leave what labs made out of lists and sums, unless somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from django.contrib.admin import SimpleListFilter
from django.db.models import BooleanField, Case, Q, QuerySet, Value, When
from django.http import HttpRequest

from agents.lab.models import Pane

Some = TypeVar("Some", bound=QuerySet[Any])

ASKED = "lab"
TOO, ONLY = "too", "only"


def made_for_labs(path: str, by: str = "resource") -> Q:
    """Select rows of labs by the way from a row to its resource, or to another part of a pane."""
    return Q(**{f"{path}__in": Pane.objects.order_by().values(by)})


def shows_labs(request: HttpRequest) -> bool:
    """Tell whether labs are asked for."""
    return request.GET.get(ASKED) in (TOO, ONLY)


def real(rows: Some, path: str, *, labs: bool) -> Some:
    """Leave out what labs made, unless it is to stay."""
    return rows if labs else rows.exclude(made_for_labs(path))


class LabFilter(SimpleListFilter):
    """Show rows of labs only when asked; then each is marked."""

    title = "labs"
    model_admin: Any
    parameter_name = ASKED

    def __init__(self, request: HttpRequest, params: Any, model: Any, model_admin: Any) -> None:
        super().__init__(request, params, model, model_admin)
        self.model_admin = model_admin

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Return what may be asked for besides the real rows alone."""
        return [(TOO, "Shown too"), (ONLY, "Labs only")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Keep real rows, those of labs, or both; the latter two say which each is."""
        labs: Q = self.model_admin.lab_rows
        if self.value() not in (TOO, ONLY):
            return queryset.exclude(labs)
        chosen = queryset.filter(labs) if self.value() == ONLY else queryset
        marked = Case(When(labs, then=True), default=Value(False), output_field=BooleanField())
        return chosen.annotate(of_lab=marked)

    def choices(self, changelist: Any) -> Iterator[Any]:
        """Yield the choices; the first is the real rows alone, not all."""
        first, *rest = super().choices(changelist)
        yield {**first, "display": "Left out"}
        yield from rest
