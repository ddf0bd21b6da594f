"""Waits for commands and forks a launcher for each: started once, as a file of its own, by the first command.

An interpreter takes 10 ms to start, a fork less than one. Nothing of a command is in here before it comes: its
environment, folder and descriptors arrive with it, and go with the fork. This process has no terminal, hardly an
environment, and a memory that no other process reads; only Tenuto has the other end of its channel, and it ends when
that is closed.

    python -I -S -E starter.py CHANNEL LIFE

CHANNEL is a Unix socket: orders come, as `starting` writes them, and numbers of processes go back. LIFE is the end of
a pipe that closes with Tenuto; the launchers watch it.
"""

from __future__ import annotations

import gc
import os
import struct
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket as _socket

    from tenuto.guard.sandbox.launching.launcher import Order, hide_memory, stand_over
else:
    import _socket  # `socket` takes 5 ms to import

    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    _beside = __import__("launcher")  # the file beside this one, whose compiled form is kept
    Order, hide_memory, stand_over = _beside.Order, _beside.hide_memory, _beside.stand_over
    del sys.path[0]

HEAD = struct.Struct("=II")
ANSWER = struct.Struct("=i")
MOST_DESCRIPTORS = 64


def main(words: list[str]) -> None:
    """Do what comes, until Tenuto is gone."""
    number, life = (int(word) for word in words)
    for descriptor in (number, life):
        os.set_inheritable(descriptor, False)
    channel = _socket.socket(fileno=number)
    hide_memory()
    gc.freeze()  # what is there now is not written to by a look for cycles, and stays shared with every launcher
    while True:
        descriptors: list[int] = []
        head = _receive(channel, HEAD.size, descriptors)
        if not head:
            return
        size, ended = HEAD.unpack(head)
        if ended:
            os.waitpid(ended, 0)
            continue
        answer = _launch(Order(_receive(channel, size, descriptors), descriptors), channel, life)
        for descriptor in descriptors:
            os.close(descriptor)
        channel.sendall(ANSWER.pack(answer))


def _launch(order: Order, channel: _socket.socket, life: int) -> int:
    """Fork a launcher where the command is to run; return its number, or below 0 what fault there was."""
    try:
        os.fchdir(order.folder)
        begun, begins = os.pipe()
        launcher = os.fork()
        if launcher == 0:
            channel.close()
            os.close(begun)
            stand_over(order, life, begins)
        os.close(begins)
        os.read(begun, 1)  # closed when it leads its session: by that its command is found and ended
        os.close(begun)
        os.chdir("/")  # no folder is kept
    except OSError as error:
        return -(error.errno or 1)
    return launcher


def _receive(channel: _socket.socket, size: int, descriptors: list[int]) -> bytes:
    """Return so many bytes, nothing when the other end is closed; adds the descriptors that come with them."""
    data = b""
    while len(data) < size:
        part, more, _, _ = channel.recvmsg(size - len(data), _socket.CMSG_SPACE(4 * MOST_DESCRIPTORS))
        if not part:
            return b""
        data += part
        for _, _, packed in more:
            came = struct.unpack(f"={len(packed) // 4}i", packed)
            for descriptor in came:
                os.set_inheritable(descriptor, False)
            descriptors += came
    return data


if __name__ == "__main__":
    main(sys.argv[1:])
    os._exit(0)
