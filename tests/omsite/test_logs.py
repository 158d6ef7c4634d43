import asyncio
import json
import logging
import subprocess
import sys
from uuid import uuid4

import pytest

from memory import telemetry
from omsite.logs import About, Json, WithoutSecrets, logging_config


@pytest.fixture
def log():
    """Return a logger of its own, and the records that came through the filters."""
    logger, kept = logging.Logger("memory.services.test"), []
    handler = logging.Handler()
    handler.emit = kept.append
    handler.addFilter(About())
    handler.addFilter(WithoutSecrets(["correct horse"]))
    logger.addHandler(handler)
    return logger, kept


def test_a_record_carries_the_ids_of_the_turn_it_is_about(log):
    logger, kept = log
    turn, thread = uuid4(), uuid4()
    with telemetry.working("turn", [turn], thread=thread):
        logger.info("working")
    (record,) = kept
    assert (record.turn, record.thread, record.cycle) == (str(turn), str(thread), "")
    assert record.about == f" turn={turn} thread={thread}"


def test_a_cycle_that_a_turn_waits_for_has_the_ids_of_both(log):
    logger, kept = log
    turn, cycle, thread = uuid4(), uuid4(), uuid4()
    with (
        telemetry.working("turn", [turn], thread=thread),
        telemetry.working("cycle", [cycle], thread=thread, name="observe"),
    ):
        logger.info("working")
    assert (kept[0].turn, kept[0].cycle) == (str(turn), str(cycle))


async def test_turns_that_run_at_once_do_not_mix_their_ids(log):
    logger, kept = log

    async def run(turn):
        with telemetry.working("turn", [turn], thread=None):
            await asyncio.sleep(0)
            logger.info(str(turn))
            await asyncio.to_thread(logger.info, str(turn))

    await asyncio.gather(*(run(uuid4()) for _ in range(5)))
    assert len(kept) == 10
    assert all(record.turn == record.msg for record in kept)


def test_after_its_work_a_record_is_about_nothing(log):
    logger, kept = log
    with telemetry.working("turn", [uuid4()], thread=None):
        pass
    logger.info("resting")
    assert (kept[0].turn, kept[0].about) == ("", "")


def test_secrets_are_in_no_part_of_a_record(log):
    logger, kept = log
    try:
        raise ValueError("the provider refused sk-abcdefghijklmnop1234")
    except ValueError:
        logger.exception("Authorization: %s", "Bearer correct horse", stack_info=True)
    written = Json().format(kept[0]) + logging.Formatter().format(kept[0])
    assert "refused" in written
    assert "correct horse" not in written
    assert "sk-abc" not in written


def test_a_message_whose_arguments_do_not_fit_is_written_all_the_same(log):
    logger, kept = log
    logger.info("%s and %s", "one")
    assert kept[0].getMessage() == "%s and %s ('one',)"


def test_json_is_one_line_with_what_is_known(log):
    logger, kept = log
    turn = uuid4()
    with telemetry.working("turn", [turn], thread=None):
        logger.warning("two\nlines")
    line = Json().format(kept[0])
    found = json.loads(line)
    assert "\n" not in line
    assert (found["level"], found["message"], found["turn"]) == ("WARNING", "two\nlines", str(turn))
    assert found["time"].endswith("Z")
    assert "cycle" not in found


def test_what_a_caller_attaches_is_not_written(log):
    logger, kept = log
    logger.warning("refused", extra={"request": "sessionid=abc"})
    assert "request" not in json.loads(Json().format(kept[0]))


@pytest.mark.parametrize("form", ["text", "json"])
def test_everything_is_written_through_the_filters(form):
    """Configure a process as Django does, and let loggers of others write too."""
    script = (
        "import logging, logging.config; from omsite.logs import logging_config;"
        f"logging.config.dictConfig(logging_config({form!r}, ['correct horse']));"
        "[logging.getLogger(n).error('it is correct horse')"
        " for n in ('memory.ask', 'django.request', 'celery.worker', 'daphne')]"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    lines = done.stderr.splitlines()
    assert len(lines) == 4
    assert "correct horse" not in done.stderr
    if form == "json":
        assert all(json.loads(line)["message"] == "it is [hidden]" for line in lines)


def test_the_configuration_names_its_secrets_as_such():
    """A page of errors hides what is named so."""
    found = logging_config("text", ["x"])["filters"]["without_secrets"]
    assert set(found) == {"()", "secrets"}
