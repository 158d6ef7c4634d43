import json
import re
from urllib.parse import unquote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.gauges import panel_of
from agents.models import Turn
from agents.page import Scene
from agents.services import discard
from agents.services.fork import fork
from agents.services.send import send
from agents.services.thread import start
from agents.studio.threads.fate import fates_of
from agents.studio.threads.find import Filters, found
from agents.studio.threads.rows import Page
from memory.models import Line, MemoryRecord, Message, Thread
from memory.services.look import look
from memory.services.note import note
from memory.services.operate import show_reflection
from tests.memory.services import play

pytestmark = pytest.mark.django_db

SCRIPT = {"HX-Request": "true"}


def titles(client, **query):
    html = client.get("/chat/", query).content.decode()
    return re.findall(r"data-open-row>(.*?)</a>", html)


def bulk(client, action, *threads, headers=SCRIPT, **more):
    data = {"action": action, "thread": [thread.pk for thread in threads], **more}
    return client.post("/chat/bulk", data, headers=headers)


def observed(thread):
    """Remember three turns of a thread and show what was observed."""
    play.talk(thread, 6)
    play.buffer_all(thread)
    play.talk(thread, 1)
    play.request(thread)
    assert look(thread.pk).lines
    return thread


# ---- the list


def test_the_list_shows_the_newest_first_with_what_each_is_at(signed_in, named):
    named("Oak")
    busy = named("Beech")
    send(busy.pk, "Hello")
    Turn.objects.update(status="failed", finished_at=busy.created_at)
    assert titles(signed_in) == ["Beech", "Oak"]
    assert "answer failed" in signed_in.get("/chat/").content.decode()


def test_only_conversations_of_the_chosen_resource_are_listed(signed_in, named, team, profile):
    named("Oak")
    start(team, profile, title="Budget")
    assert titles(signed_in, resource="team") == ["Budget"]
    assert titles(signed_in, resource="ada") == ["Oak"]


def test_what_one_may_not_see_does_not_exist(stranger, named):
    named("Oak")
    assert stranger.get("/chat/", {"resource": "ada"}).status_code == 404
    assert "not a member of any resource" in stranger.get("/chat/").content.decode()


def test_an_operator_sees_any_resource_and_all_together(operator, named, team, profile):
    named("Oak")
    start(team, profile, title="Budget")
    assert titles(operator, resource="ada") == ["Oak"]
    assert titles(operator, resource="*") == ["Budget", "Oak"]


def test_who_is_no_operator_cannot_ask_for_all(stranger, named):
    assert stranger.get("/chat/", {"resource": "*"}).status_code == 200
    assert titles(stranger, resource="*") == []


@pytest.mark.parametrize("word", ["oak", "HIVE", "honey"])
def test_words_are_found_in_titles_messages_and_lines(signed_in, named, word):
    thread = named("About oak")
    named("Something else")
    play.say(thread, play.question("What lives in a hive?"), play.answer("Bees."))
    note(look(thread.pk).record.pk, "User sells honey on Saturdays")
    assert titles(signed_in, q=word) == ["About oak"]


def test_a_hit_in_a_message_leads_to_the_message(signed_in, named):
    thread = named("Bees")
    play.say(thread, play.question("What lives in a hive?"), play.answer("Bees."))
    html = signed_in.get("/chat/", {"q": "hive"}).content.decode()
    assert f'href="/chat/{thread.pk}/?from=1#message-1"' in html
    assert "<mark>hive</mark>" in html


def test_what_was_edited_away_is_not_found(signed_in, named):
    thread = named("Bees")
    line = note(look(thread.pk).record.pk, "User sells honey")
    Line.objects.filter(pk=line.pk).update(until=line.since + 1)
    assert titles(signed_in, q="honey") == []


def test_where_nothing_matches_one_click_clears_the_filters(signed_in, named):
    named("Oak")
    html = signed_in.get("/chat/", {"q": "birch"}).content.decode()
    assert "No conversation matches" in html
    assert "Clear the filters" in html


def test_filters_leave_out_what_they_say(signed_in, named):
    named("Plain")
    named("Secret", temporary=True)
    remembered = named("Remembered")
    note(look(remembered.pk).record.pk, "User sells honey")
    failed = named("Failed")
    Turn.objects.create(thread=failed, number=1, prompt="", status="failed")
    assert titles(signed_in, state="failed") == ["Failed"]
    assert titles(signed_in, state="temporary") == ["Secret"]
    assert titles(signed_in, state="idle") == ["Remembered", "Secret", "Plain"]
    assert titles(signed_in, memory="yes") == ["Remembered"]
    assert "Remembered" not in titles(signed_in, memory="no")
    assert titles(signed_in, agent="nobody") == []


