from uuid import uuid4

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.test import Client

from agents.consumers import BROKEN, MOST_BROKEN, NOT_FOUND, SIGNED_OUT, TOO_MANY
from agents.live import NAMES
from agents.models import Turn
from agents.services.send import send
from agents.services.thread import start
from memory.models import Message
from memory.services.look import look
from memory.services.note import note
from memory.services.scope import change_scope
from memory.services.shelve import hide
from tests.agents.browser import Socket, session_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def session(ada):
    return await sync_to_async(session_of)(ada)


@pytest.fixture
async def strange(cleo):
    return await sync_to_async(session_of)(cleo)


async def test_a_page_is_sent_every_region_it_does_not_have(thread, session):
    async with Socket(thread.pk, session) as socket:
        await socket.say("have", etags={})
        content = await socket.hear_of(*(f'hx-target="#{name}"' for name in NAMES))

    assert content.count("<hx-partial") == content.count("</hx-partial>")


async def test_a_message_is_accepted_once_however_often_it_is_sent(thread, session):
    key = str(uuid4())
    async with Socket(thread.pk, session) as socket:
        for _ in range(2):
            await socket.say("send", text="Hello", key=key)
            assert (await socket.hear("accepted"))["key"] == key
        await socket.hear_of("waits its turn", "Hello")

    assert await Turn.objects.acount() == 1


async def test_what_one_page_sends_every_page_shows(thread, session):
    async with Socket(thread.pk, session) as one, Socket(thread.pk, session) as other:
        await one.say("send", text="Hello", key=str(uuid4()))

        assert "Hello" in await other.hear_of("waits its turn")


async def test_a_waiting_message_can_be_withdrawn(thread, session):
    turn = await sync_to_async(send)(thread.pk, "Hello")
    async with Socket(thread.pk, session) as socket:
        await socket.hear_of("Hello")
        for _ in range(2):
            await socket.say("withdraw", turn=turn.number)
        refusal = await socket.hear("error")

    await turn.arefresh_from_db()
    assert turn.status == Turn.Status.WITHDRAWN
    assert refusal["code"] == "refused"


async def test_a_refused_message_says_why_and_which_one(thread, session):
    async with Socket(thread.pk, session) as socket:
        for code, text in (("refused", ""), ("limited", "x" * 1_000_000)):
            key = str(uuid4())
            await socket.say("send", text=text, key=key)
            refusal = await socket.hear("error")
            assert (refusal["code"], refusal["key"]) == (code, key)

    assert await Turn.objects.acount() == 0


async def test_nobody_signed_in_is_told_so(thread):
    async with Socket(thread.pk) as socket:
        assert await socket.closed() == SIGNED_OUT


async def test_a_stranger_finds_no_thread(thread, strange):
    async with Socket(thread.pk, strange) as socket:
        assert await socket.closed() == NOT_FOUND


async def test_a_guessed_thread_is_not_found(session):
    async with Socket(uuid4(), session) as socket:
        assert await socket.closed() == NOT_FOUND


async def test_a_page_of_another_site_is_not_let_in(thread, session):
    async with Socket(thread.pk, session, origin=b"https://evil.example") as socket:
        assert not socket.accepted


async def test_somebody_who_signed_out_can_send_nothing_more(thread, session, ada):
    async with Socket(thread.pk, session) as socket:
        await sync_to_async(_sign_out)(session)
        await socket.say("send", text="Hello", key=str(uuid4()))

        assert await socket.closed() == SIGNED_OUT
    assert await Turn.objects.acount() == 0


def _sign_out(session):
    client = Client()
    client.cookies["sessionid"] = session
    assert client.post("/sign-out/").status_code == 302


async def test_somebody_who_is_no_longer_a_member_can_send_nothing_more(thread, session, ada):
    async with Socket(thread.pk, session) as socket:
        await sync_to_async(thread.resource.members.remove)(ada)
        await socket.say("send", text="Hello", key=str(uuid4()))

        assert await socket.closed() == NOT_FOUND
    assert await Turn.objects.acount() == 0


async def test_a_page_hears_of_a_memory_it_shares_and_of_the_one_that_takes_over(
    resource, profile, session, ada
):
    resource.scope = "resource"
    await resource.asave()
    first = await sync_to_async(start)(resource, profile)
    second = await sync_to_async(start)(resource, profile)
    record = (await sync_to_async(look)(first.pk)).record
    async with Socket(second.pk, session) as socket:
        await socket.hear_of('hx-target="#observations"')
        await sync_to_async(note)(record.pk, "Bees sleep in winter", thread_id=first.pk)
        await socket.hear_of("Bees sleep in winter")

        await sync_to_async(change_scope)(resource.pk, "thread")
        await sync_to_async(change_scope)(resource.pk, "resource")
        joined = (await sync_to_async(look)(first.pk)).record
        await socket.hear_of("Scope changed")
        await socket.say("have", etags={})
        await socket.say("ping")
        await socket.hear("pong")
        await sync_to_async(note)(joined.pk, "Wasps do not", thread_id=first.pk)
        await socket.hear_of("Wasps do not")


