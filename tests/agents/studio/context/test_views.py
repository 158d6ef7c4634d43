import json
from time import thread_time

import pytest
from django.contrib.auth.models import Group
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pydantic_ai import ModelMessagesTypeAdapter

from agents.models import RequestSnapshot, Turn
from agents.services.begin import begin
from agents.services.send import send
from agents.services.thread import start
from agents.services.turn import close
from memory.models import Blob, Line, MemoryRecord, Message, Observation, Revision, Thread
from memory.services import kept
from memory.services.configure import configure
from memory.services.look import record_of
from memory.services.note import note
from tests.memory.services.play import answer, buffer_all, question, request, say, talk, words

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _no_predictions():
    cache.clear()


def asked(thread, text="Hello", *, reply="Hello yourself."):
    """Play a turn as far as its one request, and answer it."""
    send(thread.pk, text)
    running = begin(thread.pk)
    close(running, Turn.Status.DONE, messages=[answer(reply)])
    return running.turn


def html(response):
    assert response.status_code == 200, response.status_code
    return response.content.decode()


def test_what_is_not_theirs_does_not_exist(client, ben, thread):
    asked(thread)
    client.force_login(ben)
    for path in (
        "",
        "raw/",
        "raw.json",
        "raw.py",
        "compare/?a=1&b=next",
        "requests/1/",
    ):
        assert client.get(f"/context/{thread.pk}/{path}").status_code == 404
    assert client.post(f"/context/{thread.pk}/next.json").status_code == 404


def test_an_operator_reads_them_all(client, ben, thread):
    ben.groups.add(Group.objects.create(name="operators"))
    client.force_login(ben)
    assert client.get(f"/context/{thread.pk}/").status_code == 200
    assert client.get(f"/context/{thread.pk}/raw.json").status_code == 200


def test_an_empty_conversation_says_why_its_blocks_are_empty(page, thread):
    shown = html(page(thread))
    assert "nothing is observed yet" in shown
    assert "not in this scope" in shown
    assert MemoryRecord.objects.count() == 0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"remembers": False}, "memory is off here"),
        ({"agent": "nobody"}, "the agent of this conversation is gone"),
    ],
)
def test_what_is_off_or_gone_is_named(page, thread, change, why):
    Thread.objects.filter(pk=thread.pk).update(**change)
    assert why in html(page(thread))


def test_the_blocks_add_up_to_the_request(page, numbers, thread):
    talk(thread, 8)
    buffer_all(thread)
    found = numbers(thread, "How many hives?")
    assert found["total"] == sum(block["tokens"] for block in found["blocks"])
    assert abs(sum(block["share"] for block in found["blocks"]) - 1) < 0.01
    assert [block["kind"] for block in found["blocks"]][:2] == ["instructions", "tools"]
    assert "Unaccounted" not in html(page(thread))


def test_a_block_that_does_not_add_up_is_said(page, thread):
    asked(thread)
    RequestSnapshot.objects.update(total=1)
    assert "Unaccounted" in html(page(thread, "requests/1/"))


def test_a_longer_draft_costs_more(numbers, thread):
    sizes = [numbers(thread, draft)["total"] for draft in ("", "bees", words(500))]
    assert sizes[0] < sizes[1] < sizes[2] - 400


def test_what_does_not_fit_the_window_is_said_with_what_to_do(page, numbers, thread):
    talk(thread, 2, tokens=400)
    configure(thread.pk, {"context_tokens": 1500, "message_tokens": 50_000})
    found = numbers(thread, words(100))
    assert found["left_out"] > 0
    assert not found["fits"]
    assert "lower message_tokens" in found["fix"]
    shown = html(page(thread, draft=words(100)))
    assert "would be left out" in shown
    assert 'class="left-out"' in shown
    assert "alone is" not in shown
    far = numbers(thread, words(2000))
    assert "larger window" in far["fix"]


