"""What every turn asks does not take longer the more turns a conversation has."""

import re

import pytest
from django.db import connection

from agents.services.allow import stand
from agents.services.begin import begin
from agents.stamps import stamps
from memory.models.state import read_state

pytestmark = pytest.mark.django_db


def plans(ask):
    """Return how the database carries out each statement sent, if it may choose any index."""
    sent, found = [], []

    def keep(execute, sql, params, many, context):
        sent.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(keep):
        ask()
    with connection.cursor() as cursor:
        explain = "EXPLAIN QUERY PLAN"
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")
            explain = "EXPLAIN"
        for sql, params in sent:
            if sql.lstrip().startswith(("SELECT", "WITH")):
                cursor.execute(f"{explain} {sql}", params)
                found += [str(row[-1]) for row in cursor.fetchall()]
    return "\n".join(found)


@pytest.mark.parametrize(
    ("ask", "index"),
    [
        (lambda thread: stand(thread.pk, None), "turn_open|turn_waiting"),
        (lambda thread: begin(thread.pk), "turn_open"),
        (lambda thread: stamps([thread.pk]), "turn_open"),
        (lambda thread: read_state(thread.pk), "reflection_waits"),
    ],
    ids=["sending", "beginning", "watching", "preparing"],
)
def test_what_is_open_among_what_is_over_is_found_by_an_index(thread, ask, index):
    assert re.search(index, plans(lambda: ask(thread)))
