"""The race of connections to a host with several addresses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress

import pytest

from tenuto.model.http.connection import Address, connect_to_first, dial, find_addresses

pytestmark = [pytest.mark.matrix, pytest.mark.usefixtures("task_start")]
FOR_EVER = 3600.0


@contextmanager
def listening(family: socket.AddressFamily = socket.AF_INET, host: str = "127.0.0.1") -> Generator[Address]:
    with socket.create_server((host, 0), family=family) as server:
        yield Address(family, server.getsockname())


@contextmanager
def refusing() -> Generator[Address]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield Address(socket.AF_INET, taken.getsockname())


@contextmanager
def silent() -> Generator[Address]:
    """An address that neither takes a connection nor refuses it: the queue of its server is full."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        waiting: list[socket.socket] = []
        try:
            while True:
                one = socket.socket()
                waiting.append(one)
                one.settimeout(0.2)
                one.connect(server.getsockname())
        except TimeoutError:
            yield Address(socket.AF_INET, server.getsockname())
        finally:
            for one in waiting:
                one.close()


async def test_the_first_address_is_taken_when_it_answers():
    with listening() as first, listening() as second:
        with closing(await connect_to_first([first, second], FOR_EVER)) as found:
            assert found.getpeername() == first.sockaddr


async def test_a_refused_address_is_followed_by_the_next_at_once():
    with refusing() as bad, listening() as good:
        async with asyncio.timeout(60):  # not after the hour of the stagger
            with closing(await connect_to_first([bad, bad, good], FOR_EVER)) as found:
                assert found.getpeername() == good.sockaddr


async def test_a_silent_address_is_passed_by():
    with silent() as bad, listening() as good:
        async with asyncio.timeout(60):  # the system itself would try the first for two minutes
            with closing(await connect_to_first([bad, bad, good], 0.01)) as found:
                assert found.getpeername() == good.sockaddr


async def test_each_reason_is_told_once():
    with refusing() as one, refusing() as other:
        with pytest.raises(OSError, match=r"^connection refused$"):
            await connect_to_first([one, other, one], FOR_EVER)


async def test_what_loses_or_is_cancelled_leaves_no_connection_and_no_task():
    before = asyncio.all_tasks()
    with silent() as bad, listening() as good:
        with closing(await connect_to_first([bad, good], 0.01)):
            pass
        attempt = asyncio.create_task(connect_to_first([bad, bad], 0.01))
        await asyncio.sleep(0.05)
        attempt.cancel()
        await asyncio.wait([attempt])
        assert attempt.cancelled()
        for _ in range(3):  # a task that is cancelled ends with one of the loop's next turns
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == before


async def test_of_two_that_answer_at_once_one_is_closed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = Address(socket.AF_INET, server.getsockname())
        with closing(await connect_to_first([address, address], 0)) as found:
            await asyncio.sleep(0.05)
            server.setblocking(False)
            taken: list[tuple[socket.socket, object]] = []
            with suppress(BlockingIOError):
                while True:
                    taken.append(server.accept())
            kept = [peer for one, peer in taken if not is_closed(one)]
            assert kept == [found.getsockname()]


def is_closed(connection: socket.socket) -> bool:
    with connection:
        connection.setblocking(False)
        try:
            return connection.recv(1) == b""
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True


async def test_a_name_is_looked_up_and_numbers_are_taken_as_they_are():
    with listening() as address:
        with closing(await dial("localhost", address.sockaddr[1])) as found:  # whichever family the name has first
            assert found.getpeername() == address.sockaddr
    assert await find_addresses("::1", 80) == [Address(socket.AF_INET6, ("::1", 80, 0, 0))]
    with pytest.raises(OSError):
        await find_addresses("no-such-host.invalid", 80)


async def test_a_request_in_two_writes_does_not_wait_for_an_acknowledgement():
    """Nagle's delay is off on what the transport writes to: with it each step of an agent took 40 ms more."""
    with listening() as server:
        connected = await connect_to_first([server], FOR_EVER)
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=connected)
        with closing(transport):
            found = transport.get_extra_info("socket")
            assert found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
