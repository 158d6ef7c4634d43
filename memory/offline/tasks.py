"""Tell what is being worked on, from the last thing the user asked for."""

from __future__ import annotations

from memory.offline.sentences import split_sentences
from memory.offline.transcript import Entry, named_speakers

_LONGEST = 200
_ASKING = (
    "can you", "could you", "would you", "please", "help me", "tell me", "show me", "write",
    "explain", "find", "give me", "make", "create", "remind", "fix", "list", "how do", "i need",
)  # fmt: skip


def print_hints(entries: list[Entry]) -> str:
    """Return the current task and the suggested response, in tags; empty without either."""
    speakers = named_speakers(entries)
    spoken = [(entries[index], text) for index, (_, text) in speakers.items()]
    if not spoken:
        return ""
    task = _last_request(spoken)
    last, text = spoken[-1]
    printed = f"<current-task>{task}</current-task>\n" if task else ""
    suggestion = _suggestion(last, text)
    if suggestion:
        printed += f"<suggested-response>{suggestion}</suggested-response>\n"
    return printed


def _last_request(spoken: list[tuple[Entry, str]]) -> str:
    for place in range(len(spoken) - 1, -1, -1):
        entry, text = spoken[place]
        if entry.who == "User" and (request := _request_in(text)):
            answered = any(other.who == "Assistant" for other, _ in spoken[place + 1 :])
            waiting = " (answered; waiting for the user)" if answered else ""
            return f"User asked: {request}{waiting}"
    return ""


def _request_in(text: str) -> str:
    for sentence in reversed(split_sentences(text)):
        if sentence.endswith("?") or sentence.lower().startswith(_ASKING):
            return _cut(sentence)
    return ""


def _suggestion(last: Entry, text: str) -> str:
    sentences = split_sentences(text)
    question = next((s for s in reversed(sentences) if s.endswith("?")), "")
    if not question:
        return ""
    if last.who == "User":
        return f"Answer the user's question: {_cut(question)}"
    return f"Wait for the user's answer to: {_cut(question)}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST].rsplit(' ', 1)[0]} …"
