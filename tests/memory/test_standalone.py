import os
import subprocess
import sys
from pathlib import Path

import pytest

from memory import setup
from memory.standalone import AGENT, SetUpAlready, defaults

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))


def run(*command, cwd):
    """Run a program as a newcomer does: nothing of Django in its environment."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("DJANGO", "OM_"))}
    environment["PYTHONPATH"] = str(ROOT)
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_an_example_runs_in_a_fresh_process_with_a_fresh_database(example, tmp_path):
    database = tmp_path / "fresh.sqlite3"
    done = run(str(example), str(database), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Remembered:\n* " in done.stdout
    assert "never" not in done.stderr
    assert database.exists()


PROGRAM = """
from pydantic_ai import Agent
from memory import ObservationalMemory, setup
from memory.llm import resolve
{setup}
agent = Agent(resolve("offline"), capabilities=[ObservationalMemory("support-42")])
print(agent.run_sync("My cat is called Minka.").output)
{after}
"""


def test_a_second_process_goes_on_where_the_first_was(tmp_path):
    program = PROGRAM.format(setup="setup()", after="")
    assert run("-c", program, cwd=tmp_path).returncode == 0
    count = "from memory.models import Message; print('messages', Message.objects.count())"
    done = run("-c", PROGRAM.format(setup="setup()", after=count), cwd=tmp_path)
    assert done.stdout.endswith("messages 4\n"), done.stderr
    assert (tmp_path / "memory.sqlite3").exists()


def test_setup_may_be_called_twice_with_the_same_words_and_with_no_others(tmp_path):
    twice = "setup('sqlite:///a.sqlite3'); setup('sqlite:///a.sqlite3')"
    done = run("-c", PROGRAM.format(setup=twice, after=""), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    other = "setup('sqlite:///a.sqlite3'); setup('sqlite:///b.sqlite3')"
    done = run("-c", PROGRAM.format(setup=other, after=""), cwd=tmp_path)
    assert "SetUpAlready: Django is configured already" in done.stderr


def test_setup_names_a_wrong_option(tmp_path):
    wrong = "setup(options={'message_token': 5})"
    done = run("-c", PROGRAM.format(setup=wrong, after=""), cwd=tmp_path)
    assert "ValueError: message_token = 5: there is no such option" in done.stderr


def test_setup_within_a_loop_says_what_to_do(tmp_path):
    late = "import asyncio\nasync def main(): setup()\nasyncio.run(main())"
    done = run("-c", PROGRAM.format(setup=late, after=""), cwd=tmp_path)
    assert "RuntimeError: setup must be called before the event loop starts" in done.stderr


def test_a_django_project_is_told_to_use_its_own_settings():
    with pytest.raises(SetUpAlready, match="INSTALLED_APPS"):
        setup()


def test_the_settings_have_every_one_that_memory_reads(settings):
    given = defaults("openai:small", media_root="files")
    assert given["MEMORY_MODELS"] == {"observer": "openai:small", "reflector": "openai:small"}
    assert given["ACTOR_MODEL"] == AGENT
    for name in given:
        assert hasattr(settings, name), name
