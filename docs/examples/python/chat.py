"""A chat from a file: each line is a prompt or a slash command, and `!model NAME` changes the model.

python chat.py lines.txt
"""

import asyncio
import sys
from pathlib import Path

import tenuto


async def main(lines):
    async with tenuto.Agent(mode="edits") as agent:
        for line in filter(None, map(str.strip, lines)):
            try:
                if line.startswith("!model "):
                    await agent.set_model(line.removeprefix("!model "))
                    print(f"{agent.model} answers from now on")
                elif await agent.is_command(line):
                    print((await agent.command(line)).text)
                else:
                    answer = await agent.run(line, timeout=600)
                    print(answer.text or answer.error)
            except (tenuto.UsageError, tenuto.ModelError) as error:
                print(f"not done: {error}")


asyncio.run(main(Path(sys.argv[1]).read_text().splitlines()))
