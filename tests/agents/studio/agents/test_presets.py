import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.studio.agents.presets import PRESETS, applied, preset_of
from memory.config import merged

KEYS = [preset.key for preset in PRESETS]


@pytest.mark.parametrize("preset", PRESETS, ids=KEYS)
def test_every_preset_can_be_in_force(preset):
    assert merged(preset.options, {})


@given(st.sampled_from(KEYS), st.sampled_from(KEYS))
def test_one_preset_takes_the_place_of_another_and_leaves_the_rest(first, second):
    options = applied(second, applied(first, {"instruction": "Names matter."}))

    assert preset_of(options).key == second
    assert options["instruction"] == "Names matter."


def test_options_of_ones_own_are_no_preset_and_stay():
    own = {"message_tokens": 777}

    assert preset_of(own) is None
    assert applied("own", own) == own
