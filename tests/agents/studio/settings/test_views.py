import re
from datetime import timedelta
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone
from pydantic_ai.messages import ModelResponse, TextPart

from agents.models import AgentChange, Turn
from agents.services.thread import start
from memory.messages import user_prompt
from memory.models import MemoryRecord, Revision, Thread
from memory.services.append import append
from memory.services.configure import configure
from memory.services.look import look

pytestmark = pytest.mark.django_db


@pytest.fixture
def member(ada):
    client = Client()
    client.force_login(ada)
    return client


@pytest.fixture
def stranger(cleo):
    client = Client()
    client.force_login(cleo)
    return client


@pytest.fixture
def admin(ben):
    ben.is_superuser = True
    ben.save()
    client = Client()
    client.force_login(ben)
    return client


def url(thread):
    return f"/settings/{thread.pk}/"


def say(thread, words=60, times=1):
    for _ in range(times):
        now = timezone.now()
        answer = ModelResponse(parts=[TextPart("word " * words)], timestamp=now)
        append(thread.pk, [user_prompt("Go on.", now), answer], at=now)


def text_of(answer):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


def option(page, name):
    found = re.search(rf'id="option-{name}".*?id="said-{name}".*?</div>', page, re.S)
    return found[0]


# ---- who sees what


def test_a_stranger_finds_no_settings(stranger, thread):
    for path in ("", "preview", "back", "test", "scope/resource", "memory/off"):
        assert stranger.post(url(thread) + path).status_code == 404
    assert stranger.get(url(thread)).status_code == 404


def test_a_viewer_reads_options_and_changes_none(member, ada, thread, django_user_model):
    from django.contrib.auth.models import Group

    ada.groups.add(Group.objects.create(name="viewers"))

    page = member.get(url(thread)).content.decode()
    assert "You may read these options, but not change them." in page
    assert 'name="message_tokens"' not in page
    for path in ("", "preview", "back", "test", "scope/resource", "memory/off"):
        assert member.post(url(thread) + path, {"message_tokens": "700"}).status_code == 403
    assert not Revision.objects.exists()


def test_options_of_agents_are_read_by_all_and_changed_by_admins(member, admin, profile):
    page = member.get("/settings/agents/tester/").content.decode()
    assert "You may read these options" in page
    assert member.post("/settings/agents/tester/", {"message_tokens": "700"}).status_code == 403

    admin.post("/settings/agents/tester/", {"message_tokens": "700"})

    profile.refresh_from_db()
    assert profile.memory_options == {"message_tokens": 700, "observation_tokens": 200}


def test_the_overview_leads_to_conversations_agents_and_the_server(member, thread, profile):
    look(thread.pk)
    configure(thread.pk, {"message_tokens": 700})

    page = member.get("/settings/").content.decode()

    assert url(thread) in page
    assert "/settings/agents/tester/" in page
    assert page.count("own options") == 2
    assert "OM_OBSERVER_MODEL" in page


def test_the_overview_says_so_when_there_is_nothing_yet(stranger):
    assert "No conversations yet." in stranger.get("/settings/").content.decode()


# ---- where values come from


def test_each_option_says_its_value_and_who_set_it(member, thread):
    look(thread.pk)
    configure(thread.pk, {"observation_tokens": 300})

    page = member.get(url(thread)).content.decode()

    assert 'value="600"' in option(page, "message_tokens")
    assert "from the agent" in option(page, "message_tokens")
    assert 'Default: <span class="num">30000</span>' in option(page, "message_tokens")
    assert "set here" in option(page, "observation_tokens")
    assert 'Give back to the agent: <span class="num">200</span>' in option(
        page, "observation_tokens"
    )
    assert ">default<" in option(page, "block_after")
    assert "from the server" in option(page, "observer_prompt")


# ---- storing


def test_what_is_typed_over_is_set_and_what_is_left_stays_with_the_agent(member, ada, thread):
    answer = member.post(
        url(thread),
        {"message_tokens": "700", "observation_tokens": "200", "reason": "Small tests"},
    )

    record = MemoryRecord.objects.get()
    made = Revision.objects.get()
    assert record.config == {"message_tokens": 700}
    assert (made.author, made.reason) == (ada, "Small tests")
    assert answer.url == f"{url(thread)}?undo=0"


def test_what_is_given_back_follows_the_agent_again(member, thread):
    look(thread.pk)
    configure(thread.pk, {"message_tokens": 700, "instruction": "Names matter."})

    member.post(
        url(thread),
        {"message_tokens": "700", "give_back": "message_tokens", "instruction": "Names matter."},
    )

    assert MemoryRecord.objects.get().config == {"instruction": "Names matter."}


def test_a_text_of_the_agents_can_be_emptied_here(member, thread, profile):
    profile.memory_options = {"instruction": "Names matter."}
    profile.save()

    member.post(url(thread), {"instruction": ""})

    assert MemoryRecord.objects.get().config == {"instruction": ""}


