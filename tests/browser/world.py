"""Make a small world for the browser; run as a program, with the environment of the server."""

import os


def make():
    """Create Ada with one click, her resource and an agent that remembers soon."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    from agents.models import AgentProfile
    from memory.models import Resource

    call_command("migrate", verbosity=0)
    ada = get_user_model().objects.create_user("ada", first_name="Ada")
    resource = Resource.objects.create(key="ada", name="Ada", time_zone="Europe/Berlin")
    resource.members.add(ada)
    return resource, AgentProfile.objects.create(
        slug="demo",
        name="Quick demo",
        instructions="Be brief.",
        model="offline",
        memory_options={"message_tokens": 300, "observation_tokens": 300},
    )


def picture():
    """Return a small picture: red, 40 by 30."""
    import struct
    import zlib

    def chunk(name, data):
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    header = struct.pack(">IIBBBBB", 40, 30, 8, 2, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\x00" + b"\xc0\x30\x30" * 40 for _ in range(30)))
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def say_with_files(resource, profile):
    """Begin a conversation whose first message carries a picture and a text."""
    from django.utils import timezone
    from pydantic_ai.messages import BinaryContent

    from agents.services.thread import start
    from memory.messages import user_prompt
    from memory.services.append import append

    thread = start(resource, profile)
    thread.title = "Oak samples"
    thread.save()
    files = [
        BinaryContent(picture(), media_type="image/png", identifier="oak.png"),
        BinaryContent(b"Oak, 40 mm", media_type="text/plain", identifier="offer.md"),
    ]
    now = timezone.now()
    prompt = user_prompt("Which oak is this?", now, attachments=files, gap="3 hours later")
    append(thread.pk, [prompt], at=now)


def share(profile):
    """Give Ada a team whose conversations share one memory, with two of them begun."""
    from django.contrib.auth import get_user_model
    from django.utils import timezone
    from pydantic_ai.messages import ModelResponse, TextPart

    from agents.services.thread import start
    from memory.messages import user_prompt
    from memory.models import Resource
    from memory.services.append import append

    team = Resource.objects.create(
        key="team", name="The team", time_zone="Europe/Berlin", scope="resource"
    )
    team.members.add(get_user_model().objects.get(username="ada"))
    for title, prompt, answer in (
        ("The garden", "Mara wants a fig tree by the south wall.", "Figs like warm walls."),
        ("The workshop", "Tom needs the bench saw back by June 3.", "I will remember June 3."),
    ):
        thread = start(team, profile, title=title)
        now = timezone.now()
        said = ModelResponse(parts=[TextPart(answer)], timestamp=now)
        append(thread.pk, [user_prompt(prompt, now), said], at=now)


def change(profile):
    """Give Ada a conversation whose memory people changed in every way."""
    from django.contrib.auth import get_user_model
    from django.utils import timezone
    from pydantic_ai.messages import ModelResponse, TextPart

    from agents.models import RequestSnapshot, Turn
    from agents.services.erase import erase_messages
    from agents.services.fork import fork
    from agents.services.thread import start
    from memory.messages import user_prompt
    from memory.models import Resource
    from memory.services.append import append
    from memory.services.configure import configure
    from memory.services.edit import edit
    from memory.services.forget import forget
    from memory.services.look import look
    from memory.services.note import note
    from memory.services.pin import pin

    ada = get_user_model().objects.get(username="ada")
    shop = Resource.objects.create(key="shop", name="The shop", time_zone="Europe/Berlin")
    shop.members.add(ada)
    thread = start(shop, profile, title="Prices")
    now = timezone.now()
    for said in ("The alarm code is 4711.", "Oak costs 90 euros.", "Beech costs 60 euros."):
        answer = ModelResponse(parts=[TextPart("Noted.")], timestamp=now)
        append(thread.pk, [user_prompt(said, now), answer], at=now)
    record = look(thread.pk).record
    line = note(record.pk, "Oak costs 80 euros", author=ada)
    line = edit(line.pk, "Oak costs 90 euros", author=ada, reason="The price rose in May.")
    (line,) = pin(line.pk, author=ada)
    forget(note(record.pk, "Birch is sold out").pk, author=ada, reason="It is back.")
    configure(thread.pk, {"observation_tokens": 400}, author=ada)
    fork(thread.pk, 4, title="Prices next year", author=ada, reason="What if oak gets dearer?")
    erase_messages(thread.pk, 1, 1, author=ada, reason="Nobody should read the code.")
    turn = Turn.objects.create(
        thread=thread, number=1, status="done", prompt="Oak", first_position=3, last_position=4
    )
    dropped = {"kind": "left_out", "source": "conversation", "tokens": 40, "first": 1, "last": 2}
    RequestSnapshot.objects.create(turn=turn, step=1, revision=0, blocks=[dropped], total=1)


def stumble(profile):
    """Let an answer and an observation fail in the shop, where Ben may look and do nothing."""
    from django.contrib.auth import get_user_model
    from django.contrib.auth.models import Group
    from django.db.models.functions import Now
    from django.utils import timezone

    from agents.models import Turn
    from agents.services.thread import start
    from memory.messages import user_prompt
    from memory.models import Cycle, Resource
    from memory.services.append import append
    from memory.services.look import look

    ben = get_user_model().objects.create_user("ben", first_name="Ben")
    ben.groups.add(Group.objects.create(name="viewers"))
    shop = Resource.objects.get(key="shop")
    shop.members.add(ben)
    thread = start(shop, profile, title="Stumbled")
    now = timezone.now()
    append(thread.pk, [user_prompt("Is anybody there?", now)], at=now)
    Turn.objects.create(
        thread=thread,
        number=1,
        status="failed",
        prompt="Is anybody there?",
        error="The model did not answer in time.",
        first_position=1,
        last_position=1,
        finished_at=now,
    )
    Cycle.objects.create(
        record=look(thread.pk).record,
        lane="observer",
        kind="observe",
        thread=thread,
        status="failed",
        epoch=0,
        first_position=1,
        last_position=1,
        message_tokens=8,
        error="The model did not answer in time.",
        lease_expires_at=now,
        finished_at=Now(),
    )


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    import django

    django.setup()
    resource, profile = make()
    say_with_files(resource, profile)
    share(profile)
    change(profile)
    stumble(profile)
