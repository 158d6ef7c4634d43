import json

import pytest

from agents.audit import AuditEntry
from agents.models import AgentProfile, Turn
from agents.services.send import MOST_WAITING
from agents.services.thread import start
from agents.sockets import sockets
from memory.models import Message, Thread

pytestmark = pytest.mark.django_db


def pages(caller, path):
    """Return all items of a list, page by page, and how many pages there were."""
    join = "&" if "?" in path else "?"
    items, count, cursor = [], 0, ""
    while cursor is not None:
        page = caller.ok("GET", f"{path}{join}limit=2" + (f"&cursor={cursor}" if cursor else ""))
        items += page["items"]
        count += 1
        cursor = page["next"]
    return items, count


def test_lists_come_in_pages_that_hold_everything_once(member, world, resource):
    profile = AgentProfile.objects.get()
    made = [start(resource, profile, title=str(n)).pk for n in range(4)]

    threads, count = pages(member, "/threads")

    assert [each["id"] for each in threads] == [str(pk) for pk in reversed(made)] + [
        str(world.thread.pk)
    ]
    assert count == 3


@pytest.mark.parametrize(
    ("path", "by", "found"),
    [
        ("messages", "position", list(range(1, 11))),
        ("messages?newest_first=true", "position", list(range(10, 0, -1))),
        ("turns", "number", [1]),
        ("revisions", "number", [3, 2, 1]),
        (
            "memory/lines",
            "text",
            ["Ada asked for the time", "Ada keeps bees", "Ada asks about honey", "Wax is dear"],
        ),
    ],
)
def test_every_list_of_a_conversation_holds_everything_once(member, world, path, by, found):
    items, _ = pages(member, f"/threads/{world.thread.pk}/{path}")

    assert [each[by] for each in items] == found


def test_cycles_and_observations_come_in_pages_too(member, world):
    cycles, _ = pages(member, f"/threads/{world.thread.pk}/cycles")
    rows, _ = pages(member, f"/threads/{world.thread.pk}/memory/observations")

    assert len({each["id"] for each in cycles}) == len(cycles) == world.record.cycles.count()
    assert len({each["id"] for each in rows}) == len(rows) == world.record.observations.count()


@pytest.mark.parametrize("cursor", ["x", "e30", "W10", "WzEsMl0", "bnVsbA", "%00"])
@pytest.mark.parametrize("path", ["", "/messages", "/revisions", "/cycles", "/memory/lines"])
def test_a_cursor_that_no_list_gave_is_said_to_be_none(member, world, path, cursor):
    place = f"/threads/{world.thread.pk}{path}" if path else "/threads"
    if (path, cursor) == ("/memory/lines", "WzEsMl0"):
        return  # [1, 2] is one that list may well give.

    assert member.problem("GET", f"{place}?cursor={cursor}")[0] == 422


def test_lists_are_read_in_as_many_statements_however_long(
    member, world, resource, django_assert_max_num_queries
):
    profile = AgentProfile.objects.get()
    for number in range(30):
        start(resource, profile, title=str(number))

    with django_assert_max_num_queries(6):
        member.ok("GET", "/threads")
    with django_assert_max_num_queries(8):
        member.ok("GET", f"/threads/{world.thread.pk}/turns")


def test_a_conversation_is_begun_renamed_and_archived(member, world):
    made = member.ok("POST", "/threads", {"resource": "ada", "title": "New", "temporary": True})
    assert (made["title"], made["agent"], made["remembers"]) == ("New", "demo", False)

    place = f"/threads/{made['id']}"
    assert member.ok("PATCH", place, {"title": " Hives  now "})["title"] == "Hives now"
    assert member.ok("PATCH", place, {"archived": True})["archived_at"]
    assert made["id"] not in {each["id"] for each in member.ok("GET", "/threads")["items"]}
    assert member.ok("GET", "/threads?archived=true")["items"][0]["id"] == made["id"]
    assert member.ok("PATCH", place, {"archived": False})["archived_at"] is None


def test_search_and_resource_narrow_the_list(member, world, resource):
    start(resource, AgentProfile.objects.get(), title="Taxes")

    assert [e["title"] for e in member.ok("GET", "/threads?search=bee")["items"]] == ["Bees"]
    assert len(member.ok("GET", "/threads?resource=ada")["items"]) == 2
    assert member.problem("GET", "/threads?resource=eve")[0] == 404


def test_a_deletion_can_be_undone_and_is_noted(member, world):
    place = f"/threads/{world.thread.pk}"
    assert member.call("DELETE", place).status_code == 204
    assert member.problem("GET", place)[0] == 404
    assert AuditEntry.objects.get(action="delete").thread == world.thread.pk

    assert member.ok("POST", f"{place}/undelete")["id"] == str(world.thread.pk)
    assert member.ok("GET", place)["title"] == "Bees"


def test_what_others_would_lose_by_is_asked_about_first(member, world, resource):
    from memory.services.scope import change_scope

    change_scope(resource.pk, "resource")
    place = f"/threads/{world.thread.pk}"

    status, sentence = member.problem("DELETE", place)
    assert (status, "they lose what it says" in sentence) == (409, True)
    assert member.call("DELETE", f"{place}?confirm={world.thread.pk}").status_code == 204


def test_a_fork_is_a_conversation_of_its_own(member, world):
    made = member.ok("POST", f"/threads/{world.thread.pk}/fork", {"position": 4, "title": "If"})

    assert (made["parent"], made["fork_position"], made["messages"]) == (str(world.thread.pk), 4, 4)
    status, sentence = member.problem("POST", f"/threads/{world.thread.pk}/fork", {"position": 3})
    assert status == 422
    assert "The nearest to fork at: 2 and 4." in sentence


