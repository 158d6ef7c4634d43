import pytest

from memory.engine.window import window_of


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("openai:o3", 200_000),
        ("openai:o1", 200_000),
        ("o3", 200_000),
        ("openai:o4-mini", 200_000),
        ("openai:gpt-5-mini", 272_000),
        ("offline", None),
        ("openai-compatible:foo3", None),
    ],
)
def test_how_much_a_model_takes_in_is_known_by_its_name(model: str, tokens: int | None) -> None:
    assert window_of(model) == tokens
