import re
from datetime import timedelta
from urllib.parse import unquote

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.gauges import panel_of
from agents.models import AgentProfile, Turn
from agents.page import Scene
from agents.services.remember import remember
from agents.services.send import send
from agents.services.thread import start
from agents.studio.threads.find import Filters, found
from agents.studio.threads.rows import Page
from memory.models import Line, MemoryRecord, Observation, Thread
from memory.services.look import look
from memory.services.note import note
from tests.agents.studio.threads.listed import SCRIPT, bulk, observed, titles
from tests.memory.services import play

pytestmark = pytest.mark.django_db


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


def test_a_board_shows_them_by_what_each_is_at(signed_in, named):
    named("Oak")
    wrong, busy = named("Beech"), named("Ash")
    for thread in (wrong, busy):
        send(thread.pk, "Hello")
    Turn.objects.filter(thread=wrong).update(status="failed", finished_at=wrong.created_at)

    html = signed_in.get("/chat/", {"view": "board", "sort": "title"}).content.decode()

    columns = re.findall(r"<h2[^>]*>(.*?) <span.*?</h2>(.*?)</section>", html, re.DOTALL)
    cards = {name: re.findall(r"data-open-row>(.*?)</a>", part) for name, part in columns}
    assert cards == {"At work": ["Ash"], "Needs attention": ["Beech"], "At rest": ["Oak"]}
    assert 'name="view" value="board"' in html
    assert re.search(r'href="\?resource=ada&amp;sort=title">List</a>', html)


def test_for_a_day_a_title_of_the_observer_tells_the_one_before(named):
    thread = observed(named("Kitchen and flooring"))
    said = Observation.objects.filter(thread=thread).order_by("last_position")
    first, second = said[0], said[1]
    Observation.objects.filter(pk=first.pk).update(thread_title="Kitchen")
    Observation.objects.filter(pk=second.pk).update(thread_title="Kitchen and flooring")
    renamed = second.cycle.finished_at

    def was(at):
        listed = found(Thread.objects.filter(pk=thread.pk), Filters(), at)
        return [row.was for row in Page(list(listed), at).rows()]

    assert was(renamed + timedelta(hours=23)) == ["Kitchen"]
    assert was(renamed + timedelta(hours=25)) == [""]
    Thread.objects.filter(pk=thread.pk).update(title_pinned=True)
    assert was(renamed) == [""]


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


def test_who_was_talked_to_last_is_offered_first_and_then_who_remembers(
    signed_in, resource, profile
):
    profile.name, profile.remembers = "Aloof", False
    profile.save()
    other = AgentProfile.objects.create(slug="other", name="Zoe", instructions="Help.")

    def offered():
        form = signed_in.get("/chat/").content.decode().rpartition('aria-label="New thread"')[2]
        return re.findall(r'<option value="([^"]+)"', form)

    assert offered()[:2] == [other.slug, profile.slug]
    start(resource, profile)
    assert offered()[:2] == [profile.slug, other.slug]


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


def test_memory_that_is_turned_off_makes_no_conversation_temporary(signed_in, named):
    thread = observed(named("Off"))
    remember(thread.pk, False)
    html = signed_in.get("/chat/").content.decode()
    assert "memory off" in html
    assert "never remembered" not in html
    assert titles(signed_in, state="temporary") == []


def test_gauges_stay_where_only_the_agent_stops_remembering(signed_in, named, profile):
    observed(named("Kept"))
    profile.remembers = False
    profile.save()
    assert 'role="meter"' in signed_in.get("/chat/").content.decode()


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


def test_all_conversations_are_watched_as_far_as_one_may_see(signed_in, operator, named, team):
    watched = re.compile(r"watch=([^\"]*)\"")
    mine, all_of_it = (
        watched.search(client.get("/chat/?resource=*").content.decode())[1]
        for client in (signed_in, operator)
    )
    both = {f"resource:{each}" for each in (team.pk, named("Oak").resource_id)}
    assert (set(unquote(mine).split(",")), all_of_it) == (both, "everything")
