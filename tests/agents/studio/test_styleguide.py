import pytest

from agents.studio.styleguide import BADGES, CHIPS, KINDS

pytestmark = pytest.mark.django_db


def test_the_styleguide_shows_every_part(client, ada, settings):
    settings.DEBUG = True
    client.force_login(ada)
    page = client.get("/styleguide/").content.decode()
    for state in (*BADGES, *CHIPS):
        assert f'data-state="{state}"' in page
    for kind in KINDS:
        assert f'data-kind="{kind}"' in page


def test_without_debug_there_is_none(client, ada):
    client.force_login(ada)
    assert client.get("/styleguide/").status_code == 404
