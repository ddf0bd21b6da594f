"""Jobs on the machines of a Ray cluster. Ray is imported here alone, and only when it is asked for."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Collection
from importlib import import_module
from typing import Any, TextIO, cast

from tenuto.core.errors import UsageError
from tenuto.engine.child import PARTING_SECONDS
from tenuto.engine.engine import AnswerT, Job, WorkerLostError

CONNECT_SECONDS = 10.0
"""How long the machine that a cluster is on may take to answer."""

LAST_PORT = 0xFFFF
"""What is above is not refused by the system: it takes the lower 16 bits and reaches another server."""


class OwnOutput:
    """Standard output for all threads but `others`. Ray has some that say there what becomes of nodes: among the
    results, or over the table.
    """

    def __init__(self, stream: TextIO, others: Collection[threading.Thread]) -> None:
        self._stream = stream
        self._others = others

    def write(self, text: str) -> int:
        """Write a text, unless it is one of the others that does; returns its length."""
        return len(text) if threading.current_thread() in self._others else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        """Be the stream in everything else."""
        return getattr(self._stream, name)


class RayEngine:
    """Each job is a Ray task with one core: on any node that has Tenuto and what the job works on."""

    def __init__(self, jobs: int | None) -> None:
        """Join the cluster that RAY_ADDRESS names, or the one of this machine, or begin one. Raises `UsageError`."""
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # or it warns on a machine without cards
        try:
            self._ray: Any = import_module("ray")
        except ImportError as error:
            raise UsageError(f"--engine ray needs Ray ({error}): pip install 'tenuto[batch]'") from None
        address = os.environ.get("RAY_ADDRESS", "")
        if fault := find_fault(address):
            raise UsageError(f"there is no Ray cluster at {address} (RAY_ADDRESS): {fault}")
        ours = {*threading.enumerate()}
        try:
            if not self._ray.is_initialized():
                self._ray.init(log_to_driver=False, logging_level="ERROR", include_dashboard=False)
        except Exception as error:  # noqa: BLE001 - a node that starts too slowly is one of no class of its own
            raise UsageError(f"Ray cannot be reached: {_first_line(error)}") from None
        self._output = sys.stdout
        self._others = {*threading.enumerate()} - ours
        sys.stdout = cast("TextIO", OwnOutput(self._output, self._others))
        cores = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self.jobs = min(jobs or cores, cores)
        self._run = self._ray.remote(num_cpus=1, max_retries=0)(run_here)

    async def run(self, job: Job[AnswerT]) -> AnswerT:
        """Run one job on some node."""
        reference = self._run.remote(job)
        try:
            return cast("AnswerT", await asyncio.wrap_future(reference.future()))
        except asyncio.CancelledError:
            self._ray.cancel(reference, recursive=False)
            await asyncio.to_thread(self._ray.wait, [reference], timeout=PARTING_SECONDS)
            raise
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from error  # what the job itself has raised, there
        except self._ray.exceptions.RayError as error:
            raise WorkerLostError(f"{type(error).__name__}: {_first_line(error)}") from error

    def close(self) -> None:
        """Leave the cluster; what Ray has kept back of its words comes in this thread then."""
        self._others.add(threading.current_thread())
        self._ray.shutdown()
        sys.stdout = self._output


def find_fault(address: str) -> str:
    """Return why nothing listens at the address of a cluster; empty where something does, or where it names no port.

    Ray itself takes minutes to say so, and hears no Ctrl+C meanwhile.
    """
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdecimal():
        return ""
    if len(port) > len(str(LAST_PORT)) or int(port) not in range(1, LAST_PORT + 1):
        return f"a port is a number from 1 to {LAST_PORT}"
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def run_here(job: Job[AnswerT]) -> AnswerT:
    """Run a job on this node, with this node's environment. Raises `KeyboardInterrupt` when Ray cancels it."""
    try:
        return asyncio.run(_run_until_cancelled(job))
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None  # what Ray knows as an end that it has asked for


async def _run_until_cancelled(job: Job[AnswerT]) -> AnswerT:
    """Run a job that Ray can cancel.

    Ray does that with `_thread.interrupt_main`, which interrupts no call of the system: a loop that waits for events
    would hear of it with the next one, which for an agent that waits for its model may be minutes away. A handler of
    the loop's own is woken by a descriptor.
    """
    task = cast("asyncio.Task[AnswerT]", asyncio.current_task())
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, task.cancel)
    return await job.run(os.environ)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