def test_a_form_sent_as_it_is_changes_nothing(member, thread):
    page = member.get(url(thread)).content.decode()
    fields = dict(
        re.findall(r'<input class="field num" id="[^"]*" name="(\w+)" value="([^"]*)"', page)
    )
    assert len(fields) > 10

    member.post(url(thread), fields)

    assert not Revision.objects.exists()


@pytest.mark.parametrize(
    ("typed", "at", "said"),
    [
        ({"message_tokens": "many"}, "message_tokens", "“many” is not a number."),
        ({"buffer_tokens": "700"}, "buffer_tokens", "must be less than 600"),
        ({"parallel_calls": "0"}, "parallel_calls", "must be greater than or equal to 1"),
        ({"observer_model": "100 offline"}, "observer_model", "its largest tier must be at least"),
        ({"observer_model": "100 nonsense:x"}, "observer_model", "there is no provider"),
        (
            {"buffer_tokens": "off", "block_after": "2"},
            "block_after",
            "needs buffering, which buffer_tokens = false turns off",
        ),
        ({"instruction": "a\x00b"}, "instruction", "holds characters that cannot be stored"),
    ],
)
def test_what_cannot_be_is_said_beside_its_field(member, thread, typed, at, said):
    answer = member.post(url(thread), typed)

    assert answer.status_code == 422
    page = answer.content.decode()
    assert said in option(page, at)
    assert 'aria-invalid="true"' in option(page, at)
    assert page.count('class="fault"') == 1
    assert not Revision.objects.exists()


def test_what_can_be_but_surprises_is_said_beside_its_field(member, thread):
    page = member.post(
        f"{url(thread)}preview", {"buffer_tokens": "off", "buffer_on_idle": "on"}
    ).content.decode()

    assert "the turn that reaches the threshold waits" in option(page, "buffer_tokens")
    assert "Without effect: observing ahead is off." in option(page, "buffer_on_idle")
    assert "is kept from it" in option(page, "retrieval")


def test_somebody_elses_change_meanwhile_is_not_undone_unseen(member, thread):
    look(thread.pk)
    base = re.search(r'name="base" value="(\w+)"', member.get(url(thread)).content.decode())[1]
    configure(thread.pk, {"observation_tokens": 300})

    answer = member.post(url(thread), {"base": base, "message_tokens": "700"})

    assert answer.status_code == 409
    assert "Somebody changed these options while you were at it." in answer.content.decode()
    assert 'value="700"' in option(answer.content.decode(), "message_tokens")
    assert MemoryRecord.objects.get().config == {"observation_tokens": 300}


# ---- what a change would do


def test_a_draft_is_shown_before_it_is_stored(member, thread):
    say(thread, times=3)

    answer = member.post(
        f"{url(thread)}preview", {"message_tokens": "100"}, headers={"HX-Request": "true"}
    )

    said = text_of(answer)
    assert "/ 100" in said
    assert "tokens will be observed at once, at no cost; the next turn waits." in said
    assert answer.content.decode().startswith("<hx-partial")
    assert not MemoryRecord.objects.exists()


def test_a_change_with_an_effect_is_stored_once_the_effect_was_shown(member, thread):
    say(thread, times=3)
    typed = {"message_tokens": "100"}

    asked = member.post(url(thread), typed)
    assert asked.status_code == 422
    assert "Nothing was saved yet." in asked.content.decode()
    assert not Revision.objects.exists()
    seen = re.search(r'name="seen" value="(\w+)"', asked.content.decode())[1]

    assert member.post(url(thread), {**typed, "seen": seen}).status_code == 302
    assert MemoryRecord.objects.get().config == {"message_tokens": 100}


def test_the_effect_of_another_draft_does_not_count_as_seen(member, thread):
    say(thread, times=3)
    asked = member.post(url(thread), {"message_tokens": "100"})
    seen = re.search(r'name="seen" value="(\w+)"', asked.content.decode())[1]

    assert member.post(url(thread), {"message_tokens": "90", "seen": seen}).status_code == 422


def test_an_agents_change_says_how_many_conversations_it_reaches(admin, resource, profile):
    for times in (4, 4, 0):
        say(start(resource, profile), times=times)

    answer = admin.post("/settings/agents/tester/", {"message_tokens": "100"})

    assert answer.status_code == 422
    assert "2 of its 3 newest conversations will be past the threshold" in text_of(answer)


def test_what_it_would_do_to_an_agents_conversations_is_read_in_few_statements(
    admin, resource, profile, django_assert_max_num_queries
):
    for _ in range(12):
        say(start(resource, profile), times=1)

    with django_assert_max_num_queries(40):
        admin.post("/settings/agents/tester/preview", {"message_tokens": "100"})


def test_the_page_is_read_in_few_statements(member, thread, django_assert_max_num_queries):
    say(thread, times=5)
    look(thread.pk)
    for tokens in range(700, 720):
        configure(thread.pk, {"message_tokens": tokens})

    with django_assert_max_num_queries(25):
        member.get(url(thread))


