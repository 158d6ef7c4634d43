import pytest

from agents.models import AgentChange
from memory.models import MemoryRecord
from memory.services.configure import configure
from memory.services.look import look
from tests.agents.studio.settings.pages import text_of, url

pytestmark = pytest.mark.django_db


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
