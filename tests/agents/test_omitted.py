import pytest
from django.utils import timezone

from agents.models import RequestSnapshot, Turn
from agents.omitted import omitted_in
from agents.page import Scene

pytestmark = pytest.mark.django_db


def test_a_note_leads_to_the_request_it_is_about(thread):
    turn = Turn.objects.create(
        thread=thread, number=3, status="done", prompt="Oak", first_position=5, last_position=6
    )
    dropped = {"kind": "left_out", "source": "conversation", "tokens": 40, "first": 1, "last": 2}
    RequestSnapshot.objects.create(turn=turn, step=1, revision=0, blocks=[dropped], total=1)

    (note,) = omitted_in(Scene(thread.pk, timezone.now()))

    assert note.words.startswith("Left out of this request: messages 1–2, 40 tokens.")
    assert note.link == f"/context/{thread.pk}/requests/3/"