def test_what_is_supposed_is_marked_and_nothing_is_written(page, thread):
    talk(thread, 5)
    buffer_all(thread)
    before = (MemoryRecord.objects.get().revision, Observation.objects.count())
    shown = html(page(thread, message_tokens="5000", activate="1"))
    assert "Simulated." in shown
    assert "Simulated." not in html(page(thread))
    assert (MemoryRecord.objects.get().revision, Observation.objects.count()) == before


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"message_tokens": "many"}, "“many” is no number"),
        ({"message_tokens": "-1"}, "message_tokens"),
        ({"buffer_activation": "500"}, "buffer_activation"),
    ],
)
def test_what_cannot_be_supposed_is_refused_and_shown_again(page, thread, query, said):
    answer = page(thread, **query)
    assert answer.status_code == 422
    shown = answer.content.decode()
    assert said in shown
    assert f'value="{next(iter(query.values()))}"' in shown


def test_another_scope_may_be_supposed(page, thread, resource, profile):
    talk(start(resource, profile, title="Roofs"), 1)
    shown = html(page(thread, scope="resource"))
    assert "Simulated." in shown
    assert 'data-block="others"' in shown


def test_a_block_may_be_supposed_away_and_what_it_costs_the_prefix_is_said(page, thread):
    asked(thread, "One")
    note(record_of(thread).pk, "Ada keeps bees.")
    whole = page(thread, "raw.json").json()
    (memory,) = [each for each in whole["entries"] if each["kind"] == "memory"]

    less = page(thread, "raw.json", without_memory="1").json()
    shown = html(page(thread, without_memory="1", without_tools="1"))

    assert less["tokens"] == whole["tokens"] - memory["tokens"]
    assert [each for each in whole["entries"] if each != memory] == less["entries"]
    assert "Simulated." in shown
    assert shown.count("left out, as you suppose") == 2
    assert 'name="without_memory" value="1" checked' in shown
    assert "Simulated." not in html(page(thread, without_nothing="1"))


def test_a_request_is_copied_as_python_that_builds_it(page, thread):
    asked(thread, "What do \"bees\" eat?\n'Wax'?")
    code = page(thread, "raw.py", of="1").content.decode()

    made = {}
    exec(code, made)
    entries = page(thread, "raw.json", of="1").json()["entries"]
    said = [each["content"] for each in entries if each["role"] not in ("system", "tools")]
    assert made["messages"] == ModelMessagesTypeAdapter.validate_python(said)
    assert made["messages"][-1].parts[0].content == "What do \"bees\" eat?\n'Wax'?"
    assert made["instructions"] == entries[0]["content"]


SECRET = "sk-proj-abcDEF0123456789abcDEF0123456789"


def test_keys_are_masked_wherever_a_request_is_shown_whole(page, thread):
    asked(thread, f"My key is {SECRET}, keep it.")
    for path in ("raw/", "raw.json", "raw.py"):
        said = page(thread, path, of="1").content.decode()
        assert SECRET not in said, path
        assert "My key is sk-pro…[masked], keep it." in said, path


def test_open_blocks_are_named_in_the_address(page, thread):
    shown = html(page(thread, open="instructions,tools"))
    assert shown.count('aria-expanded="true"') == 2 + 1  # The finder of the frame is the third.


def test_a_prompt_that_waits_is_the_next_request(page, thread):
    send(thread.pk, "Tell me about queens.")
    shown = html(page(thread))
    assert "This is the request of turn 1, which waits." in shown
    assert "Tell me about queens." in shown


def test_a_running_turn_is_said(page, thread):
    send(thread.pk, "Tell me about queens.")
    begin(thread.pk)
    assert "Turn 1 is being answered" in html(page(thread))


def test_a_message_that_fills_the_request_is_flagged(page, thread):
    say(thread, question(words(3000)))
    configure(thread.pk, {"message_tokens": 50_000})
    assert "of the request" in html(page(thread))


def test_a_message_that_repeats_another_is_flagged(page, thread):
    configure(thread.pk, {"message_tokens": 50_000})
    say(thread, question(words(80)), answer("Yes."), question(words(80)))
    assert "Message 3 repeats message 1" in html(page(thread))


def test_a_conversation_nothing_of_which_is_sent_is_said(page, thread):
    talk(thread, 5)
    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread, revision=1)
    Observation.objects.create(
        record=record,
        thread=thread,
        kind="observation",
        first_position=1,
        last_position=10,
        since=1,
        place=1,
    )
    Thread.objects.filter(pk=thread.pk).update(last_position=10)
    assert "nothing of them would be sent" in html(page(thread))


