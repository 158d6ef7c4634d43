import pytest

from omsite.checks import problems
from omsite.config import Config

REDIS = {"redis_url": "redis://127.0.0.1:6379/0"}
POSTGRES = {"database_url": "postgresql://me@there/db"}
PLAIN = {
    "database_url": "sqlite:///memory.db",
    "redis_url": "",
    "om_dispatcher": "embedded",
    "debug": False,
    "allowed_hosts": "om.example.org",
    "om_behind_proxy": False,
}


def ids(**values):
    return [found.id for found in problems(Config(_env_file=None, **{**PLAIN, **values}))]


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, []),
        (REDIS, ["omsite.E001"]),
        (REDIS | POSTGRES, []),
        ({"om_dispatcher": "celery"}, ["omsite.E002"]),
        (REDIS | POSTGRES | {"om_dispatcher": "celery"}, []),
        (REDIS | POSTGRES | {"debug": True}, ["omsite.E004"]),
        ({"debug": True}, []),
        (REDIS | POSTGRES | {"allowed_hosts": "*"}, ["omsite.W005"]),
        ({"om_behind_proxy": True}, ["omsite.W006"]),
    ],
)
def test_what_does_not_go_together_is_named(values, found):
    assert ids(**values) == found


def test_every_problem_says_what_to_do():
    wrong = Config(_env_file=None, **PLAIN | REDIS | {"debug": True, "allowed_hosts": "*"})
    assert all(found.hint for found in problems(wrong))
