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
    "om_metrics": False,
    "om_metrics_token": "",
    "om_metrics_port": 0,
    "om_traces": False,
    "om_traces_content": False,
    "otel_exporter_otlp_endpoint": "",
    "otel_exporter_otlp_traces_endpoint": "",
    "om_keep_audit_days": 730,
    "om_keep_temporary_days": 30,
    "om_keep_conversations_days": 0,
}
TOKEN = {"om_metrics_token": "a token of some length"}
COLLECTOR = {"otel_exporter_otlp_endpoint": "http://127.0.0.1:4318"}


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
        (TOKEN, ["omsite.W007"]),
        ({"om_metrics_port": 9100}, ["omsite.W007"]),
        ({"om_metrics": True}, []),
        (TOKEN | {"om_metrics": True, "om_metrics_port": 9100}, []),
        (REDIS | POSTGRES | {"om_metrics": True}, ["omsite.W008"]),
        ({"om_metrics": True, "om_metrics_token": "short"}, ["omsite.E009"]),
        (COLLECTOR | {"om_traces_content": True}, ["omsite.W010"]),
        ({"om_traces": True}, ["omsite.W011"]),
        (COLLECTOR | {"om_traces": True, "om_traces_content": True}, []),
        ({"om_traces": True, "otel_exporter_otlp_traces_endpoint": "http://a/v1/traces"}, []),
        ({"om_keep_conversations_days": 30}, ["omsite.W020"]),
        ({"om_keep_conversations_days": 365, "om_keep_temporary_days": 0}, ["omsite.W020"]),
        ({"om_keep_conversations_days": 365}, []),
        ({"om_keep_audit_days": 7}, ["omsite.W021"]),
        ({"om_keep_audit_days": 0}, []),
    ],
)
def test_what_does_not_go_together_is_named(values, found):
    assert ids(**values) == found


def test_every_problem_says_what_to_do():
    wrong = Config(_env_file=None, **PLAIN | REDIS | {"debug": True, "allowed_hosts": "*"})
    assert all(found.hint for found in problems(wrong))
