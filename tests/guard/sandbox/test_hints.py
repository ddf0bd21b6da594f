"""What the model is told a sandbox may have blocked: the places that were refused, not who says so."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tenuto.guard.sandbox.hints import explain_failure
from tenuto.guard.sandbox.policy import Policy

POLICY = Policy(cwd="/home/me/project", home="/home/me", private="/tmp/tenuto-1")


@pytest.mark.parametrize(
    ("output", "named"),
    [
        ("/usr/bin/bash: line 1: /usr/made: Read-only file system", "(/usr/made)"),
        ("/usr/bin/touch: cannot touch '/etc/made': Read-only file system", "(/etc/made)"),
        ("/etc/made: Permission denied", "(/etc/made)"),
        ("PermissionError: [Errno 13] Permission denied: '/home/me/.ssh/id_rsa'", "(/home/me/.ssh/id_rsa)"),
    ],
)
def test_a_refused_place_is_named_and_its_speaker_is_not(output: str, named: str) -> None:
    assert explain_failure(output, POLICY).endswith(named)


def test_what_the_network_has_is_said_as_it_is_and_what_was_refused_by_name() -> None:
    output = "curl: (6) Could not resolve host: example.com"
    shared = replace(POLICY, loopback=True)
    listed = replace(shared, domains=tuple(f"{number}.example.org" for number in range(9)))
    assert explain_failure(output, POLICY) == "there is no network, not even to this machine"
    assert "on 127.0.0.1 is what commands of this session serve" in explain_failure(output, shared)
    said = explain_failure(output, listed)
    assert "0.example.org, 1.example.org" in said
    assert "8.example.org" not in said
    assert explain_failure(output, listed, ["example.com is not in sandbox.domains"]) == (
        "network: example.com is not in sandbox.domains"
    )
    assert explain_failure(output, replace(POLICY, network=True)) == ""


def test_what_was_surely_kept_is_named_and_what_does_not_work_here_is_said() -> None:
    said = explain_failure("", POLICY, (), ["/home/me/\x1b[2J", "/home/me/.bashrc"])
    assert said.endswith(r"('/home/me/\x1b[2J', /home/me/.bashrc)")
    assert explain_failure("chmod: x: Operation not permitted", POLICY, weakness="no modes").endswith("; no modes")
    assert explain_failure("Segmentation fault", POLICY, weakness="no modes") == ""


def test_an_ordinary_failure_is_not_the_sandbox() -> None:
    assert explain_failure("AssertionError: 1 != 2", POLICY) == ""
