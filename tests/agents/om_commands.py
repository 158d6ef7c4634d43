"""Run `om` and read what it says."""

import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db.models.functions import Now
from uuid_utils.compat import uuid7

from agents.models import Turn


def om(*args):
    """Run the command and return what it wrote."""
    out = io.StringIO()
    call_command("om", *map(str, args), stdout=out)
    return out.getvalue()


def refused(*args):
    """Run the command and return the sentence it is refused with."""
    with pytest.raises(CommandError) as error:
        om(*args)
    return str(error.value)


def running_turn(thread, **fields):
    return Turn.objects.create(
        thread=thread, number=fields.pop("number", 1), status="running", lease_token=uuid7(),
        lease_expires_at=Now() + timedelta(minutes=1), first_position=1, **fields,
    )  # fmt: skip
