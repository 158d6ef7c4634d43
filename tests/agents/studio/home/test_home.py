import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone
from pydantic_ai.messages import ModelResponse, TextPart

from agents.models import AgentProfile, Turn
from agents.services.thread import start
from agents.studio.home.attention import Attention
from agents.studio.home.board import Board
from memory.messages import user_prompt
from memory.models import Cursor, Cycle, MemoryRecord, Resource, Thread
from memory.services.append import append
from memory.services.due import claim
from memory.services.look import look
from tests.agents.clients import client_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def offline(profile):
    profile.model = "offline"
    profile.save()


@pytest.fixture
def member(ada):
    return client_of(ada)


def say(thread, times=1, words=60):
    for _ in range(times):
        now = timezone.now()
        answer = ModelResponse(parts=[TextPart("word " * words)], timestamp=now)
        append(thread.pk, [user_prompt("Go on.", now), answer], at=now)


def turn(thread, status, number=1, **fields):
    now = timezone.now()
    if status == "running":
        lease = {"lease_token": uuid4(), "lease_expires_at": now + timedelta(minutes=1)}
        fields = {"started_at": now, **lease, **fields}
    else:
        fields = {"finished_at": now, **fields}
    return Turn.objects.create(
        thread=thread, number=number, status=status, prompt="Hello", **fields
    )


def cycle(thread, status, **fields):
    now = timezone.now()
    ended = {} if status == "running" else {"finished_at": now}
    given = {
        "record": look(thread.pk).record,
        "lane": f"observer:{thread.pk}",
        "kind": "buffer",
        "thread": thread,
        "epoch": 0,
        "lease_expires_at": now + timedelta(minutes=1),
        **ended,
        **fields,
    }
    return Cycle.objects.create(status=status, **given)


def board(user):
    return Board(user, timezone.now())


def items(user):
    return [(item.words, item.title) for item in Attention(board(user)).items]


