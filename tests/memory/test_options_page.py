"""The page of options says what the code does."""

import json
import re
from pathlib import Path

import pytest

from memory.config import ContinuationHints, MemoryOptions, merged
from memory.engine.idle import cache_lifetime, read_idle
from memory.extraction import resolve
from omsite.config import Config

PAGE = (Path(__file__).parents[2] / "docs" / "options.md").read_text()
ROWS = dict(re.findall(r"^\| `([a-z_]+)` \| `(.*?)` \|", PAGE, re.M))
VARIABLES = dict(re.findall(r"^\| `(OM_[A-Z_]+)` \| (?:`(.*?)` )?\|", PAGE, re.M))


def default_of(field):
    value = field.get_default(call_default_factory=True)
    if isinstance(value, ContinuationHints):
        value = bool(value)
    return json.dumps(False if value is None else value)


def test_every_option_has_its_row_in_the_order_of_the_code():
    assert list(ROWS) == list(MemoryOptions.model_fields)


@pytest.mark.parametrize("name", MemoryOptions.model_fields)
def test_the_default_of_an_option_is_the_one_in_its_row(name):
    assert ROWS[name] == default_of(MemoryOptions.model_fields[name])


def test_a_default_written_out_is_accepted_and_changes_nothing():
    written = {name: json.loads(default) for name, default in ROWS.items()}
    assert merged({}, written) == MemoryOptions()


@pytest.mark.parametrize("variable", VARIABLES)
def test_the_default_of_a_variable_is_the_one_in_its_row(variable):
    assert VARIABLES[variable] == Config.model_fields[variable.lower()].default


def test_the_examples_of_the_page_work():
    assert read_idle({"default": "10m", "anthropic": "auto", "openai": False})["default"] == 600
    for example in re.findall(r"^    (\{\"extract\".*\})$", PAGE, re.M):
        assert resolve(json.loads(example)["extract"])
    (tiers,) = re.findall(r"^    (\{\"up_to\".*\})$", PAGE, re.M)
    merged({}, {"observer_model": json.loads(tiers)})
    for pause in re.findall(r"`\"(\d[\w. ]+)\"`", PAGE.split("## Pauses")[1].split("|")[0]):
        assert read_idle(pause) > 0


@pytest.mark.parametrize(
    ("row", "model"), [("Google", "google:x"), ("DeepSeek", "deepseek:x"), ("Groq", "groq:x")]
)
def test_the_pauses_of_providers_are_those_of_the_table(row, model):
    (hours,) = re.findall(rf"^\| {row} \| (\d+) h \|", PAGE, re.M)
    assert cache_lifetime(model, {}) == int(hours) * 3600
