import pytest

from agents.audit import AuditEntry
from agents.models import AgentProfile
from memory.models import Blob, Cycle, MemoryRecord
from memory.models.blob import digest
from tests.memory.services.editing import line, texts, wrong

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(world):
    return f"/threads/{world.thread.pk}"


def said(caller, place, query=""):
    return [each["text"] for each in caller.ok("GET", f"{place}/memory/lines{query}")["items"]]


def test_the_state_says_what_is_raw_buffered_and_remembered(member, world, place):
    state = member.ok("GET", f"{place}/memory")

    active = state["windows"]["active"]
    buffered = state["windows"]["buffered"]["observations"]
    assert (state["recordId"], state["revision"]) == (str(world.record.pk), 3)
    lines = member.ok("GET", f"{place}/memory/lines")["items"]
    heading = 14
    assert active["observations"]["tokens"] == sum(each["tokens"] for each in lines) + heading
    assert (buffered["chunks"], buffered["status"]) == (1, "complete")
    assert active["messages"]["tokens"] > buffered["messageTokens"] > 0
    assert (state["observedThrough"], state["lastPosition"]) == (6, 10)


def test_reading_a_state_makes_no_record(member, world, resource):
    from agents.models import AgentProfile
    from agents.services.thread import start

    fresh = start(resource, AgentProfile.objects.get())
    before = MemoryRecord.objects.count()

    state = member.ok("GET", f"/threads/{fresh.pk}/memory")

    assert (state["recordId"], state["revision"]) == (None, 0)
    assert said(member, f"/threads/{fresh.pk}") == []
    assert member.ok("GET", f"/threads/{fresh.pk}/revisions")["items"] == []
    assert member.problem("POST", f"/threads/{fresh.pk}/memory/notes", {"text": "x"})[0] == 409
    assert MemoryRecord.objects.count() == before


def test_a_conversation_that_forgets_has_no_memory(member, world, resource):
    made = member.ok("POST", "/threads", {"resource": "ada", "temporary": True})

    assert member.problem("GET", f"/threads/{made['id']}/memory")[0] == 409


def test_lines_are_those_of_any_revision(member, world, place):
    assert said(member, place) == texts(world.record)
    assert said(member, place, "?revision=1") == texts(world.record, 1)
    assert member.problem("GET", f"{place}/memory/lines?revision=9")[0] == 404
    assert member.problem("GET", f"{place}/memory/lines?revision=-1")[0] == 404


def test_pages_of_lines_stay_at_their_revision_while_memory_changes(member, world, place):
    first = member.ok("GET", f"{place}/memory/lines?limit=2")
    member.ok("POST", f"{place}/memory/notes", {"text": "Later"})
    second = member.ok("GET", f"{place}/memory/lines?limit=2&cursor={first['next']}")

    assert [each["text"] for each in first["items"] + second["items"]] == texts(world.record, 3)
    assert second["next"] is None


def test_an_edit_makes_a_revision_by_its_author(member, world, place):
    made = member.ok(
        "PATCH", f"/lines/{world.a0.pk}", {"text": "Ada asked for noon", "reason": "So"}
    )

    assert made["replaces"] == str(world.a0.pk)
    latest = member.ok("GET", f"{place}/revisions?limit=1")["items"][0]
    assert (latest["cause"], latest["author"], latest["reason"]) == ("edit", "ada", "So")
    assert wrong() == []


def test_a_stale_edit_is_a_conflict_that_tells_both_texts(member, world):
    member.ok("PATCH", f"/lines/{world.a0.pk}", {"text": "Ada asked for noon"})

    response = member.call("PATCH", f"/lines/{world.a0.pk}", {"text": "Ada asked for dawn"})

    problem = response.json()
    assert response.status_code == 409
    assert (problem["yours"], problem["theirs"]) == ("Ada asked for dawn", "Ada asked for noon")
    assert problem["current"] == str(line(world.record, "Ada asked for noon").pk)


def test_an_edit_of_what_was_seen_earlier_is_a_conflict(member, world):
    made = member.ok("PATCH", f"/lines/{world.a0.pk}", {"text": "Ada asked for noon"})

    given = {"text": "Ada asked for dawn", "expected": 3}
    assert member.problem("PATCH", f"/lines/{made['id']}", given)[0] == 409
    assert member.ok("PATCH", f"/lines/{made['id']}", {**given, "expected": 4})["since"] == 5


@pytest.mark.parametrize("given", [{"text": " "}, {"text": "Other", "kind": "rumour"}, {}])
def test_an_edit_that_cannot_be_is_refused(member, world, given):
    assert member.problem("PATCH", f"/lines/{world.a0.pk}", given)[0] == 422


def test_lines_are_pinned_forgotten_and_shown_again(member, world, place):
    pinned = member.ok("POST", f"/lines/{world.a0.pk}/pin")
    assert pinned["pinned"]
    free = member.ok("POST", f"/lines/{pinned['id']}/unpin", {"expected": 4})
    assert not free["pinned"]

    assert member.ok("POST", f"/lines/{free['id']}/forget", {"reason": "Old"}) == {"revision": 6}
    assert "Ada asked for the time" not in said(member, place)
    member.ok("POST", f"/lines/{free['id']}/unforget")
    assert "Ada asked for the time" in said(member, place)
    assert wrong() == []


