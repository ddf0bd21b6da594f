"""The domains that commands may reach, as the user lists them. Pure.

`example.org` is that name, `*.example.org` every name below it, `10.0.0.5` and `[fd00::5]` an address. The ports are 80
and 443, or the one that an entry has: `example.org:8443`.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from tenuto.guard.addresses import is_private_address

USUAL_PORTS = (80, 443)
_PARTS = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>[0-9]+))?")


class Domain(Struct, frozen=True):
    """One entry: a name or address in lower case, whether it stands for all names below it, its port (0: the usual)."""

    host: str
    is_below: bool = False
    port: int = 0

    def names(self, host: str) -> bool:
        """Whether it stands for a host, which is in lower case."""
        return host.endswith(f".{self.host}") if self.is_below else host == self.host

    def opens(self, port: int) -> bool:
        """Whether it stands for a port."""
        return port == self.port if self.port else port in USUAL_PORTS


def read_domains(entries: Iterable[str]) -> tuple[Domain, ...]:
    """Return what the entries of the settings say."""
    return tuple(_read(entry) for entry in entries)


def _read(entry: str) -> Domain:
    parts = _PARTS.fullmatch(entry)
    if parts is None:
        raise ValueError(f"“{entry}” is no domain")
    host = plain_host(parts["host"])
    return Domain(host.removeprefix("*."), host.startswith("*."), int(parts["port"] or 0))


def plain_host(host: str) -> str:
    """Return a host as it is compared: in lower case, without the last dot; an address without brackets, in short."""
    host = host.lower().strip("[]").removesuffix(".")
    if ":" in host:
        with contextlib.suppress(ValueError):
            return str(ipaddress.IPv6Address(host))
    return host


def why_refused(domains: Sequence[Domain], host: str, port: int) -> str:
    """Return why a host may not be reached on a port, empty where it may. Looks nothing up."""
    named = [domain for domain in domains if domain.names(host)]
    if not named:
        return f"{host} is not in sandbox.domains"
    if not any(domain.opens(port) for domain in named):
        return f"port {port} of {host} is not in sandbox.domains"
    return ""


def usable_addresses(domains: Sequence[Domain], addresses: Iterable[str], port: int) -> list[str]:
    """Return the addresses of a name that may be connected to: public ones, and those that are listed themselves."""
    return [address for address in addresses if _is_usable(domains, address, port)]


def _is_usable(domains: Sequence[Domain], address: str, port: int) -> bool:
    is_listed = any(not domain.is_below and domain.host == address and domain.opens(port) for domain in domains)
    return is_listed or not is_private_address(address)