def test_a_thread_at_work_is_neither_failed_nor_at_rest(signed_in, named):
    thread = named("Busy")
    Turn.objects.create(thread=thread, number=1, prompt="", status="failed")
    Turn.objects.create(thread=thread, number=2, prompt="", status="waiting")
    assert titles(signed_in, state="running") == ["Busy"]
    assert titles(signed_in, state="failed") == titles(signed_in, state="idle") == []


@pytest.mark.parametrize(
    "query",
    [
        {"sort": "x"},
        {"state": "x"},
        {"updated": "9 or 1"},
        {"page": "x"},
        {"q": "\0"},
        {"agent": "\0"},
    ],
)
def test_what_means_nothing_is_not_asked_for(signed_in, named, query):
    named("Oak")
    assert titles(signed_in, **query) == ["Oak"]


def test_the_list_can_be_sorted_and_says_so(signed_in, named):
    named("b")
    named("a")
    assert titles(signed_in, sort="title") == ["a", "b"]
    assert titles(signed_in, sort="-title") == ["b", "a"]
    html = signed_in.get("/chat/", {"sort": "title"}).content.decode()
    assert '<th scope="col" aria-sort="ascending"><a href="?resource=ada&amp;sort=-title">' in html


def test_fifty_one_conversations_take_two_pages(signed_in, named):
    for number in range(51):
        named(f"Thread {number}")
    assert len(titles(signed_in)) == 50
    assert titles(signed_in, page=2) == ["Thread 0"]
    assert "1–50 of 51" in signed_in.get("/chat/").content.decode()


def test_five_rows_take_as_many_statements_as_one(
    signed_in, named, team, profile, django_assert_max_num_queries
):
    def fill(count):
        for _ in range(count):
            observed(named("Own"))
            play.talk(start(team, profile), 1)

    for resource in ("ada", "team"):
        fill(1)
        with CaptureQueriesContext(connection) as few:
            signed_in.get("/chat/", {"resource": resource, "q": "bees"})
        fill(4)
        with django_assert_max_num_queries(len(few)):
            signed_in.get("/chat/", {"resource": resource, "q": "bees"})
        assert len(few) <= 24


def test_gauges_agree_with_those_of_the_chat_page(signed_in, named):
    thread = observed(named("Bees"))
    play.talk(thread, 2)
    now = timezone.now()
    (row,) = Page(
        list(found(Thread.objects.select_related("resource"), Filters(), now)), now
    ).rows()
    messages, observations = panel_of(Scene(thread.pk, now)).gauges
    assert (row.messages.label, row.messages.limit) == (messages.label, messages.limit)
    assert (row.observations.label, row.observations.limit) == (
        observations.label,
        observations.limit,
    )
    assert row.messages.value > 0 < row.observations.value


def test_shared_memory_counts_what_all_conversations_said(team, profile):
    one, other = start(team, profile), start(team, profile)
    play.talk(one, 1)
    play.talk(other, 2)
    look(one.pk)
    now = timezone.now()
    rows = Page(list(found(Thread.objects.select_related("resource"), Filters(), now)), now).rows()
    for row in rows:
        assert row.shared
        assert row.messages.label == panel_of(Scene(row.id, now)).gauges[0].label


# ---- one conversation


def test_a_new_title_is_kept_and_told(signed_in, thread):
    answer = signed_in.post(f"/chat/{thread.pk}/rename", {"title": "Oak"}, headers=SCRIPT)
    assert answer.status_code == 204
    assert titles(signed_in) == ["Oak"]


def test_a_title_that_is_too_long_is_refused_where_it_was_typed(signed_in, thread):
    answer = signed_in.post(f"/chat/{thread.pk}/rename", {"title": "x" * 300}, headers=SCRIPT)
    assert answer.status_code == 422
    assert "at most 200 fit" in answer.content.decode()


def test_a_viewer_may_look_and_export_but_not_change(viewer, thread):
    assert "<h1>Conversations of Ada</h1>" in viewer.get("/chat/").content.decode()
    assert viewer.post(f"/chat/{thread.pk}/rename", {"title": "Oak"}).status_code == 403
    assert bulk(viewer, "delete", thread).status_code == 403
    assert bulk(viewer, "archive", thread).status_code == 403
    assert bulk(viewer, "observe", thread).status_code == 403
    new = {"resource": "ada", "agent": "tester"}
    assert viewer.post("/chat/new", new).status_code == 403
    assert viewer.get(f"/chat/{thread.pk}/export.md").status_code == 200


