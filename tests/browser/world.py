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


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "omsite.settings")
    import django

    django.setup()
    make()
