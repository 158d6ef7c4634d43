"""Test answering by rules."""

from memory.offline.answer import INTRODUCTION, NOTHING, Asked, Call, Said, answer

MEMORY = """<memory>
Preamble.
<observations>
Date: May 8, 2023 (2 days ago)
* 🔴 (13:56) User: adopted dog named Rex May 7, 2023; lives Lisbon
  * -> prefers tea
</observations>
</memory>"""
RECALL = {"recall": {"properties": {"query": {"type": "string"}}}}


def asked(prompt: str, **more: object) -> Asked:
    return Asked(memory=MEMORY, messages=[Said(True, prompt)], **more)  # type: ignore[arg-type]


def test_an_answer_names_the_observation_and_its_day() -> None:
    told = answer(asked("What is the name of my dog?"))

    assert told == "My notes from May 8, 2023 say: User: adopted dog named Rex May 7, 2023."


def test_what_nobody_spoke_of_is_admitted() -> None:
    told = answer(asked("Which submarine did I buy?"))

    assert isinstance(told, str)
    assert NOTHING in told
    assert INTRODUCTION in told


def test_what_was_said_a_moment_ago_is_found_too() -> None:
    messages = [Said(True, "My piano is red."), Said(False, "Noted."), Said(True, "My piano?")]

    assert answer(Asked(messages=messages)) == "You said just now: “My piano is red”."


def test_a_statement_is_acknowledged_in_its_own_words() -> None:
    told = answer(asked("I sold my piano to Ann."))

    assert isinstance(told, str)
    assert "I sold my piano to Ann." in told


def test_the_introduction_is_given_once_and_not_again() -> None:
    first = answer(Asked(messages=[Said(True, "I like tea.")]))
    later = answer(
        Asked(messages=[Said(True, "Hi."), Said(False, "Hello."), Said(True, "I like tea.")])
    )

    assert INTRODUCTION in str(first)
    assert INTRODUCTION not in str(later)


def test_a_question_for_the_time_calls_the_tool_that_knows_it() -> None:
    assert answer(asked("What time is it?", tools={"current_time": {}})) == Call("current_time", {})


def test_without_such_a_tool_nothing_is_called() -> None:
    assert isinstance(answer(asked("What time is it?")), str)


def test_a_wish_for_exact_words_is_looked_up_by_its_keywords() -> None:
    call = answer(asked("Quote exactly what I said about Lisbon", tools=RECALL))

    assert call == Call("recall", {"query": "Lisbon"})


MODES = {"recall": {"properties": {"mode": {}, "query": {}, "anchor": {}, "limit": {}}}}


def test_a_recall_that_has_modes_is_told_that_words_are_meant() -> None:
    call = answer(asked("Quote exactly what I said about Lisbon", tools=MODES))

    assert call == Call("recall", {"query": "Lisbon", "mode": "words"})


def test_a_wish_without_keywords_brings_the_newest_messages_back() -> None:
    assert answer(asked("Recall it", tools=MODES)) == Call("recall", {"anchor": "end", "limit": 4})


def test_what_recall_says_of_its_page_is_not_quoted() -> None:
    result = "Messages.\nThere are more.\n\n[1] User (10:00): I live there\n\n[2] User: I do"
    told = str(answer(asked("Quote Lisbon", tools=MODES, results=[("recall", result)])))

    assert "There are more" not in told
    assert "> [1] User (10:00): I live there\n>\n> [2] User: I do" in told


def test_a_refusal_of_recall_is_told_as_it_is() -> None:
    told = answer(asked("Quote Lisbon", tools=MODES, results=[("recall", "Switched off.")]))

    assert "> Switched off." in str(told)


def test_a_result_is_told_instead_of_asking_again() -> None:
    told = answer(
        asked("What time is it?", tools={"current_time": {}}, results=[("current_time", "noon")])
    )

    assert told == "It is noon."


def test_recalled_words_are_quoted() -> None:
    told = answer(
        asked("Quote Lisbon", tools=RECALL, results=[("recall", "[1] User: I live there")])
    )

    assert "> [1] User: I live there" in str(told)


def test_the_messages_a_line_rests_on_are_not_part_of_what_it_says() -> None:
    memory = MEMORY.replace("lives Lisbon\n", "lives Lisbon [messages 1-3]\n")
    prompt = [Said(True, "Where do I live?")]

    assert answer(Asked(memory=memory, messages=prompt)) == answer(asked("Where do I live?"))
