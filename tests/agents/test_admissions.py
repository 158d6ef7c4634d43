"""People who may no longer see a page they have open, found without a check of each."""

from time import monotonic

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session
from django.utils import timezone

from agents.admissions import Admissions, Seat, standings
from memory.models import Resource, Thread
from memory.services.look import look
from memory.services.scope import change_scope

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def seat(client, ada, thread):
    client.force_login(ada)
    return Seat(client.session.session_key, ada.pk, thread.pk)


CHANGES = {
    "signed out": lambda w: w.client.logout(),
    "the session lapsed": lambda w: Session.objects.update(expire_date=timezone.now()),
    "another password": lambda w: (w.ada.set_password("another"), w.ada.save()),
    "no longer active": lambda w: type(w.ada).objects.update(is_active=False),
    "made an operator": lambda w: w.ada.groups.add(
        Group.objects.get_or_create(name="operators")[0]
    ),
    "no longer a member": lambda w: w.resource.members.remove(w.ada),
    "deleted": lambda w: Thread.objects.filter(pk=w.thread.pk).update(deleted_at=timezone.now()),
    "erased": lambda w: w.thread.delete(),
    "its first memory": lambda w: look(w.thread.pk),
    "shared memory": lambda w: (change_scope(w.resource.pk, "resource"), look(w.thread.pk)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_decides_who_may_see_a_page_changes_its_standing(
    name, seat, client, ada, thread, resource
):
    world = type("World", (), {"client": client, "ada": ada, "thread": thread})
    world.resource = resource
    before = standings([seat])[seat]
    assert standings([seat])[seat] == before

    CHANGES[name](world)

    assert standings([seat])[seat] != before


def test_many_pages_take_as_many_statements_as_one(seat, django_assert_num_queries):
    others = [Seat(seat.session, seat.user, seat.thread) for _ in range(20)]
    with django_assert_num_queries(7):
        assert len(standings([seat, *others])) == 1


def test_where_sessions_are_no_rows_nobody_is_taken_for_who_they_were(seat, settings):
    settings.SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
    assert standings([seat]) == {}


class Guest:
    """Count the checks in full."""

    def __init__(self, seat, welcome=True):
        self.seat, self.welcome = seat, welcome
        self.checked_at, self.standing, self.checks = float("-inf"), None, 0

    async def still_welcome(self):
        self.checks += 1
        self.checked_at = monotonic()
        return self.welcome


async def test_one_check_in_full_is_enough_until_something_moves(seat, ada, resource):
    looks, guest = Admissions(), Guest(seat)
    looks.enter(guest)
    for _ in range(3):
        before = monotonic()
        await looks.look()
    assert (guest.checks, guest.checked_at > before) == (1, True)

    await sync_to_async(Resource.objects.create)(key="other")
    await looks.look()
    assert guest.checks == 1

    await sync_to_async(resource.members.remove)(ada)
    guest.welcome = False
    await looks.look()
    assert (guest.checks, guest.standing) == (2, guest.standing)
    looks.leave(guest)


async def test_who_is_turned_away_is_not_known_by_what_turned_them_away(seat):
    looks, guest = Admissions(), Guest(seat, welcome=False)
    looks.enter(guest)
    await looks.look()
    await looks.look()
    assert (guest.checks, guest.standing) == (2, None)
    looks.leave(guest)


async def test_who_left_meanwhile_is_not_checked(seat):
    looks, first, second = Admissions(), Guest(seat), Guest(seat)

    async def leaves():
        looks.leave(second)
        looks.leave(first)
        return True

    first.still_welcome = second.still_welcome = leaves
    looks.enter(first)
    looks.enter(second)
    await looks.look()
    assert [first.standing, second.standing].count(None) == 1