def test_past_requests_are_reached_by_turn_and_step(page, thread):
    asked(thread, "First")
    asked(thread, "Second")
    shown = html(page(thread, "requests/1/"))
    assert "First" in shown
    assert "Request #1" in shown
    assert "/requests/2/1/" in shown
    assert page(thread, "requests/1/2/").status_code == 404
    assert page(thread, "requests/9/").status_code == 404


def test_a_step_may_be_named_in_the_query_too(page, thread):
    asked(thread)
    assert page(thread, "requests/1/", step="1").status_code == 200
    assert page(thread, "requests/1/", step="7").status_code == 404
    assert page(thread, "requests/1/", step="x").status_code == 200
    assert page(thread, "raw/", of="²").status_code == 404


def test_a_request_sent_without_memory_says_why(page, thread):
    asked(thread)
    shot = RequestSnapshot.objects.get()
    shot.blocks[-1]["source"] = "conversation, without memory: The database was away."
    shot.save()
    assert "Sent without memory: The database was away." in html(page(thread, "requests/1/"))


def test_what_came_true_is_said_and_what_did_not_with_why(page, thread):
    html(page(thread))
    asked(thread, "First")
    assert "As predicted at" in html(page(thread, "requests/1/"))

    html(page(thread))
    record = MemoryRecord.objects.get()
    note(record.pk, "Ada likes oak.")
    asked(thread, "Second")
    shown = html(page(thread, "requests/2/"))
    assert "Predicted otherwise" in shown
    assert "a note was added in between (revision 0 → 1)" in shown


def test_a_prediction_nobody_looked_at_is_none(page, thread):
    asked(thread)
    assert "Nobody looked at a prediction" in html(page(thread, "requests/1/"))


def test_what_is_only_supposed_is_no_prediction(page, thread):
    html(page(thread, message_tokens="9000"))
    asked(thread)
    assert "Nobody looked at a prediction" in html(page(thread, "requests/1/"))


def test_a_request_that_was_tampered_with_is_said(page, thread):
    asked(thread)
    RequestSnapshot.objects.update(hash="0" * 64)
    shown = html(page(thread, "requests/1/"))
    assert "adds up to another one" in shown
    assert "identical" not in shown


def test_what_is_not_kept_any_more_leaves_sizes_and_hashes(page, thread):
    asked(thread)
    Blob.objects.all().delete()
    shown = html(page(thread, "requests/1/"))
    assert shown.count("The text is not kept any more; its size and its hash are.") >= 2
    assert "Not all texts of this request are kept any more." in shown
    assert page(thread, "raw.json", of="1").status_code == 200
    assert "not kept any more" in html(page(thread, "raw/", of="1"))


def test_what_the_provider_reported_stands_beside_the_estimate(page, thread):
    turn = asked(thread)
    row = Message.objects.get(thread=thread, position=turn.first_position + 1)
    row.payload["usage"] = {"input_tokens": 700, "output_tokens": 12, "cache_read_tokens": 512}
    row.save()
    shown = html(page(thread, "requests/1/"))
    assert "512" in shown
    total = RequestSnapshot.objects.get().total
    assert f"drift {100 * (700 - total) / 700:+.1f} %".replace("-", "−") in shown


def test_a_request_without_usage_says_so(page, thread):
    asked(thread)
    assert "reported no usage" in html(page(thread, "requests/1/"))


def test_two_requests_are_compared_by_block_then_line(page, thread):
    asked(thread, "First")
    record = MemoryRecord.objects.get()
    note(record.pk, "Ada likes oak.")
    asked(thread, "Second")
    note(record.pk, "Ada likes tea.")
    asked(thread, "Third")
    shown = html(page(thread, "compare/", a="2", b="3"))
    assert "Ada likes tea." in shown
    assert "<ins>" in shown
    assert "broken at: <b>observations" in shown
    assert "they are identical" in html(page(thread, "compare/", a="3", b="3"))
    assert page(thread, "compare/", a="x", b="3").status_code == 404