def test_a_conversation_is_written_out_both_ways(member, world):
    place = f"/threads/{world.thread.pk}/export"
    assert member.get(place).content.decode().startswith("# Bees")
    lines = member.get(f"{place}?format=jsonl").content.decode().splitlines()
    assert json.loads(lines[0])["type"] == "thread"
    assert member.problem("GET", f"{place}?format=pdf")[0] == 422


def test_a_message_makes_a_waiting_turn(member, world):
    response = member.post(f"/threads/{world.thread.pk}/messages", {"text": "And mead?"})

    assert response.status_code == 201
    turn = response.json()
    assert (turn["number"], turn["status"], turn["prompt"]) == (2, "waiting", "And mead?")
    assert Turn.objects.get(number=2).author.get_username() == "ada"


def test_the_same_key_makes_one_turn(member, world):
    place = f"/threads/{world.thread.pk}/messages"
    key = {"Idempotency-Key": "order 66"}
    first = member.call("POST", place, {"text": "And mead?"}, **key)
    again = member.call("POST", place, {"text": "And mead?"}, **key)

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert Turn.objects.filter(prompt="And mead?").count() == 1


def test_a_key_used_for_something_else_is_a_conflict(member, world):
    place = f"/threads/{world.thread.pk}/messages"
    key = {"Idempotency-Key": "order 66"}
    member.ok("POST", place, {"text": "And mead?"}, **key)

    assert member.problem("POST", place, {"text": "And wine?"}, **key)[0] == 409


def test_two_people_may_choose_the_same_key(member, admin, world):
    place = f"/threads/{world.thread.pk}/messages"
    for caller in (member, admin):
        response = caller.call("POST", place, {"text": "Mead?"}, **{"Idempotency-Key": "1"})
        assert response.status_code == 201

    assert Turn.objects.filter(prompt="Mead?").count() == 2


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ({"text": " "}, "The message is empty"),
        ({"text": 5}, "text"),
        ({"text": "x" * 200_001}, "200,000"),
        ({"text": "Look", "files": ["forged"]}, "A file is not known here"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_a_sentence(member, world, body, sentence):
    status, said = member.problem("POST", f"/threads/{world.thread.pk}/messages", body)

    assert status == 422
    assert sentence in said


def test_too_many_waiting_messages_are_refused(member, world):
    place = f"/threads/{world.thread.pk}/messages"
    for _ in range(MOST_WAITING):
        member.ok("POST", place, {"text": "More"})

    assert member.problem("POST", place, {"text": "More"})[0] == 422


def test_a_message_comes_whole_when_asked(member, world):
    place = f"/threads/{world.thread.pk}/messages"
    stored = Message.objects.get(thread=world.thread, position=1)

    assert member.ok("GET", place)["items"][0]["payload"] is None
    assert member.ok("GET", f"{place}?whole=true")["items"][0]["payload"] == stored.payload
    assert member.ok("GET", f"{place}/1")["payload"] == stored.payload
    assert member.problem("GET", f"{place}/99")[0] == 404


def test_a_turn_comes_with_what_was_answered(member, world):
    turn = member.ok("GET", f"/threads/{world.thread.pk}/turns/1")

    assert turn["text"] == "There is much to say of time."
    assert member.problem("GET", f"/threads/{world.thread.pk}/turns/9")[0] == 404


def test_a_waiting_message_is_taken_back_and_an_ended_turn_is_not_stopped(member, world):
    turn = member.ok("POST", f"/threads/{world.thread.pk}/messages", {"text": "And mead?"})
    place = f"/threads/{world.thread.pk}/turns"

    assert member.ok("POST", f"{place}/{turn['number']}/stop")["status"] == "withdrawn"
    status, sentence = member.problem("POST", f"{place}/1/stop")
    assert (status, sentence) == (409, "Turn 1 has ended already: it is done.")


def test_a_failed_turn_is_tried_again_once(member, world):
    Turn.objects.update(status=Turn.Status.FAILED, error="The model is away.")
    place = f"/threads/{world.thread.pk}/turns/1/retry"

    assert member.ok("POST", place)["number"] == 2
    assert member.ok("POST", place)["number"] == 2
    assert member.problem("POST", f"/threads/{world.thread.pk}/turns/2/retry")[0] == 422


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("GET", "/threads/7", 404),
        ("PUT", "/threads", 405),
    ],
)
def test_what_does_not_exist_is_said_so(member, world, method, path, status):
    assert member.call(method, path).status_code == status


def test_a_body_that_is_no_json_is_a_problem(member, world):
    response = member.client.post(
        f"/api/v1/threads/{world.thread.pk}/messages",
        "{",
        content_type="application/json",
        headers=member.headers,
    )
    assert response.status_code in (400, 422)
    assert response["Content-Type"] == "application/problem+json"


def test_what_fails_unforeseen_is_a_problem_without_its_innards(member, world):
    Thread.objects.filter(pk=world.thread.pk).update(agent="gone")
    Message.objects.filter(thread=world.thread, position=1).update(payload={"odd": True})

    status, sentence = member.problem("GET", f"/threads/{world.thread.pk}/export?format=md")
    assert (status, "odd" in sentence) == (500, False)


def test_a_stream_too_many_is_refused_before_anything_is_sent(member, world, ada, settings):
    settings.SOCKETS_PER_USER = 1
    sockets.enter(ada.pk)
    path = f"/threads/{world.thread.pk}"
    try:
        status, said = member.problem("POST", f"{path}/messages?stream=true", {"text": "Late"})
        assert member.call("GET", f"{path}/turns/1/stream").status_code == 429
    finally:
        sockets.leave(ada.pk)
    assert (status, "close others" in said) == (429, True)
    assert not Turn.objects.filter(prompt="Late").exists()
