import stat

import pytest
from pydantic import ValidationError

from omsite.config import Config, _kept_secret


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    """Take everything out of the environment that the settings read."""
    for name in Config.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


def config(**values):
    return Config(_env_file=None, **values)


def test_an_empty_environment_is_the_embedded_mode():
    found = config()
    assert found.embedded
    assert found.database_url.startswith("sqlite:///")
    assert (found.om_model, found.om_dispatcher) == ("offline", "embedded")


def test_redis_ends_the_embedded_mode():
    assert not config(redis_url="redis://127.0.0.1:6379/0").embedded


@pytest.mark.parametrize(
    "address", ["mysql://me@there/db", "sqlite:file", "postgres", "sqlite:///", "postgresql://"]
)
def test_an_address_of_no_database_of_ours_is_refused_with_the_rule(address):
    with pytest.raises(ValidationError) as refused:
        config(database_url=address)
    assert "database_url" in str(refused.value)
    assert "sqlite:///FILE or postgresql://USER@HOST/NAME" in str(refused.value)


def test_a_refused_address_does_not_tell_its_password():
    with pytest.raises(ValidationError) as refused:
        config(database_url="mysql://me:hunter2@there/db")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize(
    "address", ["sqlite:///memory.db", "postgresql://me@there/db", "postgres://me:pw@there:1/db"]
)
def test_an_address_of_a_database_of_ours_is_taken(address):
    assert config(database_url=address).database_url == address


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("om_lease_seconds", 0),
        ("om_lease_seconds", -1),
        ("om_offline_delay", -1),
        ("om_offline_delay", "slow"),
        ("om_dispatcher", "cron"),
        ("om_keep_requests_days", -1),
        ("om_keep_calls_days", "a while"),
        ("om_keep_conversations_days", 40_000),
        ("debug", "perhaps"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(name, value):
    with pytest.raises(ValidationError, match=name):
        config(**{name: value})


def test_an_empty_setting_counts_as_none(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "")
    monkeypatch.setenv("OM_LEASE_SECONDS", "")
    assert config().om_lease_seconds == 20


def test_a_setting_comes_from_the_environment(monkeypatch):
    monkeypatch.setenv("OM_MODEL", "openai:gpt-5-mini")
    assert config().om_model == "openai:gpt-5-mini"


def test_every_setting_says_what_it_is_for():
    for name, field in Config.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_the_secret_that_is_given_is_the_secret():
    assert config(secret_key="mine").secret() == "mine"


def test_several_processes_must_be_given_one_secret():
    with pytest.raises(ValueError, match="SECRET_KEY"):
        config(redis_url="redis://127.0.0.1:6379/0").secret()


def test_a_secret_is_made_once_and_kept(tmp_path):
    path = tmp_path / "secret"
    first = _kept_secret(path)
    assert len(first) >= 50
    assert _kept_secret(path) == first
    assert path.read_text().strip() == first


def test_nobody_else_may_read_the_secret(tmp_path):
    path = tmp_path / "secret"
    _kept_secret(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_two_places_have_two_secrets(tmp_path):
    assert _kept_secret(tmp_path / "one") != _kept_secret(tmp_path / "two")


def test_a_secret_file_that_was_never_filled_is_filled(tmp_path):
    path = tmp_path / "secret"
    path.touch()
    assert len(_kept_secret(path)) >= 50
    assert _kept_secret(path) == path.read_text()
