"""What a command may take of the machine."""

from __future__ import annotations

import os

import pytest

from tenuto.config.settings import ToolSettings
from tenuto.guard.sandbox.limits import command_group
from tests.guard.sandbox.places import KINDS, places

MANY = """
import os, time
made = 0
try:
    while made < 900:
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
        made += 1
except OSError:
    print("stopped at", made)
"""


@pytest.mark.parametrize("kind", KINDS)
async def test_s10_a_command_has_no_more_processes_than_it_may(kind):
    if os.geteuid() == 0 and not command_group(512):
        pytest.skip("root's processes are limited by control groups alone, and these cannot be written here")
    with places(kind) as made:
        (made.work / "many.py").write_text(MANY)
        _, text = await made.run("timeout -s KILL 15 python3 many.py")
        assert "stopped at" in text
        assert int(text.split()[2]) <= 512
        await made.bench.context.jobs.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_memory_is_limited_where_the_user_wants_it(kind):
    with places(kind) as made:
        line = "python3 -c \"x = b'x' * 600_000_000; print('had it')\""
        _, text = await made.run(line)
        assert "had it" in text
        made.bench.context.settings = ToolSettings(max_memory_mb=400)
        result, text = await made.run(line)
        assert result.is_error
        assert "had it\n" not in text


async def test_s10_all_outputs_of_a_session_have_a_limit_on_disk():
    with places("bubblewrap") as made:
        made.bench.context.settings = ToolSettings(max_outputs_mb=1)
        for _ in range(4):
            await made.run("head -c 700000 /dev/zero | tr '\\0' x")
        stored = sum(path.stat().st_size for path in made.bench.context.outputs.rglob("*") if path.is_file())
        assert stored <= 1_000_000
