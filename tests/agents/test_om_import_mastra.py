import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from memory.models import Thread

pytestmark = pytest.mark.django_db(transaction=True)

FILE = str(Path(__file__).parents[1] / "memory" / "mastra" / "mastra.db")


def om(*arguments):
    out = io.StringIO()
    call_command("om", "import-mastra", *arguments, stdout=out)
    return out.getvalue()


@pytest.fixture(autouse=True)
def media(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path


def test_a_dry_run_says_what_would_be_stored(profile):
    said = om(FILE, "--agent", profile.slug, "--dry-run")
    assert "Would store 3 threads." in said
    assert not Thread.objects.exists()


def test_conversations_come_over(profile):
    found = json.loads(om(FILE, "--agent", profile.slug, "--json"))
    assert found["stored"]
    assert set(Thread.objects.values_list("agent", flat=True)) == {profile.slug}


def test_an_agent_that_is_not_there_is_named_with_those_that_are(profile):
    with pytest.raises(CommandError, match=f"Known: {profile.slug}"):
        om(FILE, "--agent", "nobody")


def test_a_source_that_cannot_be_read_is_refused_in_a_sentence(profile, tmp_path):
    with pytest.raises(CommandError, match="There is no file"):
        om(str(tmp_path / "none.db"), "--agent", profile.slug)
