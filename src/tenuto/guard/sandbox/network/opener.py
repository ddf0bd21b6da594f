"""Runs once inside of a new network, as a file of its own: hands out what makes it enterable, and ends.

    python -I -S -E opener.py CHANNEL LISTENS

CHANNEL is the descriptor of a Unix socket, through which descriptors go: the user namespace, the network namespace, and
with LISTENS = 1 a socket that listens on a free port of the network's own loopback.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket as _socket
else:
    import _socket  # `socket` takes milliseconds to import

WAITING = 128


def main(words: list[str]) -> None:
    """Hand out the descriptors. Raises `OSError`."""
    channel = _socket.socket(fileno=int(words[0]))
    held = [os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in ("user", "net")]
    if words[1] == "1":
        listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", 0))
        listener.listen(WAITING)
        held.append(listener.fileno())
    packed = b"".join(one.to_bytes(4, sys.byteorder) for one in held)
    channel.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, packed)])


if __name__ == "__main__":
    main(sys.argv[1:])
