"""A tool of one's own, and a function that is asked before anything needs an approval.

python approvals.py "raise the version and tell the team"
"""

import asyncio
import sys
from typing import Annotated

import tenuto


async def tell_team(text: Annotated[str, "one sentence"]) -> str:
    """Tell the team what was done."""
    print(f"to the team: {text}")
    return "told"


async def approve(request):
    print(f"{request.tool} {request.summary}: {request.reason}")
    if request.tool == "tell_team":
        return tenuto.Allow(kind=0)  # for the rest of the session
    if request.tool in {"write", "edit"}:
        return tenuto.Allow()  # this time
    return tenuto.Deny("only files may be changed here")


async def main():
    async with tenuto.Agent(tools=[tell_team], approve=approve) as agent:
        answer = await agent.run(sys.argv[1], timeout=600)
        print(answer.raise_for_outcome().text)
        for path in answer.changed_files:
            print("changed:", path)


asyncio.run(main())
