import pytest
from django.test import Client

from tests.hostile.judge import Page
from tests.hostile.strings import STRINGS
from tests.hostile.world import admin, faults, plant

BATCH = 20


@pytest.mark.parametrize(
    "html",
    [
        "<p><script>window.pwned=1</script>",
        "<img src=x onerror=window.pwned=1>",
        "<a href=' java\nscript:window.pwned=1'>x</a>",
        "<iframe></iframe>",
        "<base href=//elsewhere.example>",
        "<style>*{}</style>",
        "<meta http-equiv=refresh content=0>",
        "<b hx-on:click=x>",
        "<form action=//elsewhere.example>",
    ],
)
def test_what_would_run_is_found(html):
    assert Page(html).problems


@pytest.mark.parametrize(
    "html",
    [
        "<p>&lt;script&gt;</p><a href='/chat/'>x</a><a href='#log'>y</a>",
        "<script src='/static/studio.js'></script><script type='application/json'>{}</script>",
        "<noscript><meta http-equiv=refresh content=3></noscript><form action='?'></form>",
    ],
)
def test_what_pages_are_made_of_is_fine(html):
    assert Page(html).problems == []


def test_there_are_sixty_strings():
    assert len(set(STRINGS)) == 60


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("first", range(0, len(STRINGS), BATCH))
def test_a_hostile_text_is_shown_as_text_on_every_page(first):
    owner = admin()
    client = Client()
    client.force_login(owner)
    strings = STRINGS[first : first + BATCH]
    found, pages = faults(client, plant(strings, owner), strings)
    assert not found, "\n".join(found)
    assert pages > 30