def test_controls_that_may_not_be_used_are_not_there(viewer, signed_in, thread):
    html = viewer.get("/chat/").content.decode()
    controls = ['value="delete"', 'value="observe"', 'id="new-thread"', "data-rename"]
    assert [each for each in controls if each in html] == []
    html = signed_in.get("/chat/").content.decode()
    assert [each for each in controls if each in html] == controls


def test_a_temporary_chat_is_never_remembered(signed_in, resource, profile):
    new = {"resource": "ada", "agent": "tester", "temporary": "1"}
    signed_in.post("/chat/new", new)
    thread = Thread.objects.get()
    play.talk(thread, 20)
    assert look(thread.pk) is None
    assert not MemoryRecord.objects.exists()
    html = signed_in.get("/chat/").content.decode()
    assert "temporary" in html
    assert "never remembered" in html


# ---- export


def test_markdown_says_who_said_what_and_what_is_remembered(signed_in, named):
    thread = named("Bees & hives")
    play.say(thread, play.question("Where is it?"), play.calling("a"), play.returning("a"))
    play.say(thread, play.answer("On the roof."))
    note(look(thread.pk).record.pk, "User keeps bees")
    answer = signed_in.get(f"/chat/{thread.pk}/export.md")
    text = answer.content.decode()
    assert text.startswith("# Bees & hives\n")
    order = [
        "## User",
        "Where is it?",
        "## Call of search",
        '"query": "hive"',
        "## Result for search",
    ]
    places = [text.index(each) for each in [*order, "A hive.", "## Agent", "On the roof."]]
    assert places == sorted(places)
    assert "User keeps bees" in text[text.index("# What is remembered") :]
    assert "bees-hives-" in unquote(answer["Content-Disposition"])


def test_a_fence_in_a_result_does_not_end_its_block(signed_in, named):
    thread = named("Code")
    play.say(thread, play.question(), play.calling("a"))
    play.say(thread, play.returning("a", text="```\n# Fake heading\n````"), play.answer())
    text = signed_in.get(f"/chat/{thread.pk}/export.md").content.decode()
    assert "\n`````\n```\n# Fake heading\n````\n`````\n" in text


def test_jsonl_holds_every_message_as_it_is_stored(signed_in, named):
    thread = observed(named("Bees"))
    text = signed_in.get(f"/chat/{thread.pk}/export.jsonl").content.decode()
    rows = [json.loads(line) for line in text.splitlines()]
    assert rows[0]["type"] == "thread"
    stored = list(Message.objects.order_by("position").values_list("payload", flat=True))
    assert [row["message"] for row in rows if row["type"] == "message"] == stored
    lines = [row["text"] for row in rows if row["type"] == "line"]
    assert lines == [line.text for line in look(thread.pk).lines] != []


def test_nobody_exports_what_they_may_not_see(stranger, thread):
    assert stranger.get(f"/chat/{thread.pk}/export.md").status_code == 404


def test_an_unknown_kind_of_file_does_not_exist(signed_in, thread):
    assert signed_in.get(f"/chat/{thread.pk}/export.exe").status_code == 404


# ---- several at once


def test_several_are_exported_in_one_file(signed_in, named):
    chosen = [named("Oak"), named("Beech")]
    answer = bulk(signed_in, "md", *chosen, headers={})
    text = answer.content.decode()
    assert "# Oak\n" in text
    assert "# Beech\n" in text
    assert "2-conversations.md" in answer["Content-Disposition"]


def test_archived_conversations_are_listed_when_asked_for_alone(signed_in, named):
    thread = named("Oak")
    assert bulk(signed_in, "archive", thread).status_code == 204
    assert titles(signed_in) == []
    assert titles(signed_in, state="archived") == ["Oak"]
    bulk(signed_in, "unarchive", thread)
    assert titles(signed_in) == ["Oak"]


def test_without_a_tick_it_is_said_what_to_do(signed_in, named):
    named("Oak")
    answer = bulk(signed_in, "archive")
    assert answer.status_code == 422
    assert "Tick at least one" in answer.content.decode()


def test_nobody_works_on_what_they_may_not_see(stranger, thread):
    assert bulk(stranger, "archive", thread).status_code == 422
    assert Thread.objects.get().archived_at is None


def test_observing_with_nothing_to_observe_says_why(signed_in, named):
    answer = bulk(signed_in, "observe", named("Oak"))
    assert answer.status_code == 422
    assert "nothing to observe" in answer.content.decode()


