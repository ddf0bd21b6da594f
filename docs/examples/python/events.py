"""Events of a run as they happen: text as it comes, calls with their results, and the answer at the end.

python events.py "what is in this directory?"
"""

import asyncio
import sys
from contextlib import aclosing

import tenuto
from tenuto.protocol.event import AssistantTextDeltaEvent, ToolResultEvent, ToolStartedEvent


async def main():
    async with tenuto.Agent(mode="ask") as agent, aclosing(agent.stream(sys.argv[1])) as events:
        async for event in events:
            match event:
                case AssistantTextDeltaEvent(text=text):
                    print(text, end="", flush=True)
                case ToolStartedEvent(name=name, summary=summary):
                    print(f"\n> {name} {summary}")
                case ToolResultEvent(message=message):
                    print("  failed" if message.is_error else "  done")
                case tenuto.Answer() as answer:
                    print(f"\n{answer.outcome}: {answer.turns} turns, {answer.usage.total:,} tokens")


asyncio.run(main())
