"""The picture in the README: the real front-end on a real session; only what the model says is written here."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.core.harness import copy_sample
from tests.server import Call, Reply, Request, ScriptedServer

from tenuto.command.runtime import CommandRuntime
from tenuto.config.settings import UiSettings
from tenuto.core.runtime import Start
from tenuto.tui.full.app import TenutoApp
from tenuto.tui.late_runtime import LateRuntime
from tenuto.tui.themes import ThemeChooser

TARGET = Path(__file__).parent.parent / "docs" / "screen.svg"
COLUMNS, ROWS = 100, 46
MAX_BYTES = 120_000
MODEL = "scripted/demo"
SETTINGS = '[providers.scripted]\nbase_url = "{}"\n'
WEEKS = 9
"""Long files that are read before the picture begins, so that there is something to compact."""

SUMMARY = """## Goal
Find out which orders of the last weeks were charged wrongly.
## Constraints & Preferences
- Money is rounded to cents, once, at the end.
## Progress
### Done
- [x] Read the order logs of nine weeks
### In Progress
- [ ] Mend the total in `shop/price.py`
### Blocked
## Key Decisions
- **Mend the code first**: then the orders are charged again.
## Next Steps
1. Mend the discount
## Critical Context
- Orders with a discount are charged too little since week 3."""

BEFORE = "return round(amount * (1 - discount) * (1 - discount), 2)"
AFTER = "return round(amount * (1 - discount), 2)"
ANSWER = """The discount was taken off **twice**: `total()` multiplied by `1 - discount` once too often.

| order | before | now |
|---|---:|---:|
| 2 × 10.00, 50 % off | 5.00 | 10.00 |
| 2 × 10.00, no discount | 20.00 | 20.00 |

All four tests pass. The weeks 3 to 9 of the order log are affected; shall I list the orders to charge again?"""


def write_logs(folder: Path) -> None:
    """Write the order logs that the model reads."""
    folder.mkdir()
    for week in range(1, WEEKS + 1):
        lines = [f"2026-{week:02}-{day % 28 + 1:02} order {week * 1000 + day} paid" for day in range(900)]
        (folder / f"week-{week}.log").write_text("\n".join(lines))


class Model:
    """What the model says: it reads the logs, mends the test, and writes a summary whenever it is asked for one."""

    def __init__(self) -> None:
        reads = [Call("read", {"path": f"orders/week-{week}.log"}) for week in range(1, WEEKS + 1)]
        look = [Call("read", {"path": "shop/price.py"}), Call("read", {"path": "tests/test_price.py"})]
        edit = Call("edit", {"path": "shop/price.py", "old_string": BEFORE, "new_string": AFTER})
        self._replies = iter(
            [
                *(Reply(tool_calls=[read]) for read in reads),
                Reply("The totals with a discount are too low from week 3 on. All others are right."),
                Reply("I look at the code and its tests first.", tool_calls=look),
                Reply(tool_calls=[edit]),
                Reply(tool_calls=[Call("bash", {"command": "python -m pytest -q"})]),
                Reply(ANSWER),
            ]
        )

    def __call__(self, request: Request) -> Reply:
        """Answer one request; the summariser's are the ones without tools."""
        return next(self._replies) if request.tool_names else Reply(SUMMARY)


async def take(folder: Path, prompts: Sequence[str]) -> str:
    """Run the front-end, send the prompts one after the other, and return the screen as SVG."""
    work = copy_sample(folder / "shop")
    write_logs(work / "orders")
    subprocess.run(["git", "init", "-q", "-b", "main", work], check=True)
    home = folder / "home"
    home.mkdir()
    async with ScriptedServer(Model(), models=("demo",)) as server:
        (home / "settings.toml").write_text(SETTINGS.format(server.base_url + "/v1"))
        environ = {**os.environ, "TENUTO_HOME": str(home)}
        os.environ["PYTEST_ADDOPTS"] = "-p no:cacheprovider -p no:asyncio -p no:xdist"
        runtime = CommandRuntime(Start(cwd=work, home=home, model=MODEL, mode="auto", environ=environ))
        late = LateRuntime(home)

        async def opening() -> None:
            late.attach(runtime)
            await runtime.open()
            late.ready()

        app = TenutoApp(
            late, opening, themes=ThemeChooser("dark", {}, folder), ui=UiSettings(reduce_motion=True), home=folder
        )
        async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
            await app.workers.wait_for_complete()
            for prompt in prompts:
                await app.runner.submit_user_input(prompt)
                await pilot.pause()
                async with asyncio.timeout(60):
                    await runtime.wait_settled()
                await pilot.pause(0.3)
            picture = app.export_screenshot(title="tenuto")
        await app.finish()
        await runtime.close()
    return picture


def main() -> int:
    """Take the picture and write it; returns the exit code."""
    prompts = (
        "Which orders were charged wrongly since week 1? Read the logs.",
        "/compact",
        "Find out why the discount is wrong, mend it, and run the tests.",
    )
    with tempfile.TemporaryDirectory() as name:
        picture = asyncio.run(take(Path(name).resolve(), prompts))
        private = [name, str(TARGET.parent.parent), str(Path.home())]
        found = next((text for text in private if text in picture), "")
    if found or len(picture.encode()) > MAX_BYTES:
        print(f"not written: {f'it names {found}' if found else f'{len(picture.encode())} bytes'}", file=sys.stderr)
        return 1
    TARGET.write_text(picture, encoding="utf-8")
    print(f"{TARGET.relative_to(TARGET.parent.parent)}: {len(picture.encode()):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
