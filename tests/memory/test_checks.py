import pytest

from memory.checks import check_memory
from memory.config import MemoryOptions, in_force


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MEMORY_DEFAULTS", {"parallel_calls": 0}, "MEMORY_DEFAULTS: parallel_calls = 0: must be"),
        ("MEMORY_EXTRACTORS", ["no.such"], "MEMORY_EXTRACTORS = no.such: nothing is there"),
        ("MEMORY_EXTRACTORS", ["memory.tiers.choose"], "is no memory.extraction.Extractor"),
        ("MEMORY_HOOKS", ["no.such"], "MEMORY_HOOKS = no.such: nothing is there"),
        ("MEMORY_HOOK_EXECUTION", "later", "'later': must be background or await"),
    ],
)
def test_a_wrong_setting_is_told_when_the_server_starts(settings, name, value, said):
    setattr(settings, name, value)
    (error,) = check_memory()
    assert said in error.msg


def test_the_settings_as_they_come_are_right():
    assert check_memory() == []


def test_a_setting_that_is_wrong_fails_no_turn(settings):
    settings.MEMORY_EXTRACTORS = ["no.such"]
    assert in_force("tester", {"extract": ["mood"]}, {}) == MemoryOptions()
