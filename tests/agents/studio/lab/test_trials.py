"""What can be tried out in a pane beside talking: parts that do wrong, and a full conversation."""

import pytest

from agents.lab.models import Entry

from .test_views import pane, text, url

pytestmark = pytest.mark.usefixtures("operator")
__all__ = ["pane", "url"]


def steps():
    return [entry.step for entry in Entry.objects.order_by("pk")]


def test_parts_of_a_pane_are_switched(client, url):
    assert "Try what goes wrong" in text(client.get(url()))
    assert client.post(url("switch"), {"pane": "B", "actor": "slow", "observer": "fails"})
    assert steps() == [{"switch": {"pane": "B", "actor": "slow", "observer": "fails"}}]


def test_a_pane_is_filled(client, url):
    assert client.post(url("fill"), {"pane": "A", "messages": "30"}).status_code == 302
    assert steps() == [{"fill": {"pane": "A", "messages": 30}}]


@pytest.mark.parametrize(
    ("path", "form", "said"),
    [
        ("fill", {"messages": "many"}, "1 to 500"),
        ("fill", {"messages": ""}, "1 to 500"),
        ("switch", {}, "Choose what"),
        ("switch", {"actor": "empty"}, "Choose what"),
    ],
)
def test_what_cannot_be_tried_says_what_to_write(client, url, path, form, said):
    answer = client.post(url(path), {"pane": "A", **form}, headers={"HX-Request": "true"})
    assert answer.status_code == 422
    assert said in text(answer)
    assert steps() == []


def test_agents_of_labs_are_offered_nowhere_else(client, ben, resource, profile, url):
    resource.members.add(ben)
    page = text(client.get("/chat/?resource=ada"))
    assert 'value="tester"' in page
    assert 'value="lab"' not in page
