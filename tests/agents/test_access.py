import pytest
from django.contrib.auth.models import Group, User

from agents.access import Right, Role, may, resources_for, role_of, threads_for
from memory.models import Resource, Thread

pytestmark = pytest.mark.django_db


@pytest.fixture
def world():
    mine = Resource.objects.create(key="mine", name="Mine")
    theirs = Resource.objects.create(key="theirs", name="Theirs")
    for resource in (mine, theirs):
        Thread.objects.create(resource=resource, agent="guide")
    return mine, theirs


def person(*groups, member_of=(), **fields):
    user = User.objects.create_user("ada", **fields)
    user.groups.set([Group.objects.get_or_create(name=name)[0] for name in groups])
    for resource in member_of:
        resource.members.add(user)
    return user


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        ((), Role.USER),
        (("viewers",), Role.VIEWER),
        (("operators",), Role.OPERATOR),
        (("viewers", "admins"), Role.ADMIN),
        (("gardeners",), Role.USER),
    ],
)
def test_groups_give_roles(groups, role):
    assert role_of(person(*groups)) == role


def test_a_superuser_is_an_admin():
    assert role_of(person(is_superuser=True)) == Role.ADMIN


def test_a_role_is_read_once(django_assert_num_queries):
    user = person("operators")
    with django_assert_num_queries(1):
        assert role_of(user) == role_of(user)


@pytest.mark.parametrize(
    ("group", "in_mine", "in_theirs"),
    [
        ("viewers", {Right.READ}, set()),
        ("nobody", {Right.READ, Right.CHAT, Right.EDIT, Right.OPERATE, Right.CONFIGURE}, set()),
        (
            "operators",
            set(Right) - {Right.ERASE, Right.ADMIN},
            {Right.READ, Right.OPERATE, Right.LAB},
        ),
        ("admins", set(Right), set(Right)),
    ],
)
def test_rights_end_at_other_peoples_resources(world, group, in_mine, in_theirs):
    mine, theirs = world
    user = person(group, member_of=[mine])
    assert {right for right in Right if may(user, right, mine)} == in_mine
    assert {right for right in Right if may(user, right, theirs)} == in_theirs


def test_only_operators_see_what_is_not_theirs(world):
    mine, _ = world
    user = person(member_of=[mine])
    assert (resources_for(user).count(), threads_for(user).count()) == (1, 1)
    user.groups.add(Group.objects.create(name="operators"))
    user = User.objects.get()
    assert (resources_for(user).count(), threads_for(user).count()) == (2, 2)