def text_of(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


# ---- the page


def test_home_is_the_first_page(member, thread):
    answer = member.get("/")

    assert answer.status_code == 200
    for heading in ("Needs attention", "Running now", "Recent conversations", "Today"):
        assert heading in answer.content.decode()


def test_without_conversations_it_says_how_to_begin(member, resource):
    said = text_of(member.get("/"))

    assert "No conversations yet." in said
    assert "Start a conversation" in said
    assert "Load the demo" not in said


def test_who_belongs_nowhere_is_told_whom_to_ask(client, cleo):
    client.force_login(cleo)

    said = text_of(client.get("/"))

    assert "Whoever runs this server can add you to one." in said
    assert "Start a conversation" not in said


def test_the_demo_is_loaded_by_an_admin(client, ben):
    assert client.post("/demo").status_code == 302
    client.force_login(ben)
    assert client.post("/demo").status_code == 403
    ben.is_superuser = True
    ben.save()
    client.force_login(ben)
    assert "Load the demo" in client.get("/").content.decode()

    answer = client.post("/demo")

    assert answer.url == f"/chat/{Thread.objects.get().pk}/"
    assert AgentProfile.objects.filter(slug="demo").exists()


def test_it_costs_as_many_statements_for_many_conversations(
    member, ada, resource, profile, django_assert_max_num_queries
):
    def counted():
        with django_assert_max_num_queries(45) as asked:
            assert member.get("/").status_code == 200
        return len(asked.captured_queries)

    def fill(count):
        for _ in range(count):
            thread = start(resource, profile)
            say(thread)
            cycle(thread, "failed", error="Broken.")
            turn(thread, "failed", error="Broken.")

    fill(2)
    few = counted()
    fill(15)
    assert counted() == few


def test_a_live_update_sends_what_differs(member, thread):
    page = member.get("/").content.decode()
    etags = dict(re.findall(r'id="(\w+)" data-etag="(\w+)"', page))
    assert set(etags) == {"attention", "running", "recent", "spent"}
    turn(thread, "running")

    shown = str(etags).replace("'", '"')
    parts = member.get("/", headers={"X-Regions": shown}).content.decode()

    assert 'hx-target="#running"' in parts
    assert 'hx-target="#spent"' not in parts


def test_times_are_told_without_a_script_too(member, thread):
    turn(thread, "failed", 1)
    assert times(member.get("/"), "attention") == "just now"
    turn(thread, "running", 2)
    assert times(member.get("/"), "running") == "just now"


def times(answer, section):
    """Return the words of the clocks in a section."""
    _, _, html = answer.content.decode().partition(f'id="{section}"')
    return " ".join(re.findall(r"<time[^>]*>([^<]*)</time>", html.partition("</section>")[0]))


# ---- whose


def test_nobody_sees_what_is_another_persons(ada, cleo, thread):
    turn(thread, "failed", error="Broken.")
    cycle(thread, "running")
    stranger = board(cleo)

    assert Attention(stranger).items == []
    assert (stranger.running, stranger.recent, stranger.watch) == ([], [], [])
    assert [part.calls for part in stranger.spent] == [0, 0, 0]
    assert len(Attention(board(ada)).items) == 1


def test_an_operator_sees_everything(cleo, thread):
    cleo.groups.add(Group.objects.create(name="operators"))
    turn(thread, "failed", error="Broken.")

    assert items(cleo) == [("✕ Answer failed", "New conversation")]
    assert board(cleo).watch == ["everything"]


def test_the_lab_is_left_out(ada, thread):
    Thread.objects.update(is_lab=True)
    turn(thread, "failed", error="Broken.")
    cycle(thread, "running")

    found = board(ada)
    assert (found.recent, found.running, Attention(found).items) == ([], [], [])


# ---- what needs attention


def test_a_failed_answer_needs_attention_until_another_is_given(ada, thread):
    turn(thread, "failed", error="The provider refused the key.")
    (item,) = Attention(board(ada)).items
    assert (item.words, item.detail) == ("✕ Answer failed", "The provider refused the key.")
    assert item.href == f"/chat/{thread.pk}/"

    turn(thread, "withdrawn", 2)
    assert len(items(ada)) == 1
    turn(thread, "interrupted", 3)
    assert items(ada) == [("⚠ Answer interrupted", "New conversation")]
    turn(thread, "done", 4)
    assert items(ada) == []


def test_a_failed_cycle_needs_attention_until_one_of_its_lane_succeeds(ada, thread):
    failed = cycle(thread, "failed", error="Nothing was written.", attempt=3)
    (item,) = Attention(board(ada)).items
    assert item.words == "✕ Observation failed"
    assert item.detail == "Nothing was written. Attempt 3; it is not tried again by itself."
    assert item.href == f"/context/calls/{failed.pk}/"

    cycle(thread, "done", lane="reflector", kind="reflect")
    assert len(items(ada)) == 1
    cycle(thread, "done")
    assert items(ada) == []


def test_what_failed_long_ago_is_history(ada, thread):
    past = timezone.now() - timedelta(days=15)
    cycle(thread, "failed", finished_at=past, started_at=past)
    turn(thread, "failed", finished_at=past)

    assert items(ada) == []


def test_work_whose_process_stopped_is_told_apart(ada, thread):
    past = timezone.now() - timedelta(minutes=5)
    cycle(thread, "running", lease_expires_at=past, started_at=past, message_tokens=6100)

    (item,) = Attention(board(ada)).items
    assert item.words == "⚠ Buffering 6.1k tokens: its process stopped"


def test_a_conversation_over_its_ceiling_needs_attention(ada, thread):
    say(thread, times=9)
    say(thread, times=3)

    (item,) = Attention(board(ada)).items
    assert "over the ceiling of 720" in item.words


def test_a_conversation_that_was_never_observed_over_its_threshold_needs_attention(ada, thread):
    say(thread, times=9)

    (item,) = Attention(board(ada)).items

    assert "and never observed" in item.words
    assert item.detail == "It is due from 600 tokens on."


def test_one_that_does_not_remember_is_never_too_full(ada, thread):
    Thread.objects.update(remembers=False)
    say(thread, times=20)

    assert items(ada) == []


def test_options_that_are_not_in_force_need_attention(ada, thread, profile):
    look(thread.pk)
    MemoryRecord.objects.update(config={"message_tokens": -1})
    assert items(ada) == [("✕ Options not in force", "New conversation")]

    MemoryRecord.objects.update(config={})
    profile.memory_options = {"buffer_tokens": 50_000}
    profile.save()
    (item,) = Attention(board(ada)).items
    assert (item.title, item.href, item.does) == ("Tester", "/settings/agents/tester/", "Look")
    assert "must be less than 30000" in item.detail


def test_agents_that_cannot_answer_need_attention(ada, thread, profile):
    profile.model = "gpt-5"
    profile.save()
    assert items(ada) == [("✕ No such model", "Tester")]

    profile.delete()
    (item,) = Attention(board(ada)).items
    assert item.words == "✕ No such agent"
    assert item.detail == "1 conversation has an agent that is gone, and cannot be answered."


def test_memory_that_claims_more_than_was_said_needs_attention(ada, thread):
    say(thread)
    record = look(thread.pk).record
    Cursor.objects.create(record=record, thread=thread, buffered_through=9, observed_through=9)

    assert items(ada) == [("✕ Memory does not add up", "New conversation")]


def test_all_is_well_says_so(member, thread):
    say(thread)

    assert "Nothing does." in text_of(member.get("/"))


# ---- what runs, what is recent, what it cost


def test_turns_and_cycles_under_way_are_shown_with_when_they_began(ada, thread):
    say(thread, times=3)
    assert claim(thread.pk).claimed
    turn(thread, "running")

    running = board(ada).running

    assert {each.words.split(" ")[0] for each in running} == {"Answering", "Buffering"}
    assert all(each.since and not each.lapsed for each in running)


def test_the_newest_conversations_are_shown_with_their_level(ada, thread):
    say(thread, times=3)

    ((row, level),) = board(ada).recent

    assert row.id == thread.pk
    (live,) = level.parts
    assert live.look == "live"
    share = row.messages.value / row.messages.top / 2
    assert float(live.width.rstrip("%")) == pytest.approx(100 * share, abs=0.01)


def test_what_was_spent_today_is_told_by_who_spent_it(ada, thread, profile):
    profile.model = "openai:gpt-5-mini"
    profile.save()
    used = {"requests": 2, "input_tokens": 1_000_000, "output_tokens": 0}
    turn(thread, "done", usage=used)
    turn(thread, "done", 2, usage=used, finished_at=timezone.now() - timedelta(days=2))
    turn(thread, "failed", 3, usage={})
    cycle(thread, "done", input_tokens=9000, output_tokens=700, cost="0.05")
    cycle(thread, "done", input_tokens=1000, output_tokens=100, cost=None)

    actor, observer, reflector = board(ada).spent

    assert (actor.calls, actor.read, actor.cost) == (2, "1M", "$0.25")
    assert (observer.calls, observer.read, observer.wrote) == (2, "10k", "800")
    assert observer.cost == "$0.05 and 1 more, price unknown"
    assert (reflector.calls, reflector.cost) == (0, "–")


def test_what_has_no_known_price_is_not_called_free(ada, thread, profile):
    profile.model = "ollama:llama3"
    profile.save()
    turn(thread, "done", usage={"requests": 1, "input_tokens": 100, "output_tokens": 10})

    assert board(ada).spent[0].cost == "price unknown"


def test_the_offline_model_costs_nothing_and_its_price_is_known(ada, thread):
    cycle(thread, "done", input_tokens=900, output_tokens=70, model="offline", cost=None)

    assert board(ada).spent[1].cost == "$0"


def test_the_day_begins_where_the_person_lives(ada, resource):
    Resource.objects.update(time_zone="Pacific/Auckland")

    found = board(ada)

    assert found.midnight.tzinfo.key == "Pacific/Auckland"
    assert timedelta(0) <= found.now - found.midnight < timedelta(hours=25)
