from uuid import uuid4

import pytest

from agents.models import Turn, TurnLost
from agents.services.begin import begin
from agents.services.release import release
from agents.services.send import send
from agents.services.turn import close
from memory.models import Message
from memory.services.change import Refused

pytestmark = pytest.mark.django_db


def test_a_released_turn_is_interrupted_with_what_it_had_said(thread):
    send(thread.pk, "Hello")
    running = begin(thread.pk)
    running.turn.renew(draft_text="Bees live")

    release(running.turn.pk)

    turn = Turn.objects.get()
    assert turn.status == "interrupted"
    assert Message.objects.filter(thread=thread).last().text == "Bees live"
    with pytest.raises(TurnLost):
        close(running, Turn.Status.DONE)


def test_what_does_not_run_is_not_released(thread):
    turn = send(thread.pk, "Hello")

    for turn_id in (turn.pk, uuid4()):
        with pytest.raises(Refused, match="no lease to release"):
            release(turn_id)
