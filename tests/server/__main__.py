"""Run the server as a process: `python -m tests.server --script hello --port-file F`.

`--port-file` is written, complete, once the server listens. SIGTERM or SIGINT ends it. While it runs,
`GET /_/requests` says what was recorded and `POST /_/reset` with a script's name as body starts afresh.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

from tests.server.scripts import script
from tests.server.server import ScriptedServer


def parse(arguments: list[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.server", description="A scripted model server on loopback.")
    parser.add_argument(
        "--script", default="hello", type=script, help="hello, fix_tests, steps:N, reads:N, stream:KB, slow"
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--port-file", type=Path, help="written with the port number when the server is ready")
    parser.add_argument("--window", type=int)
    parser.add_argument("--listed-window", type=int)
    parser.add_argument("--max-output", type=int)
    parser.add_argument("--api-key")
    parser.add_argument("--check-thinking", action="store_true")
    parser.add_argument("--lenient", action="store_true", help="refuse nothing (agents that are not ours)")
    parser.add_argument("--forget", action="store_true", help="keep no bodies (long runs)")
    return parser.parse_args(arguments)


async def serve(chosen: argparse.Namespace) -> None:
    """Serve until a signal comes."""
    names = ("window", "listed_window", "max_output", "api_key", "check_thinking", "lenient")
    options = {name: getattr(chosen, name) for name in names}
    server = ScriptedServer(chosen.script, port=chosen.port, keep_bodies=not chosen.forget, **options)
    server.control["script"] = script
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with server:
        if chosen.port_file is None:
            print(server.port, flush=True)
        else:
            partial = chosen.port_file.with_suffix(".partial")
            partial.write_text(f"{server.port}\n")
            os.replace(partial, chosen.port_file)
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(serve(parse(sys.argv[1:])))
