"""The thread that an extension's code runs on."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from tenuto.extension.lane import Lane, LaneError, LaneTimeoutError


@pytest.fixture
def strays():
    return []


@pytest.fixture
def lane(strays):
    lane = Lane("test", strays.append)
    yield lane
    lane.close()


async def test_plain_and_async_functions_run_on_the_lanes_own_thread(lane):
    async def slowly(text: str) -> tuple[str, int]:
        await asyncio.sleep(0)
        return text, threading.get_ident()

    first = await lane.call(threading.get_ident, timeout=60)
    assert await lane.call(slowly, "a", timeout=60) == ("a", first)
    assert first != threading.get_ident()


async def test_what_is_raised_arrives(lane):
    def fail() -> None:
        raise KeyError("nothing")

    with pytest.raises(KeyError, match="nothing"):
        await lane.call(fail, timeout=60)


async def test_a_function_that_waits_for_ever_is_cancelled_and_the_next_one_runs(lane):
    ended = threading.Event()

    async def hang() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    with pytest.raises(LaneTimeoutError, match=r"0\.05 seconds"):
        await lane.call(hang, timeout=0.05)
    assert await asyncio.to_thread(ended.wait, 5)
    assert await lane.call(lambda: 1, timeout=60) == 1


async def test_a_function_that_blocks_does_not_block_the_caller(lane):
    free = threading.Event()
    with pytest.raises(LaneTimeoutError):
        await lane.call(lambda: free.wait(60), timeout=0.05)
    assert lane.is_stuck
    free.set()
    assert await lane.call(lambda: 2, timeout=60) == 2
    assert not lane.is_stuck


async def test_a_cancelled_caller_cancels_the_function(lane):
    begun, ended = threading.Event(), threading.Event()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    calling = asyncio.create_task(lane.call(hang, timeout=60))
    assert await asyncio.to_thread(begun.wait, 5)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert await asyncio.to_thread(ended.wait, 5)


async def test_a_function_that_cancels_itself_does_not_cancel_the_caller(lane):
    async def cancel() -> None:
        raise asyncio.CancelledError

    with pytest.raises(LaneError, match="cancelled itself"):
        await lane.call(cancel, timeout=60)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
async def test_a_function_cannot_end_the_program_or_the_lane(lane, error):
    def leave() -> None:
        raise error

    with pytest.raises(LaneError, match="end the program"):
        await lane.call(leave, timeout=60)
    assert await lane.call(lambda: 3, timeout=60) == 3


async def test_a_fault_of_a_background_task_is_told(lane, strays):
    async def start() -> None:
        async def fail() -> None:
            raise ValueError("in the background")

        asyncio.get_running_loop().create_task(fail())

    await lane.call(start, timeout=60)
    for _ in range(100):
        await lane.call(lambda: None, timeout=60)
        if strays:
            break
        await asyncio.sleep(0.01)
    assert [str(error) for error in strays] == ["in the background"]


def test_a_blocked_lane_does_not_keep_the_program_from_ending():
    code = (
        "import asyncio, time\n"
        "from tenuto.extension.lane import Lane, LaneTimeoutError\n"
        "async def main():\n"
        "    lane = Lane('stuck', print)\n"
        "    try:\n"
        "        await lane.call(time.sleep, 3600, timeout=0.05)\n"
        "    except LaneTimeoutError:\n"
        "        print('late')\n"
        "    lane.close()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "late\n"


async def test_a_call_that_waits_when_the_lane_ends_is_told_so(lane):
    begun = asyncio.Event()
    here = asyncio.get_running_loop()

    async def wait_for_ever() -> None:
        here.call_soon_threadsafe(begun.set)
        await asyncio.Event().wait()

    waiting = asyncio.ensure_future(lane.call(wait_for_ever, timeout=30))
    await begun.wait()
    lane.close()
    with pytest.raises(LaneError):
        await waiting
