"""Addresses of the network: which are public, and which a name has."""

from __future__ import annotations

import asyncio
import ipaddress
import socket

_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "::/96")))
"""Addresses that lead to the IPv4 address in their last 32 bits: mapped, translated, NAT64, compatible."""
_NAT64_HERE = ipaddress.IPv6Network("64:ff9b:1::/48")
"""NAT64 by a network's own prefix: where the address lies in it is that network's affair."""


def is_private_address(address: str) -> bool:
    """Whether an address is anything but a public one; what cannot be read counts as private."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return True
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed in _NAT64_HERE:
            return True
        if parsed.sixtofour is not None:
            return is_private_address(str(parsed.sixtofour))
        if any(parsed in network for network in _EMBEDDING):
            return is_private_address(str(ipaddress.IPv4Address(int(parsed) & 0xFFFF_FFFF)))
    return not parsed.is_global or parsed.is_multicast


async def look_up(host: str, port: int) -> list[str]:
    """Return the addresses of a host. Raises `OSError`."""
    loop = asyncio.get_running_loop()
    facts = await loop.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in facts))
