"""Every address outside of the site that a page names, and whether it is still there: `scripts/site --external`.

Not part of CI: a site of others that is down for an hour is no fault of a change.
"""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import httpx

ROOT = Path(__file__).parent.parent
ADDRESS = re.compile(r"(?:\]\(|<)(https?://[^)>\s]+)")
AT_ONCE, SECONDS = 8, 20


def addresses() -> dict[str, list[str]]:
    """Return each address with the pages that link to it. Addresses in code are examples and no links."""
    found: dict[str, list[str]] = {}
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
        for address in ADDRESS.findall(text):
            found.setdefault(address, []).append(str(page.relative_to(ROOT)))
    return found


async def answer_of(client: httpx.AsyncClient, address: str, places: asyncio.Semaphore) -> str:
    """Return what is wrong with an address, empty when nothing is."""
    async with places:
        try:
            answer = await client.get(address)
        except httpx.HTTPError as error:
            return type(error).__name__
    return "" if answer.status_code < 400 else str(answer.status_code)


async def main() -> int:
    """Say what became of each address; returns the exit code."""
    found = addresses()
    places = asyncio.Semaphore(AT_ONCE)
    async with httpx.AsyncClient(follow_redirects=True, timeout=SECONDS) as client:
        faults = await asyncio.gather(*(answer_of(client, address, places) for address in found))
    for (address, pages), fault in zip(found.items(), faults, strict=True):
        print(f"{fault or 'ok':16} {address}  ({', '.join(sorted(set(pages)))})")
    return int(any(faults))


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
