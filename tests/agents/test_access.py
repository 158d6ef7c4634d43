import pytest
from django.contrib.auth.models import Group, User

from agents.access import Right, Role, may, resources_for, role_of, threads_for
from agents.lab.models import Lab
from memory.models import Cursor, MemoryRecord, Resource, Thread

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


def of_a_lab(user):
    """Return a resource and a thread that a lab made, with the user as one of its people."""
    resource = Resource.objects.create(key="lab-1", name="Kitchen of a lab")
    resource.members.add(user)
    thread = Thread.objects.create(resource=resource, agent="guide", is_lab=True)
    lab = Lab.objects.create(name="Leaks")
    for ordinal in range(2):
        lab.panes.create(ordinal=ordinal, person=user, resource=resource, thread=thread)
    return resource, thread


@pytest.mark.parametrize("group", ["nobody", "operators"])
def test_what_a_lab_made_is_seen_only_when_it_is_asked_for(world, group):
    user = person(group, member_of=world)
    resource, thread = of_a_lab(user)

    assert set(resources_for(user)) == set(world)
    assert set(threads_for(user)) == set(Thread.objects.exclude(pk=thread.pk))
    assert resource in resources_for(user, lab=True)
    assert thread in threads_for(user, lab=True)


def test_a_lab_is_in_no_list_and_in_no_search(world, client):
    user = person("operators")
    resource, thread = of_a_lab(user)
    record = MemoryRecord.objects.create(scope="thread", resource=resource, thread=thread)
    Cursor.objects.create(record=record, thread=thread, buffered_through=9, observed_through=9)
    client.force_login(user)

    pages = ("/", "/chat/?resource=*", "/find/?q=lab", "/scopes/?q=lab", "/settings/")
    lists = ("/api/v1/resources", "/api/v1/threads")
    for path in (*pages, *lists):
        shown = client.get(path, headers={"HX-Request": "true"}).content.decode()
        assert resource.key not in shown, path
        assert str(thread.pk) not in shown, path
    assert client.get(f"/api/v1/resources/{resource.key}").status_code == 404


def test_what_a_lab_made_is_reached_from_the_lab(client):
    user = person("operators")
    resource, thread = of_a_lab(user)
    client.force_login(user)

    reached = (f"/chat/{thread.pk}/", f"/context/{thread.pk}/", f"/memory/of/{resource.key}/")
    assert [client.get(path).status_code for path in reached] == [200, 200, 200]
