import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.studio.context.differ import change, folded, lines, prefix
from agents.studio.context.inspected import Inspected, Part, Said
from memory.models.blob import digest
from tests.memory.services.play import AT

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "longer line"]), max_size=12).map("\n".join)

#: A machine may be busy with other things.
AT_LEISURE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def text(kind, said, tokens=10):
    return Part(kind, "", tokens, hash=digest(said), text=said)


def run(kind, *positions, tokens=5):
    said = tuple(Said(p, "request", tokens, f"say {p}", AT) for p in positions)
    first, last = (positions[0], positions[-1]) if positions else (0, 0)
    return Part(kind, "", tokens * len(positions), first=first, last=last, said=said)


def request(*parts):
    return Inspected("1.1", parts, sum(part.tokens for part in parts), "")


def test_equal_requests_share_everything():
    one = request(text("instructions", "Be brief."), run("prompt", 1))
    found = prefix(one, one)
    assert (found.tokens, found.broken_at, found.ends_with) == (one.total, "", "")


def test_a_message_is_the_same_whether_it_was_the_prompt_or_not():
    old = request(text("instructions", "Be brief."), run("prompt", 1))
    new = request(text("instructions", "Be brief."), run("message", 1, 2), run("prompt", 3))
    found = prefix(old, new)
    assert found.tokens == 10 + 5
    assert "only goes on" in found.ends_with


def test_what_breaks_the_prefix_is_named():
    old = request(text("memory", "One.\nTwo."), run("prompt", 1))
    new = request(text("memory", "One.\nThree."), run("prompt", 1))
    assert prefix(old, new).broken_at == "observations"
    assert 0 < prefix(old, new).tokens < 10


def test_what_came_between_is_named_with_what_was_there():
    old = request(run("message", 1), text("reminder", "Go on."), run("prompt", 2))
    new = request(run("message", 1, 2, 3), text("reminder", "Go on."), run("prompt", 4))
    assert prefix(old, new).broken_at == "message 2, in place of the reminder"


def test_what_is_left_out_is_no_part_of_it():
    old = request(run("left_out", 1, 2), run("prompt", 3))
    new = request(run("prompt", 3))
    assert prefix(old, new).share == 1


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (["a"], ["a"], "= same"),
        (["a"], ["a\nb"], "+1 line"),
        (["a\nb\nc"], ["a"], "−2 lines"),
        (["a\nb"], ["a\nx\ny"], "+2 −1 line"),
        ([], ["a"], "new"),
        (["a"], [], "gone"),
    ],
)
def test_a_text_changes_by_lines(before, after, said):
    old, new = (request(*[text("memory", each) for each in side]) for side in (before, after))
    assert change("memory", old, new).words == said


def test_messages_change_by_number():
    old, new = request(run("message", 1, 2, 3)), request(run("message", 3, 4))
    assert change("message", old, new).words == "+1 −2 messages"


def test_a_text_that_is_not_kept_is_compared_by_its_hash():
    kept = text("memory", "a")
    gone = Part("memory", "", 10, hash=kept.hash, text=None)
    other = Part("memory", "", 10, hash=digest("b"), text=None)
    assert change("memory", request(kept), request(gone)).words == "= same"
    assert change("memory", request(kept), request(other)).words == "≠ changed"


@AT_LEISURE
@given(TEXTS, TEXTS)
def test_a_comparison_holds_every_line_of_both(old, new):
    found = list(lines(old, new))
    assert [line.text for line in found if line.sign in " -"] == old.splitlines()
    assert [line.text for line in found if line.sign in " +"] == new.splitlines()


@AT_LEISURE
@given(TEXTS, TEXTS)
def test_folding_hides_only_what_is_equal(old, new):
    found = list(lines(old, new))
    shown = folded(found)
    changed = [line for line in found if line.sign in "+-"]
    assert [line for line in shown if line.sign in "+-"] == changed


@AT_LEISURE
@given(st.lists(TEXTS, max_size=5), st.lists(TEXTS, max_size=5))
def test_a_prefix_is_never_longer_than_either(old, new):
    kinds = ["instructions", "tools", "memory", "others", "reminder"]
    one, other = (
        request(*[text(kind, each, 3) for kind, each in zip(kinds, side, strict=False)])
        for side in (old, new)
    )
    assert prefix(one, other).tokens <= min(one.total, other.total)
    assert (prefix(one, other).tokens == one.total == other.total) >= (old == new)
