import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from memory.engine.prompts.wanted import Wanted
from memory.extraction import (
    RESERVED,
    Extracted,
    Extractor,
    hand_over,
    read_value,
    read_values,
    resolve,
    slug_of,
    to_write,
    written_before,
)

MOOD = Extractor("User's mood", "One word.")


class Person(BaseModel):
    name: str
    age: int = 0


@pytest.fixture
def registered(settings):
    settings.MEMORY_EXTRACTORS = [f"{__name__}.MOOD"]


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Mood", "mood"),
        ("User's mood", "users-mood"),
        ('The "open" questions!', "the-open-questions"),
        ("openQuestions", "open-questions"),
        ("Größe 2", "groe-2"),
        ("  spaced   out  ", "spaced-out"),
    ],
)
def test_a_name_is_made_a_slug(name, slug):
    assert slug_of(name) == slug


@pytest.mark.parametrize("name", ["", "   ", None, 5])
def test_an_extractor_without_a_name_is_refused(name):
    with pytest.raises(ValueError, match="must have a name"):
        slug_of(name)


@pytest.mark.parametrize("name", ["2 moods", "!!!", "日本"])
def test_a_name_without_a_letter_first_is_refused(name):
    with pytest.raises(ValueError, match="must have a letter first"):
        slug_of(name)


def test_a_name_has_its_limit():
    assert slug_of("x" * 60)
    with pytest.raises(ValueError, match="at most 60 letters"):
        slug_of("x" * 61)


@pytest.mark.parametrize("slug", sorted(RESERVED))
def test_names_with_a_meaning_are_taken(slug):
    with pytest.raises(ValueError, match="is taken"):
        slug_of(slug)


@given(st.text())
def test_any_name_makes_a_usable_tag_or_is_refused(name):
    try:
        slug = slug_of(name)
    except ValueError:
        return
    assert slug == slug_of(slug)
    assert slug.strip("-") == slug
    assert Wanted(extract=[(slug, "x")]).names == (slug,)
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "must have instructions"),
        ({"instructions": "  "}, "must have instructions"),
        ({"schema": {"type": "object"}}, "must have instructions"),
        ({"mode": "structured", "instructions": "x"}, "must have a schema"),
        ({"mode": "hook"}, "must have on_extracted"),
        ({"mode": "hook", "on_extracted": print, "instructions": "x"}, "takes no instructions"),
        ({"mode": "hook", "on_extracted": print, "schema": Person}, "takes no instructions"),
    ],
)
def test_an_extractor_that_cannot_work_is_refused(fields, said):
    with pytest.raises(ValueError, match=said):
        Extractor("Mood", **fields)


def test_the_mode_follows_from_what_is_given():
    assert MOOD.mode == "inline"
    assert Extractor("Who", "Who?", schema=Person).mode == "structured"
    assert Extractor("Who", "Who?", schema=Person, mode="inline").mode == "inline"


def test_extractors_are_named_or_spelled_out(registered):
    found = resolve(["users-mood", {"name": "Topics", "instructions": "List them."}])
    assert [extractor.slug for extractor in found] == ["users-mood", "topics"]
    assert found[0] is MOOD
    assert resolve(["User's mood"]) == (MOOD,)


@pytest.mark.parametrize(
    ("extract", "said"),
    [
        (["weather"], "No extractor 'weather' is registered; there are users-mood"),
        ([5], "5 is neither"),
        ([{"instructions": "x"}], "name: an extractor must have a name"),
        ([{"name": "A", "instructions": "x", "on_extracted": "f"}], "on_extracted: an extractor's"),
        ([{"name": "A", "instructions": 5}], "instructions = 5: cannot be this"),
        ([{"name": "A", "instructions": "x", "schema": "object"}], "schema = 'object': cannot"),
        (["users-mood", {"name": "Users mood", "instructions": "x"}], "two extractors called"),
    ],
)
def test_what_means_no_extractors_is_refused(registered, extract, said):
    with pytest.raises(ValueError, match=said):
        resolve(extract)


def test_without_registered_ones_that_is_said(settings):
    settings.MEMORY_EXTRACTORS = []
    with pytest.raises(ValueError, match="'mood' is registered; there are none"):
        resolve(["mood"])


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (" calm ", "calm"),
        ('["a", "b"]', ["a", "b"]),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ("-3.5", -3.5),
        ("true", True),
        ("null", None),
        ('"quoted"', "quoted"),
        ("[not JSON", "[not JSON"),
        ("3 apples", "3 apples"),
        ("trueish", "trueish"),
        ({"a": 1}, {"a": 1}),
    ],
)
def test_what_looks_like_json_is_read_as_such(written, value):
    assert read_value(written) == value


@given(st.text())
def test_any_text_is_read(text):
    read_value(text)


def inline(name, schema=None, **fields):
    return Extractor(name, "x", schema=schema, mode="inline", **fields)


def test_the_observer_is_asked_for_inline_values_and_shown_those_until_now():
    extractors = [
        inline("Mood"),
        inline("Fresh", include_previous=False),
        inline("New"),
        Extractor("Who", "x", schema=Person),
        inline("Tags"),
    ]
    values = {"mood": "calm", "fresh": "old", "who": {"name": "Ada"}, "tags": ["ü"]}

    assert [slug for slug, _ in to_write(extractors)] == ["mood", "fresh", "new", "tags"]
    assert written_before(extractors, values) == {"mood": "calm", "tags": '["ü"]'}


def test_values_that_do_not_fit_are_recorded_without_losing_the_others():
    extractors = [
        inline("Mood"),
        inline("Count", {"type": "integer"}),
        inline("Who", Person),
        inline("Them", Person),
        inline("Silent"),
        Extractor("Later", "x", schema=Person),
    ]
    written = {
        "mood": "calm",
        "count": "many",
        "who": '{"name": "Ada", "age": "36"}',
        "them": '{"age": 5}',
        "later": "{}",
        "stray": "x",
    }
    found = read_values(extractors, written)

    assert found.values == {"mood": "calm", "who": {"name": "Ada", "age": 36}}
    assert found.failures == {
        "count": "must be integer, not string",
        "them": "name: Field required",
    }


async def test_what_is_extracted_is_handed_over_and_may_be_replaced():
    told = []

    def louder(value, context):
        return value.upper()

    async def listen(value, context):
        told.append((value, context))

    def breaks(value, context):
        raise OSError("full")

    extractors = [
        Extractor("Mood", "x", on_extracted=louder),
        Extractor("Topic", "x", on_extracted=listen),
        Extractor("Count", "x", on_extracted=breaks),
        Extractor("Silent", "x", on_extracted=breaks),
        Extractor("All of it", mode="hook", on_extracted=listen),
    ]
    extracted = Extracted({"mood": "calm", "topic": "tea", "count": 3}, {"other": "was wrong"})

    found = await hand_over(extractors, extracted, "context", observed=["a line"])

    assert found.values == {"mood": "CALM", "topic": "tea"}
    assert found.failures == {"other": "was wrong", "count": "on_extracted of count failed: full"}
    assert told == [("tea", "context"), (["a line"], "context")]
