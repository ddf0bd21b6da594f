"""What of a failed command's output looks like the work of the sandbox, in words for the model. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tenuto.guard.sandbox.policy import Policy
from tenuto.guard.subject import is_inside

_NETWORK = re.compile(
    r"Network is unreachable|Could not resolve host|Temporary failure in name resolution|Name or service not known"
    r"|No address associated with hostname|getaddrinfo|ENETUNREACH|EAI_AGAIN|Failed to resolve|dns error"
    r"|nodename nor servname|Connection refused|No route to host|unable to resolve|socket: Operation not permitted"
    r"|Couldn't connect to server|urlopen error|PermissionError: \[Errno 1\] Operation not permitted",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"Read-only file system|EROFS|Permission denied|EACCES|Operation not permitted|EPERM|os error 13"
    r"|Device or resource busy|EBUSY|Invalid cross-device link|EXDEV",
    re.IGNORECASE,
)
_PATH = re.compile(r"""(?:(?<=[\s'"‘“`(=:])|^)(~?/[^\s'"’”`():,;]+|\.[\w.-]+(?:/[^\s'"’”`():,;]*)?)""")
_SPEAKER = re.compile(r"^\S+: (?:line [0-9]+: )?(?=\S)")
"""Who says it, before what it says: `/usr/bin/bash: line 1: …`, `touch: …`."""
_NOT_THERE = re.compile(r"No such file or directory|ENOENT|os error 2|cannot find", re.IGNORECASE)
_LOOKED_AT = 20_000
_PATHS = 3
_DOMAINS = 8
_SERVED = "what commands of this session serve, nothing of the user's own"
_NO_NETWORK = "there is no network, not even to this machine"


def explain_failure(
    output: str, policy: Policy, refused: Sequence[str] = (), unchanged: Sequence[str] = (), weakness: str = ""
) -> str:
    """Return what the sandbox may have blocked, empty where nothing looks like it.

    `refused` is what the proxy surely has, `unchanged` are places that it surely kept as they are, and
    `weakness` is what does not work in it on this machine.
    """
    tail = output[-_LOOKED_AT:]
    said: list[str] = []
    denied = [line for line in tail.splitlines() if _REFUSED.search(line)]
    if denied or unchanged:
        places = list(dict.fromkeys((*_paths_in(denied), *map(_shown, unchanged))))[:_PATHS]
        what = f" ({', '.join(places)})" if places else ""
        said.append(
            "only the workspace and the temporary folder can be written, in it no configuration and hooks of git, no "
            "instruction, agent, editor, CI, shell profile and key files; the user's keys cannot be read"
            f"{what}"
        )
    if denied and weakness:
        said.append(weakness)
    missed = [line for line in tail.splitlines() if _NOT_THERE.search(line)]
    unseen = [path for path in _paths_in(missed) if _is_unseen(path, policy)][:_PATHS]
    if unseen:
        said.append(f"it has a temporary folder of its own and does not show {', '.join(unseen)}")
    if refused:
        said.append(f"network: {', '.join(refused)}")
    elif not policy.network and _NETWORK.search(tail):
        said.append(_what_is_reached(policy))
    return "; ".join(said)


def _shown(path: str) -> str:
    return path if path.isprintable() else repr(path)


def _what_is_reached(policy: Policy) -> str:
    if policy.domains:
        named = ", ".join(policy.domains[:_DOMAINS]) + (", …" if policy.domains[_DOMAINS:] else "")
        return f"the network has {named}, by the proxy that HTTPS_PROXY names, and on 127.0.0.1 {_SERVED}"
    return f"there is no network; on 127.0.0.1 is {_SERVED}" if policy.loopback else _NO_NETWORK


def _paths_in(lines: Iterable[str]) -> list[str]:
    found = (_PATH.findall(_SPEAKER.sub("", line)) or _PATH.findall(line) for line in lines)
    return list(dict.fromkeys(path for paths in found for path in paths))


def _is_unseen(path: str, policy: Policy) -> bool:
    """Whether a path leads to what is hidden, or replaced by the session's own."""
    full = policy.home + path[1:] if path.startswith("~/") else path
    return any(is_inside(full, place) for place in (*policy.hidden, "/tmp", "/var/tmp", "/run"))
