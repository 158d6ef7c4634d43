from __future__ import annotations

import pytest


class FourCharacters:
    """Count a token for every four characters begun."""

    def count(self, text: str) -> int:
        return -(-len(text) // 4)

    def clip(self, text: str, limit: int) -> str:
        return text[: limit * 4]


@pytest.fixture(scope="session")
def tokenizer() -> FourCharacters:
    return FourCharacters()
