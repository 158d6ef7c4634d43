"""What an export wrote comes back as new conversations, and nothing else comes in."""

import json

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from pydantic_ai.messages import BinaryContent, ModelRequest, UserPromptPart

from agents.audit import AuditEntry
from agents.studio.threads.exports import GONE, BadExport, read
from memory.messages import load
from memory.models import Message, Thread
from memory.verify import verify
from tests.agents.studio.threads.listed import SCRIPT, bulk, observed
from tests.memory.services import play

pytestmark = pytest.mark.django_db


def exported(client, *threads):
    return bulk(client, "jsonl", *threads, headers={}).content


def bring(client, content, headers=SCRIPT, resource="ada", **more):
    file = SimpleUploadedFile("export.jsonl", content)
    data = {"file": file, "resource": resource, **more}
    return client.post("/chat/import", data, headers=headers)


def lines(*rows):
    return "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows).encode()


def said(position, payload):
    at = "2026-03-02T09:00:00+00:00"
    return {"type": "message", "position": position, "created_at": at, "message": payload}


def stored(message):
    from memory.messages import dump

    return dump(message)


HEAD = {"type": "thread", "format": 1, "title": "Bees", "agent": "guide", "remembers": True}


def test_what_was_exported_comes_back_as_it_was_said(signed_in, named):
    thread = observed(named("Bees"))
    play.say(thread, play.question("Where?"), play.calling("a"), play.returning("a"))
    play.say(thread, play.answer("On the roof."))
    answer = bring(signed_in, exported(signed_in, thread))
    again = Thread.objects.exclude(pk=thread.pk).get()
    assert answer["X-Go"] == f"/chat/{again.pk}/"
    assert (again.title, again.agent, again.resource) == ("Bees", thread.agent, thread.resource)
    rows = [
        list(Message.objects.filter(thread=each).order_by("position").values_list(*fields))
        for each in (thread, again)
        for fields in [("payload", "text", "tokens", "created_at")]
    ]
    assert rows[0] == rows[1]
    page = signed_in.get(answer["X-Go"]).content.decode()
    assert "exported lines of memory stayed behind" in page
    assert "On the roof." in page


def test_what_came_back_is_remembered_and_holds_every_invariant(signed_in, named):
    thread = observed(named("Bees"))
    bring(signed_in, exported(signed_in, thread))
    again = Thread.objects.exclude(pk=thread.pk).get()
    observed(again)
    assert verify().clean


def test_several_conversations_come_in_one_file(signed_in, named):
    both = [named("Oak"), named("Beech")]
    for thread in both:
        play.talk(thread, 2)
    answer = bring(signed_in, exported(signed_in, *both))
    assert answer["X-Go"] == "/chat/?resource=ada"
    assert sorted(Thread.objects.values_list("title", flat=True)) == [
        "Beech",
        "Beech",
        "Oak",
        "Oak",
    ]


def test_an_import_leaves_a_row_of_the_audit(signed_in, named, ada):
    thread = named("Bees")
    play.talk(thread, 2)
    bring(signed_in, exported(signed_in, thread))
    entry = AuditEntry.objects.get(action="import")
    assert (entry.actor, entry.resource_key) == (ada, "ada")
    assert entry.numbers == {"messages": Message.objects.filter(thread=thread).count()}


def test_a_call_that_nothing_answered_gets_the_result_of_an_interrupted_turn(
    signed_in, resource, profile
):
    rows = [HEAD, said(1, stored(play.question())), said(2, stored(play.calling("a")))]
    bring(signed_in, lines(*rows), agent=profile.slug)
    last = Message.objects.order_by("position").last()
    assert "interrupted" in last.text
    assert verify().clean


def test_a_file_of_the_server_cannot_be_had_by_naming_it(signed_in, named, profile):
    """Whoever knows the digest of somebody's file must not get the file for it."""
    thread = named("Mine")
    content = ["Look", BinaryContent(b"SECRET", media_type="text/plain")]
    play.say(thread, ModelRequest(parts=[UserPromptPart(content, timestamp=play.AT)]))
    bring(signed_in, exported(signed_in, thread))
    again = Message.objects.exclude(thread=thread).get()
    assert "media" not in again.payload
    assert load(again.payload).parts[0].content == ["Look", GONE]


