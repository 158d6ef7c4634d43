from hypothesis import given, strategies

from agents.lab.matrix import Fact, Place, Seat, Verdict, judge, judge_one, plain

ADA = Seat("A", "thread 1", "team", ("Our plumber is Ruth.",))
BEN = Seat("B", "thread 2", "team")
CLEO = Seat("C", "thread 3", "cleo")
SEATS = [ADA, BEN, CLEO]
RUTH = Fact("Ruth")


def reads(**texts):
    return lambda seat: [Place("messages", texts.get(seat.pane, ""))]


def verdicts(fact=RUTH, seats=SEATS, **texts):
    (row,) = judge([fact], seats, reads(**texts))
    return [cell.verdict for cell in row.cells]


def test_what_a_pane_said_is_its_own_shared_with_its_memory_and_kept_from_others():
    found = verdicts(A="Our plumber is Ruth.", B="User said: our plumber is RUTH")
    assert found == [Verdict.OWN, Verdict.SHARED, Verdict.ISOLATED]


def test_a_planted_leak_is_called_a_leak():
    assert verdicts(A="Ruth", B="Ruth", C="the plumber is ruth")[2] is Verdict.LEAK


def test_a_leak_that_is_only_in_a_memory_and_not_sent_yet_is_a_leak():
    def read(seat):
        return [Place("a line of its memory", "Ruth", sent=False)] if seat is CLEO else []

    (row,) = judge([RUTH], SEATS, read)
    assert row.cells[2].verdict is Verdict.LEAK
    assert row.leaks


def test_between_conversations_with_a_memory_each_the_same_is_a_leak():
    apart = [Seat("A", "thread 1", "thread 1", ("Ruth",)), Seat("B", "thread 2", "thread 2")]
    assert verdicts(seats=apart, A="Ruth", B="Ruth") == [Verdict.OWN, Verdict.LEAK]


def test_two_panes_of_one_conversation_both_own_what_is_said_there():
    twice = [ADA, Seat("B", "thread 1", "team", ADA.said)]
    assert verdicts(seats=twice, A="Ruth", B="Ruth") == [Verdict.OWN, Verdict.OWN]


def test_what_is_shared_or_own_but_not_sent_is_said_to_be_so():
    assert verdicts() == [Verdict.GONE, Verdict.ABSENT, Verdict.ISOLATED]


def test_what_nobody_said_proves_nothing():
    assert verdicts(Fact("Omar")) == [Verdict.UNSAID] * 3


def test_a_fact_may_name_the_pane_it_is_from():
    assert verdicts(Fact("4711", "C"), A="4711", C="4711")[::2] == [Verdict.LEAK, Verdict.OWN]


def test_escaped_broken_and_capital_text_is_found():
    said = Fact("Ruth & Sons,\n  Ltd")
    seats = [Seat("A", "1", "1", ("ruth & sons, ltd",)), CLEO]
    assert verdicts(said, seats, C="works with Ruth &amp; Sons, LTD.")[1] is Verdict.LEAK


def test_a_finding_says_where_and_shows_the_words_around_it():
    cell = judge_one(RUTH, "C", SEATS, reads(C=f"{'x' * 90} the plumber Ruth came {'y' * 90}"))
    (found,) = cell.found
    assert (found.place, found.match, len(found.before)) == ("messages", "ruth", 40)
    assert found.before.endswith("the plumber ")
    assert found.after.startswith(" came")


def test_every_pane_is_read_once_however_many_facts_there_are():
    asked = []
    judge([RUTH, Fact("Omar"), Fact("4711")], SEATS, lambda seat: asked.append(seat.pane) or [])
    assert asked == ["A", "B", "C"]


@given(strategies.text(min_size=1), strategies.text(), strategies.text())
def test_a_fact_planted_anywhere_in_a_strangers_request_is_always_a_leak(fact, before, after):
    wanted = plain(fact)
    if not wanted:
        return
    said = Seat("A", "1", "1", (fact,))
    (row,) = judge([Fact(fact)], [said, CLEO], reads(C=f"{before} {fact} {after}"))
    assert row.cells[1].verdict is Verdict.LEAK
