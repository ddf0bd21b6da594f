"""Addresses outside of the site, by their form; `scripts/site --external` asks whether they are there, CI cannot."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest
from scripts.external_links import addresses

KNOWN_HOSTS = {
    "agentclientprotocol.com",
    "agentskills.io",
    "arxiv.org",
    "docs.astral.sh",
    "docs.ray.io",
    "github.com",
    "harborframework.com",
    "keepachangelog.com",
    "learn.microsoft.com",
    "modelcontextprotocol.io",
    "pipx.pypa.io",
}
"""Whom the documentation sends readers to. A new one is written here by a hand that has looked at it."""
FOUND = addresses()


@pytest.mark.parametrize("address", FOUND)
def test_k6_an_address_is_whole_secure_and_of_a_known_host(address: str) -> None:
    parts = urlsplit(address)
    assert parts.scheme == "https"
    assert parts.hostname in KNOWN_HOSTS, f"a typo, or a new host: {FOUND[address]}"
    assert not parts.port and not parts.username
    assert re.fullmatch(r"[\w.~/-]*", parts.path) and "//" not in parts.path
    assert address[-1] not in ".,;:"


def test_k6_one_place_is_written_in_one_way_and_every_known_host_is_linked() -> None:
    places = {address.rstrip("/").removeprefix("https://www.").removeprefix("https://").lower() for address in FOUND}
    assert len(places) == len(FOUND), sorted(FOUND)
    assert {urlsplit(address).hostname for address in FOUND} == KNOWN_HOSTS
