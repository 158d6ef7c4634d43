import re

import pytest

from memory.models import MemoryRecord, Revision
from memory.services.configure import configure
from memory.services.look import look
from tests.agents.studio.settings.pages import text_of, url
from tests.memory.services import play

pytestmark = pytest.mark.django_db


def option(page, name):
    found = re.search(rf'id="option-{name}".*?id="said-{name}".*?</div>', page, re.S)
    return found[0]


# ---- who sees what


def test_an_agent_is_shown_with_the_gauges_of_no_conversation_of_others(
    stranger, member, thread, profile
):
    play.talk(thread, 1)
    assert 'role="meter"' in member.get("/settings/agents/tester/").content.decode()
    assert 'role="meter"' not in stranger.get("/settings/agents/tester/").content.decode()


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
    assert 'id="field-message_tokens"' in page
    assert 'for="field-message_tokens"' not in page  # What is only read is no form's field.
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
