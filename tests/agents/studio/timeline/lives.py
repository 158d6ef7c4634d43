"""Turns and cycles as rows, without any model."""

from datetime import timedelta

from django.utils import timezone
from pydantic_ai.messages import ModelResponse, TextPart

from agents.models import Turn
from memory.messages import user_prompt
from memory.services.append import append


def say(thread, number, *, author=None, text=None, took=1.5, status="done", at=None):
    """Store one turn with its two messages; return it."""
    at = at or timezone.now()
    prompt = text or f"Question {number} about the kitchen, its worktops and its lamps"
    said = ModelResponse(parts=[TextPart(f"Answer {number} about oak and beech")], timestamp=at)
    stored = append(thread.pk, [user_prompt(prompt, at), said], at=at)
    return Turn.objects.create(
        thread=thread,
        number=number,
        prompt=prompt,
        author=author,
        status=status,
        started_at=at,
        finished_at=at + timedelta(seconds=took),
        first_position=stored[0].position,
        last_position=stored[-1].position,
        usage={"input_tokens": 120, "output_tokens": 12},
    )
