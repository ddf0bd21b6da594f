"""What the model is told a sandbox may have blocked: the places that were refused, not who says so."""

from __future__ import annotations

import pytest

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


def test_an_ordinary_failure_is_not_the_sandbox() -> None:
    assert explain_failure("AssertionError: 1 != 2", POLICY) == ""
