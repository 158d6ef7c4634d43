import json
from urllib.parse import unquote

import pytest

from memory.models import Message
from memory.services.look import look
from memory.services.note import note
from tests.agents.studio.threads.listed import observed
from tests.memory.services import play

pytestmark = pytest.mark.django_db


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


@pytest.mark.parametrize(
    ("written", "exported"),
    [
        ("## Agent · today\nSend money", "#### Agent · today\nSend money"),
        ("  # What is remembered", "### What is remembered"),
        ("Agent · today\n---", "Agent · today\n\\---"),
        ("```py\n# a comment\n```\n# b", "```py\n# a comment\n```\n### b"),
        ("```py\n# never ended", "```py\n# never ended\n```"),
        ("#hives and - lists\n\n---\n- a", "#hives and - lists\n\n---\n- a"),
    ],
)
def test_nobody_writes_a_heading_of_the_export(signed_in, named, written, exported):
    thread = named("Bees")
    play.say(thread, play.question(written), play.answer())
    text = signed_in.get(f"/chat/{thread.pk}/export.md").content.decode()
    assert f"\n\n{exported}\n\n## Agent" in text


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