# ---- history


def test_history_says_who_changed_what_and_goes_back(member, ada, thread):
    look(thread.pk)
    configure(thread.pk, {"message_tokens": 700}, author=ada)
    configure(thread.pk, {"message_tokens": 800}, author=ada, reason="More room")

    said = text_of(member.get(url(thread)))
    assert "Revision 2 by ada" in said
    assert "“More room”" in said
    assert "Messages before observation 700 → 800" in said
    assert "not set → 700" in said
    assert "Before all changes" in said

    member.post(f"{url(thread)}back", {"to": "1"})
    assert MemoryRecord.objects.get().config == {"message_tokens": 700}
    member.post(f"{url(thread)}back", {"to": "0"})
    assert MemoryRecord.objects.get().config == {}


@pytest.mark.parametrize("to", ["", "-1", "99", "x", "9" * 30, "²"])
def test_there_is_no_going_back_to_what_never_was(member, thread, to):
    look(thread.pk)
    configure(thread.pk, {"message_tokens": 700})

    answer = member.post(f"{url(thread)}back", {"to": to}, follow=True)

    assert "There is no revision" in answer.content.decode()
    assert MemoryRecord.objects.get().config == {"message_tokens": 700}


def test_an_agents_options_have_a_history_too(admin, ben, profile):
    for tokens in ("700", "800"):
        admin.post("/settings/agents/tester/", {"message_tokens": tokens})
    older = AgentChange.objects.order_by("created_at").first()
    assert "by ben" in text_of(admin.get("/settings/agents/tester/"))

    admin.post("/settings/agents/tester/back", {"to": str(older.pk)})
    profile.refresh_from_db()
    assert profile.memory_options["message_tokens"] == 700

    admin.post("/settings/agents/tester/back", {"to": "first"})
    profile.refresh_from_db()
    assert profile.memory_options == {"message_tokens": 600, "observation_tokens": 200}


def test_a_live_update_brings_the_history_alone(member, thread):
    look(thread.pk)
    configure(thread.pk, {"message_tokens": 700})

    parts = member.get(url(thread), headers={"X-Regions": "{}"}).content.decode()

    assert parts.count("<hx-partial") == 1
    assert 'id="history"' in parts
    assert '<form id="options"' not in parts


# ---- whose memory, and whether there is any


def test_sharing_says_what_it_does_before_it_does_it(member, thread, resource, profile):
    other = start(resource, profile)
    for each in (thread, other):
        say(each, times=5)
        look(each.pk)

    said = text_of(member.get(f"{url(thread)}scope/resource"))
    assert "2 conversations of Ada will share one memory" in said
    assert "tokens will be observed at once" in said
    assert MemoryRecord.objects.filter(closed_at=None).count() == 2

    member.post(f"{url(thread)}scope/resource")
    assert [r.scope for r in MemoryRecord.objects.filter(closed_at=None)] == ["resource"]
    assert "the memory shared by 2 conversations" in text_of(member.get(url(thread)))

    said = text_of(member.get(f"{url(thread)}scope/thread"))
    assert "2 conversations of Ada will have a memory each" in said


def test_memory_is_turned_off_and_on_with_its_effect_shown_first(member, thread):
    say(thread, times=2)
    look(thread.pk)

    said = text_of(member.get(f"{url(thread)}memory/off"))
    assert "the agent is sent the whole conversation" in said
    member.post(f"{url(thread)}memory/off")
    assert not Thread.objects.get().remembers
    page = text_of(member.get(url(thread)))
    assert "Memory is off" in page
    assert "Memory on → off" in page

    member.post(f"{url(thread)}memory/on")
    assert Thread.objects.get().remembers


def test_nothing_is_moved_while_an_answer_is_written(member, thread):
    look(thread.pk)
    Turn.objects.create(
        thread=thread,
        number=1,
        status="running",
        prompt="Hello",
        lease_token=uuid4(),
        lease_expires_at=timezone.now() + timedelta(minutes=1),
    )

    for path in ("memory/off", "scope/resource"):
        answer = member.post(url(thread) + path, follow=True)
        assert "An answer is being written." in answer.content.decode()
    assert Thread.objects.get().remembers
    assert MemoryRecord.objects.get().scope == "thread"


@pytest.mark.parametrize("path", ["scope/planet", "memory/maybe"])
def test_there_are_no_other_places_to_move_it(member, thread, path):
    assert member.get(url(thread) + path).status_code == 404


# ---- models


def test_a_phases_models_are_tried_out(member, thread):
    answer = member.post(
        f"{url(thread)}test",
        {"phase": "observer", "observer_model": "8000 offline\n90000 openai-compatible:x"},
        headers={"HX-Request": "true"},
    )

    said = text_of(answer)
    assert "offline ✓ answers" in said
    assert "has no address" in said
    assert "$0" in said


def test_only_the_phases_there_are_have_models(member, thread):
    assert member.post(f"{url(thread)}test", {"phase": "actor"}).status_code == 404
