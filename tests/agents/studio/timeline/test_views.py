import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from agents.models import Turn
from memory.models import Cycle, Line, Revision, Thread
from memory.models.state import read_state
from memory.services.look import look

from .lives import say

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def get(client, ada, lived):
    """Return a function that reads the timeline as Ada."""
    client.force_login(ada)

    def read(query="", **how):
        return client.get(f"/timeline/{lived.pk}/{query}", **how)

    return read


def text(response):
    return " ".join(response.content.decode().split())


def kinds(response):
    return re.findall(r'<tr id="event-\w+" data-kind="(\w+)"', response.content.decode())


def record_of(thread):
    return read_state(thread.pk).record


def test_turns_cycles_and_changes_stand_in_one_table_the_newest_first(get):
    response = get()
    found = kinds(response)
    assert found[0] == "reflect"
    assert found.count("turn") == 3
    assert set(found) == {"turn", "observe", "edit", "reflect"}
    page = text(response)
    for words in ("Line edited by ada", "It rose in May.", "Condensed", "Answered · turn 1"):
        assert words in page


def test_the_curves_say_in_words_that_they_came_down(get):
    page = text(get())
    assert re.search(r"Message tokens are 0 of 600 now, at most \d+ at .*?; they came down", page)
    assert re.search(r"Observation tokens are \d+ of .*?; they came down once, last at", page)


def test_the_curve_of_observations_goes_down_after_a_reflection(get, lived):
    data = json.loads(
        re.search(r'data-curves="([^"]+)"', get().content.decode())[1].replace("&quot;", '"')
    )
    reflected = Revision.objects.get(record=record_of(lived), cause="reflect")
    assert data["observations"][-1] == reflected.tokens_after < max(data["observations"])
    assert data["messages"][-1] == 0 < max(data["messages"])
    assert data["x"] == sorted(data["x"])
    assert len(data["x"]) == len(data["messages"]) == len(data["at"])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("?kind=turn", {"turn"}),
        ("?kind=edit&kind=reflect", {"edit", "reflect"}),
        ("?kind=nonsense", {"turn", "observe", "edit", "reflect"}),
    ],
)
def test_kinds_are_filtered(get, query, found):
    assert set(kinds(get(query))) <= found
    assert set(kinds(get(query))) & found


def test_what_failed_or_took_long_is_found(get, lived):
    say(lived, 4, took=90)
    say(lived, 5, status="failed")
    assert kinds(get("?failed=1")) == ["turn"]
    assert "Not answered · turn 5" in text(get("?failed=1"))
    assert kinds(get("?least=60")) == ["turn"]
    assert "turn 4" in text(get("?least=60"))
    assert "Nothing fits these filters." in text(get("?least=6000"))


