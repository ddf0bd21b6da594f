"""What Ray does to a job that it cancels, without Ray: it interrupts the main thread, and no call of the system."""

from __future__ import annotations

import subprocess
import sys

CANCELLED = """
import _thread, asyncio, threading
from tenuto.engine.ray_engine import run_here

class Waits:
    async def run(self, environ):
        threading.Timer(0.5, _thread.interrupt_main).start()
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.01)
            print("ended in order")

    def clean(self, environ):
        pass

try:
    run_here(Waits())
except KeyboardInterrupt:
    print("cancelled")
"""


def test_l5_a_job_that_waits_for_nothing_but_its_agent_hears_that_ray_cancels_it():
    done = subprocess.run([sys.executable, "-c", CANCELLED], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.splitlines() == ["ended in order", "cancelled"], done.stderr
