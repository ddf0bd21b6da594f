"""A long session: compacted, the compaction undone, and two ways tried from the same point.

python long_session.py notes.txt      (a prompt on each line)
"""

import asyncio
import sys
from pathlib import Path

import tenuto


async def main(prompts):
    async with tenuto.Agent(mode="edits") as agent:
        for prompt in prompts:
            await agent.run(prompt)
        plan = await agent.preview()
        print(f"a compaction would begin with {plan.tokens_before:,} tokens ({plan.rung})")
        try:
            entry = await agent.compact("names of functions")
        except tenuto.TenutoError as error:  # a short session has nothing to make smaller
            sys.exit(f"not compacted: {error}")
        print(f"{entry.tokens_before:,} tokens became {entry.tokens_after:,}")
        undone = await agent.undo()
        print(f"undone: {undone.tokens_after:,}")
        await agent.redo()
        async with agent.fork() as bold, agent.fork() as careful:
            answers = await asyncio.gather(
                bold.run("how would you rewrite it from scratch?"),
                careful.run("what is the smallest change that helps?"),
            )
        for answer in answers:
            print(f"{answer.session_id[:8]}: {answer.text[:60]}")
        print(f"tenuto -r {agent.session_id[:8]} goes on")


asyncio.run(main(Path(sys.argv[1]).read_text().splitlines()))