def test_a_window_leaves_out_what_is_before_and_after(get, lived):
    say(lived, 4, at=timezone.now() + timedelta(hours=2))
    middle = (timezone.now() + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert kinds(get(f"?since={middle}")) == ["turn"]
    assert "turn 4" not in text(get(f"?until={middle}"))
    assert get("?since=yesterday&least=much&thread=x").status_code == 200


def test_pages_go_on_where_the_last_ended(get, lived):
    for number in range(4, 110):
        say(lived, number)
    first, second = get(), get("?page=2")
    assert len(kinds(first)) == len(kinds(second)) == 50
    ids = re.findall(r'<tr id="(event-\w+)"', (first.content + second.content).decode())
    assert len(set(ids)) == 100
    assert 'rel="next"' in text(first)
    assert get("?page=999").status_code == 200


def test_travelling_shows_memory_as_it_was_read_only(get, lived):
    noted = Revision.objects.get(record=record_of(lived), cause="note")
    page = text(get(f"?at={noted.number}"))
    assert "data-past" in page
    assert "Oak costs eighty euros" in page
    assert "Oak costs ninety euros" not in page
    assert f"As of revision {noted.number}" in page
    assert f'<tr id="event-{noted.pk}" data-kind="edit" aria-current="true">' in page
    assert "Oak costs eighty euros" not in text(get())


def test_the_gauges_stand_where_they_stood(get, lived):
    page = get("?at=0").content.decode()
    assert 'id="gauge-then-observations"' in page
    assert 'aria-valuenow="0"' in page.split('id="gauge-then-observations"')[1][:400]
    assert "Nothing was visible yet." in page


def test_a_cycle_or_a_turn_stands_for_the_moment_it_ended(get, lived):
    cycle = Cycle.objects.filter(kind="reflect").get()
    number = Revision.objects.get(cycle=cycle, cause="reflect").number
    assert f"As of revision {number}" in text(get(f"?at={cycle.pk}"))
    turn = Turn.objects.get(number=1)
    Turn.objects.filter(pk=turn.pk).update(finished_at=turn.started_at)
    assert "Before anything was remembered" in text(get(f"?at={turn.pk}"))


@pytest.mark.parametrize("at", ["999", "-1", "x", "00000000-0000-7000-8000-000000000000"])
def test_a_time_that_is_not_there_is_not_found(get, at):
    assert get(f"?at={at}").status_code == 404


def test_the_page_with_the_moment_is_turned_to(get, lived):
    for number in range(4, 110):
        say(lived, number)
    noted = Revision.objects.get(record=record_of(lived), cause="note")
    assert f'id="event-{noted.pk}" data-kind="edit" aria-current="true"' in text(
        get(f"?at={noted.number}")
    )


def test_a_fork_from_a_revision_copies_what_memory_covered_by_then(client, get, lived):
    noted = Revision.objects.get(record=record_of(lived), cause="note")
    say(lived, 4)
    page = text(get(f"?at={noted.number}"))
    assert "messages 1–6, which memory had observed by then" in page
    assert "2 later messages and what was made of them stay behind." in page
    response = client.post(f"/timeline/{lived.pk}/fork", {"revision": noted.number, "title": "If"})
    child = Thread.objects.get(parent=lived)
    assert response.headers["Location"] == f"/chat/{child.pk}/"
    assert (child.title, child.fork_position) == ("If", 6)
    assert child.turns.count() == 3
    assert Line.objects.filter(observation__record=look(child.pk).record).exists()


def test_a_fork_from_before_any_observation_takes_the_messages_there_were(client, get, lived):
    response = client.post(f"/timeline/{lived.pk}/fork", {"revision": "0"})
    assert response.status_code == 302
    child = Thread.objects.get(parent=lived)
    assert child.fork_position in (0, 2, 4, 6)


def test_who_may_only_read_is_offered_no_fork(client, get, lived, cleo):
    from django.contrib.auth.models import Group

    group, _ = Group.objects.get_or_create(name="viewers")
    cleo.groups.add(group)
    lived.resource.members.add(cleo)
    client.force_login(cleo)
    assert "Fork from here" not in text(client.get(f"/timeline/{lived.pk}/?at=1"))
    assert client.post(f"/timeline/{lived.pk}/fork", {"revision": "1"}).status_code == 403


def test_what_one_may_not_see_is_not_there(client, lived, cleo):
    client.force_login(cleo)
    for address in ("", "events.jsonl"):
        assert client.get(f"/timeline/{lived.pk}/{address}").status_code == 404
    assert client.post(f"/timeline/{lived.pk}/fork", {"revision": "0"}).status_code == 404


def test_events_are_exported_as_lines_of_json(get, lived, client):
    lines = client.get(f"/timeline/{lived.pk}/events.jsonl?kind=turn").content.decode().splitlines()
    events = [json.loads(line) for line in lines]
    assert [event["number"] for event in events] == [3, 2, 1]
    everything = client.get(f"/timeline/{lived.pk}/events.jsonl").content.decode().splitlines()
    assert len(everything) == len(kinds(get()))


def test_a_conversation_without_anything_says_what_will_appear(client, ada, thread):
    client.force_login(ada)
    page = text(client.get(f"/timeline/{thread.pk}/"))
    assert "Nothing has happened here yet" in page
    assert "Memory has not worked here yet: 0 of" in page
    assert "Message tokens: nothing yet." in page
    assert client.get(f"/timeline/{thread.pk}/?at=0").status_code == 404


def test_only_regions_that_changed_are_sent(get, lived):
    shown = dict(re.findall(r'id="(\w+)" data-etag="(\w+)"', get().content.decode()))
    assert set(shown) == {"travel", "lanes", "curves", "events"}
    ask = {"X-Regions": json.dumps(shown)}
    assert get(headers=ask).content == b""
    say(lived, 4)
    assert 'hx-target="#events"' in get(headers=ask).content.decode()


def test_conversations_that_share_a_memory_share_a_timeline(client, ada, resource, profile):
    from agents.services.thread import start

    resource.scope = "resource"
    resource.save()
    one, two = start(resource, profile, title="One"), start(resource, profile, title="Two")
    for thread in (one, two):
        say(thread, 1)
        look(thread.pk)
    client.force_login(ada)
    page = client.get(f"/timeline/{one.pk}/")
    assert kinds(page) == ["turn", "turn"]
    assert "one memory for 2 conversations" in text(page)
    assert kinds(client.get(f"/timeline/{one.pk}/?thread={two.pk}")) == ["turn"]


def test_a_long_history_takes_as_many_statements_as_a_short_one(
    get, lived, django_assert_max_num_queries
):
    for number in range(4, 80):
        say(lived, number)
    with django_assert_max_num_queries(32):
        get()
    with django_assert_max_num_queries(42):
        get("?at=2")


def link_of(response, name):
    found = re.search(rf'id="window-{name}" href="([^"#]+)#lanes"', response.content.decode())
    return found and found[1].replace("&amp;", "&")


def test_a_narrower_window_and_all_are_links(get):
    whole = get()
    assert link_of(whole, "all") is None
    narrow = get(link_of(whole, "narrower"))
    assert 0 < len(kinds(narrow)) < len(kinds(whole))
    assert kinds(get(link_of(narrow, "all"))) == kinds(whole)


def test_a_way_to_another_window_keeps_the_time_travelled_to(get):
    assert "at=1&" in link_of(get("?at=1"), "narrower")


def test_the_number_of_a_revision_can_be_written_without_a_script(get):
    page = get("?at=2").content.decode()
    assert re.search(r'<input [^>]*id="revision" name="at" form="filters"[^>]* value="2"', page)
    assert "data-past" in page


def test_the_end_of_a_window_is_never_rounded_into_it(get):
    page = get("?until=2026-03-02T12:00:00.250Z").content.decode()
    assert re.search(r'name="until" value="2026-03-02T\d\d:00:01"', page)