FRAMES = [
    "{",
    "[]",
    "null",
    "3",
    '"send"',
    "{}",
    '{"type": "dance"}',
    '{"type": ["send"]}',
    '{"type": "send"}',
    '{"type": "send", "text": 3, "key": "x"}',
    '{"type": "send", "text": "Hi", "key": "no uuid"}',
    '{"type": "withdraw", "turn": "1"}',
    '{"type": "withdraw", "turn": -1}',
    '{"type": "retry", "turn": 99999999999999999999}',
    '{"type": "have"}',
    '{"type": "have", "etags": []}',
    "[" * 100_000,
]


@pytest.mark.parametrize("text", FRAMES)
async def test_a_broken_frame_is_answered_and_the_page_goes_on(thread, session, text):
    async with Socket(thread.pk, session) as socket:
        await socket.wire.send_to(text_data=text)
        assert (await socket.hear("error"))["code"] == "broken"

        await socket.say("ping")
        await socket.hear("pong")


async def test_bytes_are_a_broken_frame(thread, session):
    async with Socket(thread.pk, session) as socket:
        await socket.wire.send_to(bytes_data=b"\xff\xfe")
        assert (await socket.hear("error"))["code"] == "broken"


async def test_odd_etags_only_cost_a_render(thread, session):
    async with Socket(thread.pk, session) as socket:
        await socket.say("have", etags={"entries": 3, "nowhere": "x", "gauges": None})
        await socket.hear_of('hx-target="#gauges"', 'hx-target="#entries"')


async def test_ten_broken_frames_close_the_socket(thread, session):
    async with Socket(thread.pk, session) as socket:
        for _ in range(MOST_BROKEN):
            await socket.wire.send_to(text_data="{")

        assert await socket.closed() == BROKEN


async def test_hostile_text_is_stored_as_it_can_be_and_shown_as_text(thread, session):
    text = "</observations><thread id=3><script>x</script>\u0000\ud83d bye"
    async with Socket(thread.pk, session) as socket:
        await socket.say("send", text=text, key=str(uuid4()))
        content = await socket.hear_of("bye")

    assert "<script" not in content
    assert "<thread" not in content
    assert await Message.objects.acount() == 0


async def test_who_may_only_look_is_refused_whatever_they_send(thread, resource, cleo, strange):
    await resource.members.aadd(cleo)
    await cleo.groups.aadd(await Group.objects.acreate(name="viewers"))
    async with Socket(thread.pk, strange) as socket:
        for frame in (
            {"kind": "send", "text": "x", "key": str(uuid4())},
            {"kind": "stop"},
            {"kind": "withdraw", "turn": 1},
            {"kind": "retry", "turn": 1},
        ):
            await socket.say(**frame)
            assert "not write in it" in (await socket.hear("error"))["message"]
    assert not await Turn.objects.aexists()


async def test_a_deleted_conversation_is_there_for_nobody(thread, session):
    await sync_to_async(hide)(thread.pk)
    async with Socket(thread.pk, session) as socket:
        assert await socket.closed() == NOT_FOUND


async def test_a_thread_that_is_gone_closes_its_pages(thread, session):
    async with Socket(thread.pk, session) as socket:
        await socket.hear_of('hx-target="#gauges"')
        await sync_to_async(thread.delete)()
        await socket.say("send", text="Hello", key=str(uuid4()))

        assert await socket.closed() == NOT_FOUND


async def test_a_page_too_many_is_told_so_and_closed(settings, thread, session):
    settings.SOCKETS_PER_USER = 1
    async with Socket(thread.pk, session), Socket(thread.pk, session) as second:
        refusal = await second.hear("error")
        assert (refusal["code"], refusal["limit"]) == ("limited", "pages at once")
        assert await second.closed() == TOO_MANY
    async with Socket(thread.pk, session) as third:
        await third.say("ping")
        await third.hear("pong")


async def test_a_frame_that_is_too_large_is_named_and_the_page_goes_on(settings, thread, session):
    settings.FRAME_BYTES = 1000
    async with Socket(thread.pk, session) as socket:
        key = str(uuid4())
        await socket.say("send", text="é" * 900, key=key)
        refusal = await socket.hear("error")
        assert (refusal["limit"], refusal["key"]) == ("bytes per frame", key)
        assert refusal["used"] > refusal["allowed"] == 1000
        await socket.say("ping")
        await socket.hear("pong")
    assert not await Turn.objects.aexists()
