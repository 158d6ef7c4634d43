"""Forms of the chat page: branches, forks, operations, and what may not be done."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.utils import timezone

from agents.models import AgentProfile, RequestSnapshot, Turn
from agents.services.branch import branch
from agents.services.fork import fork
from agents.services.remember import remember as switch_memory
from agents.services.send import BadPrompt, send
from agents.services.thread import start
from memory.dispatch import OPERATIONS, asked
from memory.models import Cycle, Line, MemoryRecord, Message, Observation, Resource, Thread
from memory.models.cycle import observer_lane
from memory.services.change import Refused
from memory.services.look import look
from memory.services.shelve import hide
from tests.agents.clients import client_of
from tests.agents.studio.threads.listed import observed
from tests.memory.services import play

pytestmark = pytest.mark.django_db

BLOCKS = [
    {"kind": "memory", "source": "revision 1", "tokens": 2100, "hash": "x"},
    {"kind": "prompt", "source": "conversation", "tokens": 7700},
]
SCRIPT = {"HX-Request": "true"}


class Woken(list):
    """Note who is woken, as a dispatcher."""

    def wake(self, thread_id):
        self.append(thread_id)


@pytest.fixture
def woken():
    heard = {name: Woken() for name in OPERATIONS}
    before = {name: asked[name].use(heard[name]) for name in OPERATIONS}
    yield heard
    for name in OPERATIONS:
        asked[name].use(before[name])


@pytest.fixture
def viewer(cleo, resource):
    cleo.groups.add(Group.objects.create(name="viewers"))
    resource.members.add(cleo)
    return client_of(cleo)


def talked(thread, *prompts):
    """Store turns of a thread, each of a prompt and an answer, with what each request held."""
    last = Thread.objects.get(pk=thread.pk).last_position
    number = Turn.objects.filter(thread=thread).count()
    said = [(play.question(text), play.answer(f"Answer to: {text}")) for text in prompts]
    play.say(thread, *(message for pair in said for message in pair))
    turns = Turn.objects.bulk_create(
        Turn(
            thread=thread,
            number=number + index + 1,
            status="done",
            prompt=prompt,
            first_position=last + 2 * index + 1,
            last_position=last + 2 * index + 2,
        )
        for index, prompt in enumerate(prompts)
    )
    RequestSnapshot.objects.bulk_create(
        RequestSnapshot(turn=turn, step=1, revision=0, blocks=BLOCKS, total=9800) for turn in turns
    )
    return thread


def page_of(client, thread, query=""):
    return client.get(f"/chat/{thread.pk}/{query}").content.decode()


def prompts(thread):
    rows = Message.objects.filter(thread=thread, kind="request").order_by("position")
    return [row.text for row in rows]


# ---- branches


def test_a_prompt_sent_anew_waits_in_a_fork_from_before_it(signed_in, thread):
    talked(thread, "One", "Two")
    answer = signed_in.post(f"/chat/{thread.pk}/again", {"turn": 2}, headers=SCRIPT)
    child = Thread.objects.exclude(pk=thread.pk).get()
    assert answer["X-Go"] == f"/chat/{child.pk}/"
    assert (child.parent, child.fork_position, prompts(child)) == (thread, 2, ["One"])
    turn = Turn.objects.get(thread=child, status="waiting")
    assert (turn.prompt, turn.number) == ("Two", 2)


def test_another_text_is_sent_in_place_of_a_prompt_and_its_files_stay(thread, ada):
    talked(thread, "One")
    file = {"hash": "x", "name": "a.txt", "media_type": "text/plain", "size": 1}
    Turn.objects.update(attachments=[file])
    child = branch(thread.pk, 1, text="Eins", author=ada)
    turn = Turn.objects.get(thread=child)
    assert (turn.prompt, turn.attachments, turn.author) == ("Eins", [file], ada)
    assert child.fork_position == 0


def test_a_message_is_sent_anew_without_a_script(signed_in, thread):
    talked(thread, "One")
    assert "Sent in place of your earlier message" in page_of(signed_in, thread)
    html = page_of(signed_in, thread, "?edit=1")
    assert 'name="again" id="again" value="1"' in html
    assert ">One</textarea>" in html
    answer = signed_in.post(f"/chat/{thread.pk}/send", {"again": "1", "text": "Eins"})
    child = Thread.objects.exclude(pk=thread.pk).get()
    assert answer.url == f"/chat/{child.pk}/"


def test_what_cannot_be_sent_anew_makes_no_branch(thread):
    talked(thread, "One")
    send(thread.pk, "Two")
    with pytest.raises(Refused, match="has begun"):
        branch(thread.pk, 2)
    with pytest.raises(BadPrompt, match="empty"):
        branch(thread.pk, 1, text=" ")
    assert Thread.objects.count() == 1


def test_branches_of_one_message_lie_flat_and_lead_to_each_other(signed_in, thread):
    talked(thread, "One", "Two")
    first = branch(thread.pk, 2, text="Zwei")
    talked(first, "Zwei")
    second = branch(first.pk, 3, text="Deux")
    assert second.parent == thread
    assert 'aria-label="Branch 1 of 3"' in page_of(signed_in, thread)
    html = page_of(signed_in, first)
    assert 'aria-label="Branch 2 of 3"' in html
    assert f'href="/chat/{thread.pk}/" aria-label="The branch before"' in html
    assert f'href="/chat/{second.pk}/" aria-label="The branch after"' in html


def test_a_branch_that_was_deleted_is_not_counted(signed_in, thread):
    talked(thread, "One")
    hide(branch(thread.pk, 1).pk)
    assert "Branch 1 of" not in page_of(signed_in, thread)


def test_a_branch_of_what_was_deleted_stays_with_its_fork(thread):
    talked(thread, "One", "Two")
    child = fork(thread.pk, 2)
    talked(child, "Zwei")
    hide(thread.pk)
    assert branch(child.pk, 2).parent == child


def test_a_conversation_goes_on_from_any_answer(signed_in, thread):
    talked(thread, "One", "Two")
    assert f'formaction="/chat/{thread.pk}/fork" name="position" value="2"' in page_of(
        signed_in, thread
    )
    answer = signed_in.post(f"/chat/{thread.pk}/fork", {"position": 2})
    child = Thread.objects.exclude(pk=thread.pk).get()
    assert answer.url == f"/chat/{child.pk}/"
    assert prompts(child) == ["One"]


def test_where_no_step_ends_the_page_says_so(signed_in, thread):
    play.say(thread, play.question(), play.calling("a"), play.returning("a"), play.answer())
    answer = signed_in.post(f"/chat/{thread.pk}/fork", {"position": 2}, headers=SCRIPT)
    assert answer.status_code == 422
    assert "No step ends at position 2" in answer.content.decode()


@pytest.mark.parametrize("position", ["", "x", "-1", "²", "9" * 30])
def test_a_position_that_is_none_does_not_exist(signed_in, thread, position):
    assert signed_in.post(f"/chat/{thread.pk}/fork", {"position": position}).status_code == 404


# ---- footers and places


def test_a_reply_says_what_its_request_held_and_leads_to_it(signed_in, thread):
    talked(thread, "One")
    html = page_of(signed_in, thread)
    assert f'href="/context/{thread.pk}/requests/1/?step=1"' in html
    assert '<span class="num">9.8k</span> tokens · memory <span class="num">2.1k</span>' in html


def test_the_last_reply_of_a_turn_belongs_to_its_last_request(signed_in, thread):
    play.say(thread, play.question(), play.calling("a"), play.returning("a"), play.answer())
    turn = Turn.objects.create(
        thread=thread, number=1, status="done", prompt="", first_position=1, last_position=4
    )
    for step, total in ((1, 1000), (2, 2000)):
        RequestSnapshot.objects.create(turn=turn, step=step, revision=0, blocks=[], total=total)
    html = page_of(signed_in, thread)
    assert (
        '/requests/1/?step=2" title="What was sent for this reply">used <span class="num">2k'
        in html
    )


def test_every_message_has_a_place_that_links_lead_to(signed_in, thread):
    talked(thread, "One", "Two")
    html = page_of(signed_in, thread)
    assert [html.count(f'id="message-{position}"') for position in range(1, 6)] == [1, 1, 1, 1, 0]


# ---- operations


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_operation_is_carried_out_in_the_background(
    signed_in, thread, woken, operation, django_capture_on_commit_callbacks
):
    play.talk(thread, 6)
    play.buffer_all(thread)
    play.talk(thread, 1)
    play.request(thread)
    play.talk(thread, 6)
    play.buffer_all(thread)
    play.talk(thread, 1)
    with django_capture_on_commit_callbacks(execute=True):
        answer = signed_in.post(f"/chat/{thread.pk}/operate/{operation}", headers=SCRIPT)
    assert (answer.status_code, woken[operation]) == (204, [thread.pk])


def test_with_nothing_to_do_an_operation_says_why(signed_in, thread, woken):
    answer = signed_in.post(f"/chat/{thread.pk}/operate/reflect", headers=SCRIPT)
    assert answer.status_code == 422
    assert "nothing to condense" in answer.content.decode()
    assert not woken["reflect"]


def test_an_unknown_operation_does_not_exist(signed_in, thread):
    assert signed_in.post(f"/chat/{thread.pk}/operate/erase").status_code == 404


# ---- who may what


def test_a_viewer_reads_and_does_nothing(viewer, thread):
    talked(thread, "One")
    html = page_of(viewer, thread)
    assert "You may read this conversation, not write in it." in html
    assert 'id="composer"' not in html
    assert 'id="new-thread"' not in html
    assert 'data-may=""' in html
    assert "data-needs" not in html
    for path, data in (
        ("send", {"text": "x"}),
        ("stop", {}),
        ("again", {"turn": 1}),
        ("fork", {"position": 2}),
        ("turns/1/withdraw", {}),
        ("turns/1/retry", {}),
        ("files", {}),
        ("operate/observe", {}),
        ("rename", {"title": "x"}),
        ("discard", {}),
    ):
        assert viewer.post(f"/chat/{thread.pk}/{path}", data).status_code == 403, path
    assert Turn.objects.count() == 1


def test_a_stranger_finds_nothing(cleo, thread):
    stranger = client_of(cleo)
    for path in ("send", "again", "fork", "operate/observe", "discard", "rename"):
        assert stranger.post(f"/chat/{thread.pk}/{path}").status_code == 404
    assert stranger.get(f"/chat/{thread.pk}/panel/").status_code == 404


def test_an_operator_tends_what_is_not_theirs_but_does_not_talk_there(
    ben, thread, woken, django_capture_on_commit_callbacks
):
    ben.groups.add(Group.objects.create(name="operators"))
    operator = client_of(ben)
    play.talk(thread, 2)
    assert 'data-may="operate"' in page_of(operator, thread)
    assert operator.post(f"/chat/{thread.pk}/send", {"text": "x"}).status_code == 403
    with django_capture_on_commit_callbacks(execute=True):
        answer = operator.post(f"/chat/{thread.pk}/operate/observe", headers=SCRIPT)
    assert (answer.status_code, woken["observe"]) == (204, [thread.pk])


def test_a_viewers_page_stays_without_controls_when_it_is_updated(viewer, signed_in, thread):
    talked(thread, "One")
    for path in ("regions", "panel/", "earlier?from=1&before=9"):
        mine = signed_in.get(f"/chat/{thread.pk}/{path}").content.decode()
        theirs = viewer.get(f"/chat/{thread.pk}/{path}").content.decode()
        assert "data-needs" not in theirs, path
        assert theirs.count("data-etag") == mine.count("data-etag")
    assert "data-needs" in signed_in.get(f"/chat/{thread.pk}/regions").content.decode()


# ---- what runs


@pytest.fixture
def buffering(thread):
    """Return a cycle that runs, after two of the same kind that took 4 and 8 seconds."""
    record = MemoryRecord.objects.create(scope="thread", resource=thread.resource, thread=thread)
    shared = {"record": record, "thread": thread, "kind": "buffer", "epoch": 0}
    shared["lane"], now = observer_lane(thread.pk), timezone.now()
    shared["lease_expires_at"] = now + timedelta(minutes=1)
    for seconds in (4, 8):
        began = now - timedelta(minutes=seconds)
        ended = began + timedelta(seconds=seconds)
        Cycle.objects.create(status="done", started_at=began, finished_at=ended, **shared)
    return Cycle.objects.create(**shared)


def test_what_runs_says_how_long_it_usually_takes_and_is_cancelled(signed_in, thread, buffering):
    html = page_of(signed_in, thread)
    path = f"/chat/{thread.pk}/cycles/{buffering.pk}/cancel"
    assert "usually 4.0 s" in html
    assert f'formaction="{path}"' in html

    assert signed_in.post(path, headers=SCRIPT).status_code == 204
    again = signed_in.post(path, headers=SCRIPT)

    html = page_of(signed_in, thread)
    assert "Buffering cancelled" in html
    assert "Last observation cancelled at" in html
    assert "Cancelled by ada." in html
    assert (again.status_code, path in html) == (422, False)


def test_a_viewer_cancels_nothing_and_nobody_what_is_not_there(
    viewer, signed_in, thread, buffering
):
    path = f"/chat/{thread.pk}/cycles/{buffering.pk}/cancel"
    assert path not in page_of(viewer, thread)
    assert viewer.post(path).status_code == 403
    assert signed_in.post(f"/chat/{thread.pk}/cycles/{thread.pk}/cancel").status_code == 404
    buffering.refresh_from_db()
    assert buffering.status == "running"


# ---- temporary


def test_a_temporary_conversation_says_so_and_is_discarded_at_once(
    signed_in, resource, profile, settings
):
    thread = start(resource, profile, temporary=True)
    talked(thread, "My code is 4711.")
    settings.KEPT_DAYS = {**settings.KEPT_DAYS, "temporary": 7}
    html = page_of(signed_in, thread)
    assert "temporary: never remembered" in html
    assert "It is erased once nobody wrote in it for 7 days." in html
    assert "This conversation is never remembered" in html
    assert "Observe now" not in html
    answer = signed_in.post(f"/chat/{thread.pk}/discard")
    assert answer.url == "/chat/?resource=ada"
    assert not Thread.objects.exists()
    assert not Message.objects.filter(text__contains="4711").exists()


def test_a_temporary_conversation_in_which_an_answer_is_written_is_erased_after_it(
    signed_in, resource, profile
):
    thread = start(resource, profile, temporary=True)
    turn = Turn.objects.create(
        thread=thread,
        number=1,
        prompt="",
        status="running",
        lease_token=thread.pk,
        lease_expires_at=thread.created_at,
    )
    signed_in.post(f"/chat/{thread.pk}/discard")
    turn.refresh_from_db()
    assert turn.stop_requested
    assert Thread.objects.get().deleted_at is not None


def test_what_is_remembered_is_not_discarded_like_this(signed_in, thread):
    html = signed_in.post(f"/chat/{thread.pk}/discard", follow=True).content.decode()
    assert "Delete it in the list of conversations" in html
    assert Thread.objects.filter(deleted_at=None).exists()


@pytest.mark.parametrize("scope", ["thread", "resource"])
def test_a_conversation_whose_memory_is_turned_off_is_not_temporary(signed_in, thread, scope):
    Resource.objects.update(scope=scope)
    observed(thread)
    switch_memory(thread.pk, False)

    html = page_of(signed_in, thread)
    assert "memory off" in html
    assert "Discard" not in html
    assert "turned off for this conversation" in html
    assert signed_in.post(f"/chat/{thread.pk}/discard").status_code == 302
    assert Line.objects.exists()
    assert Thread.objects.filter(deleted_at=None).exists()


# ---- the panel alone


def test_the_panel_stands_in_a_window_of_its_own(signed_in, thread):
    play.talk(thread, 2)
    html = signed_in.get(f"/chat/{thread.pk}/panel/").content.decode()
    assert 'id="gauges"' in html
    assert 'id="observations"' in html
    assert 'id="log"' not in html


# ---- large


def test_a_large_conversation_takes_as_many_statements_as_a_small_one(
    signed_in, ada, django_assert_max_num_queries
):
    small, large = (conversation(ada, key, turns) for key, turns in (("s", 35), ("l", 200)))
    page_of(signed_in, small)
    with django_assert_max_num_queries(30) as few:
        page_of(signed_in, small)
    with django_assert_max_num_queries(len(few)):
        page_of(signed_in, large)


def remember(thread, turns):
    """Show an observation of ten lines for each turn of a thread, without asking anybody."""
    record = MemoryRecord.objects.create(
        resource=thread.resource, thread=thread, revision=max(1, turns // 2)
    )
    rows = [
        Observation(
            record=record,
            thread=thread,
            kind="observation",
            first_position=2 * turn + 1,
            last_position=2 * turn + 2,
            since=1 + turn // 4,
            place=turn,
        )
        for turn in range(turns - 1)
    ]
    Observation.objects.bulk_create(rows)
    Line.objects.bulk_create(
        Line(
            observation=row,
            ordinal=ordinal,
            kind="high",
            text=f"line {row.place}.{ordinal} of it",
            tokens=5,
            since=row.since,
        )
        for row in rows
        for ordinal in range(10)
    )


def conversation(user, key, turns):
    """Return a conversation of so many turns, each but the last with ten lines."""
    resource = Resource.objects.create(key=key, name=key)
    resource.members.add(user)
    profile, _ = AgentProfile.objects.get_or_create(slug="big", name="Big", instructions="x")
    thread = start(resource, profile)
    talked(thread, *(f"Prompt {number}" for number in range(turns)))
    remember(thread, turns)
    return thread


def test_of_many_lines_the_panel_shows_the_newest_and_says_how_many_there_are(signed_in, thread):
    play.talk(thread, 31)
    remember(thread, 31)
    assert len(look(thread.pk).lines) == 300
    html = page_of(signed_in, thread)
    assert "100 earlier lines on the memory page" in html
    assert '<span class="caption num">300 lines' in html
    assert "line 29.9 " in html
    assert "line 0.0 " not in html