def test_deleting_can_be_undone(signed_in, named):
    thread = named("Oak")
    send(thread.pk, "Hello")
    answer = bulk(signed_in, "delete", thread)
    assert unquote(answer["X-Toast"]) == "Deleted 1 conversation."
    assert titles(signed_in) == []
    assert signed_in.get(f"/chat/{thread.pk}/").status_code == 404
    assert Turn.objects.get().status == "withdrawn"

    assert signed_in.post(answer["X-Undo"], headers=SCRIPT).status_code == 204
    assert titles(signed_in) == ["Oak"]


def test_what_names_no_conversation_does_not_exist(signed_in):
    assert signed_in.post("/chat/undo?thread=x").status_code == 404
    assert signed_in.post("/chat/bulk", {"action": "archive", "thread": "x"}).status_code == 404


def test_nobody_brings_back_what_they_could_not_see(stranger, thread):
    discard.discard(thread.pk)
    stranger.post(f"/chat/undo?thread={thread.pk}")
    assert Thread.objects.get().deleted_at is not None


def test_what_was_deleted_is_erased_by_the_sweep_and_its_undoing_says_so(signed_in, named):
    thread = observed(named("Oak"))
    kept = observed(named("Beech"))
    answer = bulk(signed_in, "delete", thread)
    assert discard.sweep() == 0

    Thread.objects.filter(pk=thread.pk).update(deleted_at=thread.created_at - discard.GRACE)
    assert discard.sweep() == 1

    assert Thread.objects.get() == kept
    assert set(Message.objects.values_list("thread", flat=True)) == {kept.pk}
    undone = signed_in.post(answer["X-Undo"], headers=SCRIPT)
    assert undone.status_code == 422
    assert "erased for good" in undone.content.decode()


def test_a_running_answer_keeps_the_sweep_off_until_it_has_ended(named):
    thread = named("Oak")
    turn = Turn.objects.create(
        thread=thread,
        number=1,
        prompt="",
        status="running",
        lease_token=thread.pk,
        lease_expires_at=thread.created_at,
    )
    discard.discard(thread.pk)
    turn.refresh_from_db()
    assert turn.stop_requested
    Thread.objects.update(deleted_at=thread.created_at - discard.GRACE)
    assert discard.sweep() == 0
    Turn.objects.update(status="stopped", finished_at=thread.created_at)
    assert discard.sweep() == 1


def test_what_others_share_is_erased_only_by_typing_the_title(signed_in, team, profile):
    one, other = start(team, profile, title="Budget"), start(team, profile, title="Garden")
    play.talk(other, 1)
    observed(one)
    assert Line.objects.filter(observation__thread=one, until=None).exists()

    asked = bulk(signed_in, "delete", one)
    text = asked.content.decode()
    assert asked.status_code == 422
    assert "memory that other conversations share" in text
    assert "14 messages" in text
    assert bulk(signed_in, "delete", one, typed="budget").status_code == 422
    assert Thread.objects.get(pk=one.pk).deleted_at is None

    done = bulk(signed_in, "delete", one, typed="Budget")
    assert unquote(done["X-Toast"]) == "Erased 1 conversation."
    assert Thread.objects.get() == other
    owners = set(Line.objects.values_list("observation__thread", flat=True))
    assert owners == {other.pk}


def test_what_was_condensed_since_counts_as_shared_too(team, profile):
    one, other = start(team, profile, title="Budget"), start(team, profile, title="Garden")
    play.talk(other, 1)
    observed(one)
    assert fates_of([one])[0].shared > 0
    play.condense(one)
    show_reflection(one.pk)
    assert not Line.objects.filter(observation__thread=one, until=None).exists()
    mine, theirs = fates_of([one, other])
    assert mine.shared > 0
    assert "they lose what it says" in mine.words
    assert theirs.thread == other.pk


def test_without_a_script_the_page_comes_back_and_asks(signed_in, team, profile):
    one = start(team, profile, title="Budget")
    play.talk(start(team, profile), 1)
    observed(one)
    asked = bulk(signed_in, "delete", one, headers={}, resource="team")
    assert asked.status_code == 422
    assert "Type <b>Budget</b>" in asked.content.decode()
    assert bulk(signed_in, "archive", one, headers={}).status_code == 302


def test_a_fork_of_a_deleted_conversation_stays_whole(signed_in, named):
    thread = observed(named("Oak"))
    child = fork(thread.pk, 14, title="Beech")
    discard.destroy(thread.pk)
    assert Message.objects.filter(thread=child).count() == 14
    assert len(look(child.pk).lines) > 0
    assert not Message.objects.filter(text="").exists()
