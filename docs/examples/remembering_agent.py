# ruff: noqa: T201
"""Give an agent a memory: run it twice, and it goes on where it was.

    python docs/examples/remembering_agent.py [FILE.sqlite3]

Needs no key: the offline model answers by rule. With a real one, write
Agent("openai:gpt-5-mini", ...) and leave the rest as it is.
"""

import asyncio
import sys

from pydantic_ai import Agent

from memory import ObservationalMemory, settled, setup
from memory.llm import resolve

setup(f"sqlite:///{sys.argv[1] if len(sys.argv) > 1 else 'remembering.sqlite3'}")

# So small that a short talk is enough to see it work; the default is 30,000.
memory = ObservationalMemory("support-42", options={"message_tokens": 150})
agent = Agent(resolve("offline"), instructions="Be brief.", capabilities=[memory])

SAID = [
    "My name is Ada, and I ride a Kestrel that I bought here in March.",
    "Its rear brake squeals whenever it rains. I live in Leipzig, where it often does.",
    "I can come by on Thursday after five, never before: I work until half past four.",
    "My budget for new pads is thirty euros. Please no resin ones, they wore out in weeks.",
    "And the bell is loose, but that can wait until the big service in autumn.",
    "Which brake squeals, and when?",
]


async def main() -> None:
    """Talk for a while, and show what is remembered of it."""
    for said in SAID:
        result = await agent.run(said)
        print(f"Customer: {said}\nAgent:    {result.output}\n")
        await settled()
    print("Remembered:", *await memory.lines(), sep="\n* ")


asyncio.run(main())
