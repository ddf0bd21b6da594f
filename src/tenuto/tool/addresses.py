"""Which hosts are private: this machine, its network, a cloud's metadata service."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable

_LOCAL_ENDINGS = (".localhost", ".local", ".internal", ".lan", ".home", ".home.arpa", ".intranet", ".corp")


def is_private_address(address: str) -> bool:
    """Whether an address is anything but a public one; what cannot be read counts as private."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        if inner is not None:
            return is_private_address(str(inner))
    return not parsed.is_global or parsed.is_multicast


def is_private_name(host: str) -> bool:
    """Whether a host is private by its name or number alone; looks nothing up."""
    host = host.lower().rstrip(".").strip("[]")
    if "." not in host and ":" not in host:
        return True  # localhost, a name of the local network, a number like 2130706433
    if host.endswith(_LOCAL_ENDINGS):
        return True
    last = host.rsplit(".", 1)[-1]
    if ":" in host or last.isdigit() or last.startswith("0x"):
        return is_private_address(host)
    return False


async def look_up(host: str, port: int) -> list[str]:
    """Return the addresses of a host. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    facts = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in facts))


def first_private(addresses: Iterable[str]) -> str:
    """Return the first private address, empty when all are public."""
    return next((address for address in addresses if is_private_address(address)), "")