def test_the_download_is_a_file_of_all_that_is_sent(page, thread):
    asked(thread, "First")
    answer = page(thread, "raw.json", of="1.1")
    assert answer["Content-Disposition"] == 'attachment; filename="request-1.1.json"'
    found = json.loads(answer.content)
    assert [entry["role"] for entry in found["entries"]] == ["system", "tools", "user"]
    assert found["tokens"] == sum(entry["tokens"] for entry in found["entries"])


def test_hostile_text_is_only_text(page, thread):
    evil = "</pre><script>alert(1)</script>"
    asked(thread, evil, reply=evil)
    record = MemoryRecord.objects.get()
    note(record.pk, evil)
    for path in ("", "raw/", "requests/1/"):
        assert "<script>alert(1)" not in html(page(thread, path))
    assert "<script>alert(1)" not in html(page(thread, where="script", draft=evil))
    assert "<script>alert(1)" not in html(page(thread, "compare/", a="1", b="next"))


def statements(read):
    kept.forget_everything()
    with CaptureQueriesContext(connection) as seen:
        read()
    return len(seen)


@pytest.mark.parametrize(
    ("path", "most"),
    [("", 24), ("next.json", 12), ("requests/1/", 20), ("raw/", 15), ("compare/?a=1&b=next", 22)],
)
def test_a_page_costs_the_same_whatever_the_thread_holds(page, numbers, thread, path, most):
    def read():
        assert numbers(thread) if path == "next.json" else html(page(thread, path))

    asked(thread, words(60))
    buffer_all(thread)
    few = statements(read)
    for _ in range(8):
        asked(thread, words(60), reply=words(60))
        buffer_all(thread)
    assert Revision.objects.exists()
    many = statements(read)
    assert many <= most
    assert many <= few + 6  # What waits, and the lines, once there are any.


def test_five_thousand_messages_take_no_longer_than_a_moment(page, thread):
    at = timezone.now()
    record = MemoryRecord.objects.create(resource=thread.resource, thread=thread, revision=1)
    template = Message.objects.get(pk=say_one(thread))
    rows = [
        Message(
            thread=thread,
            position=position,
            kind="request" if position % 2 else "response",
            payload=template.payload if position % 2 else ANSWER,
            text=f"Something about bees, number {position}",
            tokens=40,
            created_at=at,
        )
        for position in range(2, 5001)
    ]
    Message.objects.bulk_create(rows, batch_size=500)
    Thread.objects.filter(pk=thread.pk).update(last_position=5000)
    covered = Observation.objects.create(
        record=record,
        thread=thread,
        kind="observation",
        first_position=1,
        last_position=4900,
        since=1,
        place=1,
    )
    Line.objects.bulk_create(
        Line(observation=covered, ordinal=n, kind="medium", text=f"Bee {n}", tokens=4, since=1)
        for n in range(2000)
    )
    configure(thread.pk, {"message_tokens": 50_000})
    asked(thread, "How many bees are there?")
    html(page(thread))  # Loads templates and token ranks once for all.
    for path, query in (("", {}), ("requests/1/", {}), ("", {"where": "number 77"})):
        assert min(_seconds(lambda: html(page(thread, path, **query))) for _ in range(3)) < 0.3  # noqa: B023


def _seconds(work):
    """Return what a page costs this thread, with all rows read anew, whatever others do."""
    kept.forget_everything()
    began = thread_time()
    work()
    return thread_time() - began


ANSWER = {
    "kind": "response",
    "parts": [{"part_kind": "text", "content": "Yes."}],
    "model_name": "fake",
    "timestamp": "2026-03-02T09:00:00Z",
}


def say_one(thread):
    say(thread, question("Something about bees"))
    return Message.objects.get(thread=thread).pk


def test_a_region_is_sent_alone_to_a_page_that_shows_another(signed_in, thread):
    answer = signed_in.get(f"/context/{thread.pk}/", headers={"X-Regions": '{"shown": "old"}'})
    text = answer.content.decode()
    assert text.startswith('<hx-partial hx-target="#shown"')
    assert "<html" not in text


def test_the_settled_request_says_what_is_activated_first(page, thread):
    talk(thread, 4)
    buffer_all(thread)
    shown = html(page(thread, draft=words(300)))
    assert "activated first" in shown
    request(thread)