def test_a_change_is_undone_and_an_earlier_revision_restored(member, world, place):
    member.ok("POST", f"{place}/memory/notes", {"text": "Later", "kind": "low"})
    assert member.ok("POST", f"{place}/memory/undo", {"revision": 4}) == {"revision": 5}
    assert said(member, place) == texts(world.record, 3)

    member.ok("POST", f"{place}/memory/restore", {"revision": 2})
    assert said(member, place) == texts(world.record, 2)
    assert member.problem("POST", f"{place}/memory/restore", {"revision": 99})[0] == 422


def test_a_clear_says_what_went_and_is_noted(member, world, place):
    done = member.ok("POST", f"{place}/memory/clear", {"reason": "Start anew"})

    assert (done["lines"], done["chunks"], said(member, place)) == (4, 1, [])
    entry = AuditEntry.objects.get(action="clear")
    assert (entry.reason, entry.numbers["lines"]) == ("Start anew", 4)


def test_two_revisions_are_compared(member, world, place):
    made = member.ok("PATCH", f"/lines/{world.a0.pk}", {"text": "Ada asked for noon"})

    found = member.ok("GET", f"{place}/revisions/compare?first=2&second=4")

    assert [each["text"] for each in found["added"]] == ["Wax is dear"]
    assert found["removed"] == []
    assert [(each["before"]["text"], each["after"]["id"]) for each in found["changed"]] == [
        ("Ada asked for the time", made["id"])
    ]


def test_a_line_leads_to_its_messages(member, world):
    found = member.ok("GET", f"/lines/{world.a0.pk}/sources")

    assert [each["position"] for each in found] == [1, 2]


def test_a_cycle_comes_with_what_was_asked_and_replied(member, world):
    Blob.objects.keep(["What was said?", "Bees."])
    cycle = Cycle.objects.get(pk=world.rows["a"].cycle_id)
    Cycle.objects.filter(pk=cycle.pk).update(
        request_hash=digest("What was said?"), reply_hash=digest("Bees.")
    )

    found = member.ok("GET", f"/cycles/{cycle.pk}")

    assert (found["request"], found["reply"]) == ("What was said?", "Bees.")
    assert [each["id"] for each in found["observations"]] == [str(world.rows["a"].pk)]


def test_a_key_is_masked_in_a_cycle_and_in_the_next_request_as_on_their_pages(member, world, place):
    key = "sk-abcDEF0123456789abcDEF"
    Blob.objects.keep([f"Asked with {key}", f"Said {key}"])
    cycle = Cycle.objects.get(pk=world.rows["a"].cycle_id)
    hashes = digest(f"Asked with {key}"), digest(f"Said {key}")
    Cycle.objects.filter(pk=cycle.pk).update(request_hash=hashes[0], reply_hash=hashes[1])
    AgentProfile.objects.update(instructions=f"Never tell {key}.")

    found = member.ok("GET", f"/cycles/{cycle.pk}")
    ahead = member.ok("GET", f"{place}/context?text=My%20key%20is%20{key}")

    assert found["request"] == "Asked with sk-abc…[masked]"
    assert found["reply"] == "Said sk-abc…[masked]"
    texts = [block["text"] or "" for block in ahead["blocks"]]
    assert "Never tell sk-abc…[masked]." in texts[0]
    assert key not in "".join(texts)


def test_cycles_are_narrowed_by_status(member, world, place):
    assert member.ok("GET", f"{place}/cycles?status=failed")["items"] == []
    assert member.ok("GET", f"{place}/cycles?status=done")["items"]


def test_the_next_request_is_foreseen_block_by_block(member, world, place):
    found = member.ok("GET", f"{place}/context?text=And%20mead%3F")

    kinds = [block["kind"] for block in found["blocks"]]
    assert kinds[0] == "instructions"
    assert kinds[1] == "memory"
    assert kinds[-1] == "prompt"
    assert found["tokens"] == sum(block["tokens"] for block in found["blocks"])
    assert "Ada keeps bees" in found["blocks"][1]["text"]
    assert found["revision"] == 3


def test_work_is_begun_in_the_background(member, world, place):
    from memory.dispatch import asked

    class Bell:
        def __init__(self):
            self.rung = []

        def wake(self, thread_id):
            self.rung.append(thread_id)

    bell = Bell()
    previous = asked["activate"].use(bell)
    try:
        response = member.post(f"{place}/operations/activate")
    finally:
        asked["activate"].use(previous)

    assert response.status_code == 202
    assert response.json()["cycles"] == f"/api/v1{place}/cycles"


def test_work_that_is_not_known_is_refused(member, world, place):
    assert member.problem("POST", f"{place}/operations/dream", {})[0] == 422


def test_a_page_of_lines_is_read_in_few_statements(
    member, world, place, django_assert_max_num_queries
):
    with django_assert_max_num_queries(7):
        member.ok("GET", f"{place}/memory/lines")
