"""The cast: Ada owns a resource, Ben another, the team is both's, Cleo is a stranger."""

import os
from tempfile import TemporaryDirectory

import pytest
from asgiref.sync import SyncToAsync
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.contenttypes.management import create_contenttypes
from django.db import connections
from django.db.models.signals import post_migrate

from agents.aside import DOORS, PAGES
from agents.models import AgentProfile
from agents.services.thread import start
from memory import settled
from memory.models import Resource
from memory.services import kept
from tests import conformance
from tests.fakes import Models


def pytest_configure(config):
    """Hash passwords fast: the cast is made anew for every test. Keep files out of the way.

    And see to it that the tests named by docs/conformance.md run.
    """
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    # Every test has a client of its own, which is not to list all static files first.
    settings.WHITENOISE_AUTOREFRESH = True
    config.media = TemporaryDirectory(prefix="omsite-media-")
    settings.MEDIA_ROOT = config.media.name
    conformance.listen(config)


def pytest_unconfigure(config):
    """Remove the files that tests stored."""
    config.media.cleanup()


SERVER_ONLY = "TESTS_OF_SERVERS"


def pytest_collection_modifyitems(config, items):
    """On the servers, leave out what touches neither database nor Redis: it just ran."""
    if os.environ.get(SERVER_ONLY):
        pure = [item for item in items if not _touches_the_database(item)]
        config.hook.pytest_deselected(items=pure)
        items[:] = [item for item in items if _touches_the_database(item)]


def _touches_the_database(item):
    fixtures = set(getattr(item, "fixturenames", ()))
    asked = {"db", "transactional_db", "live_server"} & fixtures
    return bool(asked or item.get_closest_marker("django_db") or item.get_closest_marker("slow"))


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix, tmp_path_factory):
    """Keep SQLite in a file, as outside of tests, so that writers wait for each other.

    In memory they share a cache, where a lock is refused at once instead of waited for. Neither
    database waits for the disk: nobody pulls the plug on a test, and it is most of what one costs.
    """
    default = connections["default"]
    if default.vendor == "sqlite":
        folder = tmp_path_factory.mktemp("database")
        default.settings_dict["TEST"]["NAME"] = str(folder / "test.sqlite3")
        eager = "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
        default.settings_dict["OPTIONS"]["init_command"] = eager
    else:
        default.settings_dict["OPTIONS"]["options"] = "-c synchronous_commit=off"
        default.ops.sql_flush = _emptied


def _emptied(style, tables, *, reset_sequences=False, allow_cascade=False):
    """Return statements that empty tables: to truncate means a new file for each of them."""
    return [f'DELETE FROM "{table}"' for table in tables]


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup):
    """Close the connections of the threads that async tests reach the database through.

    And leave out what every flush would write anew: permissions, which the roles of the Studio
    have no use for, and content types, which the admin's log makes where it needs one.
    """
    post_migrate.disconnect(dispatch_uid="django.contrib.auth.management.create_permissions")
    post_migrate.disconnect(create_contenttypes)
    yield
    for executor in (SyncToAsync.single_thread_executor, PAGES, DOORS):
        executor.submit(connections.close_all).result()


@pytest.fixture(autouse=True)
def _new_process():
    """Let every test begin as a process that has seen nothing yet."""
    kept.forget_everything()


@pytest.fixture
async def settles():
    """End a test once nothing works in its loop's background any more."""
    yield
    await settled()


SMALL = {"message_tokens": 600, "observation_tokens": 200}


@pytest.fixture
def ada(db):
    return get_user_model().objects.create_user("ada", password="ada")


@pytest.fixture
def ben(db):
    return get_user_model().objects.create_user("ben", password="ben")


@pytest.fixture
def cleo(db):
    return get_user_model().objects.create_user("cleo", password="cleo")


@pytest.fixture
def resource(ada):
    resource = Resource.objects.create(key="ada", name="Ada", time_zone="Europe/Berlin")
    resource.members.add(ada)
    return resource


@pytest.fixture
def profile(db):
    return AgentProfile.objects.create(
        slug="tester",
        name="Tester",
        instructions="Be brief.",
        model="fake",
        memory_options=SMALL,
        tools=["current_time", "recall"],
    )


@pytest.fixture
def thread(resource, profile):
    return start(resource, profile)


@pytest.fixture
def models():
    return Models()
