"""Programs without a terminal: wall time, processor time, peak memory."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path


class FailedRunError(Exception):
    """A measured program did not do its work; the figure would mean nothing."""


@dataclass(frozen=True, slots=True)
class Run:
    """`wall` and `cpu` (user and system) are seconds; `started` and `ended` are on the monotonic clock."""

    wall: float
    cpu: float
    started: float
    ended: float
    output: bytes = b""


def run(
    command: list[str],
    environ: dict[str, str],
    cwd: Path,
    timeout: float = 600.0,
    begun: Callable[[int], None] = lambda pid: None,
) -> Run:
    """Run a program to its end; `begun` gets its process id. Raises `FailedRunError` when it fails or does not end."""
    before = children_cpu()
    started = time.monotonic()
    with subprocess.Popen(
        command, env=environ, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        begun(process.pid)
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise FailedRunError(f"{Path(command[0]).name} did not end within {timeout:g} s") from None
        ended = time.monotonic()
    cpu = children_cpu() - before
    if process.returncode != 0:
        said = output.decode(errors="replace").strip()[-600:]
        raise FailedRunError(f"{' '.join(command)} ended with {process.returncode}:\n{said}")
    return Run(ended - started, cpu, started, ended, output)


def children_cpu() -> float:
    """Return the user and system time of all programs that have ended and been waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def peak_memory(command: list[str], environ: dict[str, str], cwd: Path, timeout: float = 600.0) -> float:
    """Run a program to its end and return its peak resident memory in MB (VmHWM, looked at every 10 ms)."""
    peak = 0.0
    with subprocess.Popen(
        command, env=environ, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + timeout
        while process.poll() is None:
            peak = max(peak, high_water(process.pid))
            time.sleep(0.01)
            if time.monotonic() > deadline:
                process.kill()
                raise FailedRunError(f"{Path(command[0]).name} did not end within {timeout:g} s")
    if process.returncode != 0:
        raise FailedRunError(f"{' '.join(command)} ended with {process.returncode}")
    return peak


def high_water(pid: int) -> float:
    """Return a process's peak resident memory so far in MB; 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    line = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0 kB")
    return int(line.split()[1]) / 1024


def family(pid: int) -> list[int]:
    """Return a process and its living descendants."""
    found = [pid]
    for parent in found:
        try:
            children = Path(f"/proc/{parent}/task/{parent}/children").read_text()
        except OSError:
            continue
        found += [int(child) for child in children.split()]
    return found


def cpu_seconds(pid: int) -> float:
    """Return the user and system time that a process used so far; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_clock(pids: Iterable[int]) -> float:
    """Return the processor time of living processes in seconds, to the microsecond where the system says it (Linux)."""
    total = 0.0
    for pid in pids:
        try:
            # clock_getcpuclockid(3), which Python does not have.
            total += time.clock_gettime((~pid << 3) | 2) if sys.platform == "linux" else cpu_seconds(pid)
        except OSError:
            continue
    return total


def resident(pid: int) -> float:
    """Return a process's resident memory in MB; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024**2
    except OSError:
        return 0.0
