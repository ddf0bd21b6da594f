"""What Ray does to a job that it cancels, without Ray: it interrupts the main thread, and no call of the system."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tenuto.engine.ray_engine import find_fault

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


@pytest.mark.parametrize("form", ["{}", "ray://{}"])
def test_l5_whether_something_listens_at_the_address_of_a_cluster(form: str):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        address = form.format(f"127.0.0.1:{server.getsockname()[1]}")
        assert find_fault(address) == "Connection refused"
        server.listen()
        assert find_fault(address) == ""
    assert [find_fault(word) for word in ("", "auto", "local")] == ["", "", ""]


@pytest.mark.parametrize("form", ["{}", "ray://{}"])
def test_l5_a_number_that_is_no_port_reaches_no_other_server(form: str):
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        for number in (0, 0x10000 + port, 0xFFFF0000 + port, "9" * 5000):
            assert "from 1 to 65535" in find_fault(form.format(f"127.0.0.1:{number}"))
