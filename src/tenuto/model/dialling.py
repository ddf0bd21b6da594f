"""TCP connections to a host with several addresses: a race with staggered starts (RFC 8305, Happy Eyeballs).

asyncio's own (`create_connection(happy_eyeballs_delay=…)`) fails with an AssertionError in Python 3.12.0 to 3.12.7 and
3.13.0 where tasks start eagerly, as Textual has them. This one does not rely on when a task starts.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Iterable
from itertools import chain, zip_longest
from typing import NamedTuple

STAGGER_SECONDS = 0.25
"""After which the next address is tried beside those that have not answered."""


class Address(NamedTuple):
    """One address of a host: its family, and what sockets of that family connect to."""

    family: socket.AddressFamily
    sockaddr: tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]


async def dial(host: str, port: int) -> socket.socket:
    """Return a socket, connected to `host` by whichever of its addresses answers first. Raises OSError."""
    return await connect_to_first(await find_addresses(host, port))


async def find_addresses(host: str, port: int) -> list[Address]:
    """Return the addresses of `host` (ASCII), the families taking turns. Raises OSError."""
    name = host.encode()  # text would import the codec of international names
    try:  # numbers need no thread
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await asyncio.get_running_loop().getaddrinfo(name, port, type=socket.SOCK_STREAM)
    families: dict[socket.AddressFamily, list[Address]] = {}
    for family, _, _, _, sockaddr in found:
        families.setdefault(family, []).append(Address(family, sockaddr))
    turns = chain.from_iterable(zip_longest(*families.values()))
    return [address for address in turns if address is not None]


async def connect_to_first(addresses: Iterable[Address], stagger: float = STAGGER_SECONDS) -> socket.socket:
    """Return a socket that is connected to the first address that answers.

    The next address is tried when one fails, or when none has answered for `stagger` seconds. Raises OSError with the
    reasons when all fail.
    """
    loop = asyncio.get_running_loop()
    waiting, failures = deque(addresses), list[str]()
    running: set[asyncio.Task[socket.socket]] = set()
    try:
        while waiting or running:
            if waiting:
                running.add(loop.create_task(_connect(waiting.popleft())))
            pause = stagger if waiting else None
            done, _ = await asyncio.wait(running, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                running.remove(task)
                try:
                    return task.result()
                except OSError as error:
                    failures.append(str(error))
    finally:
        for task in running:
            task.cancel()
            task.add_done_callback(_close_unused)
    raise OSError("; ".join(dict.fromkeys(failures)) or "the host has no address")


async def _connect(address: Address) -> socket.socket:
    connection = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, address.sockaddr)
    except BaseException:
        connection.close()
        raise
    return connection


def _close_unused(task: asyncio.Task[socket.socket]) -> None:
    """Close the connection of an attempt that came in later than another."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()
