"""Seatbelt, the sandbox of macOS: a policy as a profile for `sandbox-exec`. Written by its documentation, not tried."""

from __future__ import annotations

from tenuto.guard.sandbox.policy import Policy

PROGRAM = "/usr/bin/sandbox-exec"


def seatbelt_words(policy: Policy) -> list[str]:
    """Return what stands before the command."""
    return [PROGRAM, "-p", seatbelt_profile(policy), "--"]


def seatbelt_profile(policy: Policy) -> str:
    """Return the profile. The last rule that fits decides, so what is narrower comes later."""
    lines = [
        "(version 1)",
        "(allow default)",
        "(deny file-write*)",
        '(allow file-write* (literal "/dev/null") (literal "/dev/zero") (regex #"^/dev/tty"))',
        *(f"(allow file-write* (subpath {_quoted(place)}))" for place in (f"{policy.private}/tmp", *policy.writable)),
        *(f"(deny file-write* (subpath {_quoted(place)}))" for place in policy.protected),
        *(f"(deny file-write-unlink (literal {_quoted(place)}))" for place in policy.between),
        *(f"(deny file-read* file-write* (subpath {_quoted(place)}))" for place in policy.hidden),
        *(f"(allow file-read* (subpath {_quoted(place)}))" for place in policy.shown),
        "(deny process-info* (target others))",
        "(deny signal (target others))",
        "(allow signal (target same-sandbox))",
        '(deny mach-lookup (global-name "com.apple.SecurityServer") (global-name "com.apple.securityd"))',
    ]
    if not policy.network:
        lines += [
            "(deny network*)",
            f"(allow network* (local unix-socket (subpath {_quoted(policy.private)})))",
            f"(allow network* (remote unix-socket (subpath {_quoted(policy.private)})))",
        ]
    return "\n".join(lines)


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
