"""What of a failed command's output looks like the work of the sandbox, in words for the model. Pure."""

from __future__ import annotations

import re

_NETWORK = re.compile(
    r"Network is unreachable|Could not resolve host|Temporary failure in name resolution|Name or service not known"
    r"|No address associated with hostname|getaddrinfo|ENETUNREACH|EAI_AGAIN|Failed to resolve|dns error"
    r"|nodename nor servname|Connection refused|No route to host|unable to resolve|socket: Operation not permitted"
    r"|Couldn't connect to server|urlopen error|PermissionError: \[Errno 1\] Operation not permitted",
    re.IGNORECASE,
)
_REFUSED = re.compile(
    r"Read-only file system|EROFS|Permission denied|EACCES|Operation not permitted|EPERM|os error 13", re.IGNORECASE
)
_PATH = re.compile(r"""(?:(?<=[\s'"‘“`(=:])|^)(~?/[^\s'"’”`():,;]+|\.[\w.-]+(?:/[^\s'"’”`():,;]*)?)""")
_LOOKED_AT = 20_000
_PATHS = 3


def explain_failure(output: str, *, network: bool) -> str:
    """Return what the sandbox may have blocked, empty where nothing looks like it."""
    tail = output[-_LOOKED_AT:]
    said: list[str] = []
    refused = [line for line in tail.splitlines() if _REFUSED.search(line)]
    if refused:
        places = list(dict.fromkeys(path for line in refused for path in _PATH.findall(line)))[:_PATHS]
        what = f" ({', '.join(places)})" if places else ""
        said.append(
            f"only the workspace and the temporary folder can be written, not git's configuration, hooks or "
            f"instruction files in it, and keys cannot be read{what}"
        )
    if not network and _NETWORK.search(tail):
        said.append("there is no network, not even to this machine")
    return "; ".join(said)
