import pytest

from memory.media_tokens import Shape, detail_of, media_tokens, provider_of

KIB = 1024


def image(width=None, height=None, size=None, detail=""):
    return Shape("image/png", size=size, width=width, height=height, detail=detail)


@pytest.mark.parametrize(
    ("model", "shape", "tokens"),
    [
        # Google's newest: by detail alone.
        ("google:gemini-3-pro", image(detail="low"), 280),
        ("google:gemini-3-pro", image(detail="medium"), 560),
        ("google:gemini-3-pro", image(detail="high"), 1_120),
        ("google:gemini-3-pro", image(), 1_120),
        ("google:gemini-3-pro", image(4_000, 4_000), 1_120),
        ("google:gemini-3-flash", image(detail="ultra_high"), 2_240),
        # Google's older: by tiles of 768.
        ("google:gemini-2.5-flash", image(768, 768), 258),
        ("google:gemini-2.5-flash", image(769, 768), 2 * 258),
        ("google:gemini-2.5-flash", image(2_000, 1_000), 6 * 258),
        ("google:gemini-2.5-flash", image(size=9_000_000), 258),
        # Anthropic: by pixels after scaling, or by bytes.
        ("anthropic:claude-sonnet-4-6", image(750, 100), 100),
        ("anthropic:claude-sonnet-4-6", image(3_136, 1_568), 1_640),
        ("anthropic:claude-sonnet-4-6", image(size=512 * KIB), 341),
        ("anthropic:claude-sonnet-4-6", image(size=2_048 * KIB), 1_366),
        ("anthropic:claude-sonnet-4-6", image(size=4_096 * KIB), 2_048),
        ("anthropic:claude-sonnet-4-6", image(size=4_096 * KIB + 1), 2_731),
        ("anthropic:claude-sonnet-4-6", image(), 1_600),
        # OpenAI: a base, and tiles of 512 where the detail is high.
        ("openai:gpt-4o", image(1_024, 1_024, detail="high"), 85 + 4 * 170),
        ("openai:gpt-4o", image(2_048, 4_096, detail="high"), 85 + 6 * 170),
        ("openai:gpt-4o", image(4_096, 8_192, detail="low"), 85),
        ("openai:gpt-4o", image(768, 768), 85),
        ("openai:gpt-4o", image(769, 100), 85 + 2 * 170),
        ("openai:gpt-4o", image(100, 100, size=2_000 * KIB), 85 + 170),
        ("openai:gpt-4o", image(), 85 + 4 * 170),
        ("openai:gpt-4o", image(size=100 * KIB), 85),
        ("openai:gpt-4o", image(size=100 * KIB, detail="high"), 85 + 170),
        ("openai:gpt-4o", image(size=1_500 * KIB), 85 + 4 * 170),
        ("openai:gpt-4o", image(size=3_000 * KIB), 85 + 6 * 170),
        ("openai:gpt-4o", image(size=5_000 * KIB), 85 + 8 * 170),
        ("openai:gpt-5-mini", image(1_024, 1_024, detail="high"), 70 + 4 * 140),
        ("openai:gpt-4o-mini", image(), 2_833 + 5_667),
        ("openai:o3", image(1_024, 1_024, detail="high"), 75 + 4 * 150),
        ("openai:o1", image(detail="low"), 75),
        ("openai:computer-use-preview", image(1_024, 1_024, detail="high"), 65 + 4 * 129),
        # Whoever else: as OpenAI.
        ("", image(1_024, 1_024, detail="high"), 85 + 4 * 170),
        ("ollama:llava", image(detail="low"), 85),
        # Documents, by bytes.
        ("google:gemini-2.5-flash", Shape("application/pdf", size=20_000), 1_000),
        ("google:gemini-2.5-flash", Shape("application/pdf", size=20), 258),
        ("anthropic:claude-sonnet-4-6", Shape("application/pdf", size=30_000), 10_000),
        ("anthropic:claude-sonnet-4-6", Shape("application/pdf", size=30), 1_500),
        ("openai:gpt-5", Shape("application/pdf", size=40_000), 10_000),
        ("openai:gpt-5", Shape("application/pdf", size=40), 500),
        # Anything else, by bytes.
        ("anthropic:claude-sonnet-4-6", Shape("audio/wav", size=4_001), 1_001),
        ("openai:gpt-5", Shape("application/zip", size=0), 1),
    ],
)
def test_each_provider_counts_by_its_own_rule(model, shape, tokens):
    assert media_tokens(shape, model) == tokens


@pytest.mark.parametrize(
    ("model", "provider", "name"),
    [
        ("google:gemini-3-pro", "google", "gemini-3-pro"),
        ("google-vertex:claude-sonnet-4-6", "anthropic", "claude-sonnet-4-6"),
        ("openrouter:anthropic/claude-sonnet-4-6", "anthropic", "claude-sonnet-4-6"),
        ("openai-compatible:qwen@http://127.0.0.1:8000/v1", "openai", "qwen"),
        ("gpt-5-mini-2025", "openai", "gpt-5-mini-2025"),
        ("claude-opus-4-1", "anthropic", "claude-opus-4-1"),
        ("OpenAI:GPT-5", "openai", "gpt-5"),
        ("offline", "openai", "offline"),
        ("", "openai", ""),
    ],
)
def test_the_rules_go_by_who_made_the_model(model, provider, name):
    assert provider_of(model) == (provider, name)


@pytest.mark.parametrize(
    ("metadata", "detail"),
    [
        (None, ""),
        ({}, ""),
        ({"detail": "High"}, "high"),
        ({"media_resolution": {"level": "MEDIA_RESOLUTION_LOW"}}, "low"),
        ({"media_resolution": "MEDIA_RESOLUTION_ULTRA_HIGH"}, "ultra_high"),
        ({"detail": None}, ""),
    ],
)
def test_the_detail_is_read_as_each_provider_spells_it(metadata, detail):
    assert detail_of(metadata) == detail