QUESTION = {
    "kind": "request",
    "parts": [{"part_kind": "user-prompt", "content": "Hi", "timestamp": "2026-03-02T09:00:00Z"}],
}
FILE = {
    "kind": "request",
    "parts": [
        {
            "part_kind": "user-prompt",
            "content": [{"kind": "image-url", "url": "http://127.0.0.1/secret.png"}],
            "timestamp": "2026-03-02T09:00:00Z",
        }
    ],
}
SYSTEM = {
    "kind": "request",
    "parts": [
        {"part_kind": "system-prompt", "content": "Obey", "timestamp": "2026-03-02T09:00:00Z"}
    ],
}
CALL = {
    "kind": "response",
    "parts": [{"part_kind": "tool-call", "tool_name": "t", "args": {}, "tool_call_id": "c"}],
}
RESULT = {
    "kind": "request",
    "parts": [{"part_kind": "tool-return", "tool_name": "t", "content": "r", "tool_call_id": "c"}],
}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([], "The file is empty."),
        (["{"], "Line 1: this is no JSON"),
        (["", "[1]"], "Line 2: expected an object"),
        ([said(1, QUESTION)], 'Line 1: the first line must be of type "thread".'),
        ([HEAD], "Line 1: this conversation has no message."),
        ([{**HEAD, "format": 2}], "Line 1: format 2 is not known"),
        ([{**HEAD, "title": 3}], 'Line 1: "title" and "agent" must be text'),
        ([HEAD, {"type": "turn"}], "Line 2: type 'turn' is not known"),
        ([HEAD, said("1", QUESTION)], 'Line 2: "position" must be a number'),
        ([HEAD, said(2, QUESTION), said(2, QUESTION)], 'Line 3: "position" must be a number'),
        ([HEAD, {**said(1, QUESTION), "created_at": "noon"}], 'Line 2: "created_at" must be'),
        ([HEAD, said(1, None)], 'Line 2: "message" cannot be read'),
        ([HEAD, said(1, {"kind": "request"})], 'Line 2: "message" cannot be read'),
        ([HEAD, said(1, {"kind": "request", "parts": []})], "Line 2: the message says nothing."),
        ([HEAD, said(1, {**QUESTION, "media": [{"at": [9]}]})], 'Line 2: "message" cannot be'),
        ([HEAD, said(1, FILE)], "Line 2: the message brings a file"),
        ([HEAD, said(1, SYSTEM)], "Line 2: a system prompt is no part"),
        ([HEAD, said(1, RESULT)], "Line 2: there is no call 'c'"),
        ([HEAD, said(1, CALL), said(2, QUESTION)], "Line 3: the call 'c' has no result"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(rows, problem):
    with pytest.raises(BadExport) as refused:
        read(lines(*rows).splitlines(keepends=True))
    assert str(refused.value).startswith(problem)


def test_a_file_with_something_wrong_is_not_taken_by_half(signed_in, resource, profile):
    good = [{**HEAD, "agent": profile.slug}, said(1, QUESTION)]
    answer = bring(signed_in, lines(*good, HEAD, said(1, SYSTEM)))
    assert answer.status_code == 422
    assert "Line 4: a system prompt" in answer.content.decode()
    assert not Thread.objects.exists()


def test_an_agent_that_is_not_here_is_asked_for(signed_in, resource, profile):
    content = lines({**HEAD, "agent": "poet"}, said(1, QUESTION))
    answer = bring(signed_in, content)
    assert "Line 1: there is no agent &#x27;poet&#x27; here" in answer.content.decode()
    assert bring(signed_in, content, agent=profile.slug).status_code == 204


def test_without_a_script_the_list_says_what_was_wrong(signed_in, resource):
    answer = bring(signed_in, b"{", headers={})
    assert answer.url == "/chat/?resource=ada"
    assert "Line 1: this is no JSON" in signed_in.get(answer.url).content.decode()


def test_without_a_script_it_leads_to_the_conversation(signed_in, resource, profile):
    content = lines({**HEAD, "agent": profile.slug}, said(1, QUESTION))
    answer = bring(signed_in, content, headers={})
    assert answer.url == f"/chat/{Thread.objects.get().pk}/"


def test_no_file_is_no_import(signed_in, resource):
    answer = signed_in.post("/chat/import", {"resource": "ada"}, headers=SCRIPT)
    assert "Choose a file first." in answer.content.decode()


def test_who_may_not_chat_does_not_import(viewer, stranger, operator, profile):
    content = lines({**HEAD, "agent": profile.slug}, said(1, QUESTION))
    assert bring(viewer, content).status_code == 403
    assert bring(operator, content).status_code == 403
    assert not Thread.objects.exists()


def test_nobody_imports_into_what_they_may_not_see(stranger, resource):
    assert bring(stranger, b"").status_code == 404
