"""The page of a large memory: what it costs this process, and how many statements."""

import pytest
from django.utils import timezone

from memory.models import Line, Observation, Revision

MOST_STATEMENTS = 32


def fill(world, lines, revisions=1):
    """Let the memory have so many visible lines, shown by so many revisions."""
    now = timezone.now()
    each = lines // revisions
    for _ in range(revisions):
        number = world.revise("observe")
        row = Observation.objects.create(
            record=world.record, kind="note", since=number, place=number, tokens=each
        )
        Line.objects.bulk_create(
            Line(
                observation=row,
                ordinal=at,
                kind=Line.Kind.values[at % 5],
                text=f"Line {at} of revision {number} says that oak costs {at} euros",
                tokens=12,
                said_at=now,
                since=number,
            )
            for at in range(each)
        )
    Revision.objects.filter(record=world.record).update(tokens_after=24_000)


@pytest.mark.parametrize("query", ["", "?seen=agent", "?view=raw", "?view=diff&rev=3&with=2"])
def test_two_thousand_lines_are_shown_in_few_statements(
    here, world, query, django_assert_max_num_queries
):
    fill(world, 1990)

    with django_assert_max_num_queries(MOST_STATEMENTS):
        answer = here.get(f"/memory/{world.thread.pk}/{query}")

    assert answer.status_code == 200
    assert answer.content.count(b"of revision 3 says") >= 1990


@pytest.mark.parametrize("query", ["", "?view=diff&with=1", "?q=oak", "?seen=agent", "?rev=2"])
def test_the_statements_do_not_grow_with_the_memory(
    here, condensed, query, django_assert_max_num_queries
):
    url = f"/memory/{condensed.thread.pk}/{query}"
    fill(condensed, 400, revisions=40)

    with django_assert_max_num_queries(MOST_STATEMENTS):
        assert here.get(url).status_code == 200


def test_above_two_thousand_rows_the_oldest_groups_are_folded_and_open_on_demand(here, world):
    fill(world, 2100)
    url = f"/memory/{world.thread.pk}/?group=priority"

    page = here.get(url).content.decode()

    assert page.count("data-row") <= 2000
    assert "lines, " in page
    assert "show them" in page
    opened = here.get(f"{url}&opened=High-priority-1").content.decode()
    assert opened.count('data-kind="high" data-row') == 420
