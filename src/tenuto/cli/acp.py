"""`tenuto acp`: serve an editor, or any other client of the Agent Client Protocol, on standard input and output."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tenuto.cli.arguments import read_mode
from tenuto.cli.parsing import Parser, complain, parse

HINT = "acp speaks a protocol and no words: let an editor start it (docs/acp.md)"


def run_acp(words: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Serve the client until it goes; return the exit code."""
    import sys

    parser = Parser(
        prog="tenuto acp",
        description="Serve a client of the Agent Client Protocol, an editor for one, on standard input and output.",
    )
    parser.add_argument("--model", default="", metavar="PROVIDER/NAME[:EFFORT]", help="the model of new sessions")
    parser.add_argument("--mode", type=read_mode, metavar="{ask,edits,auto,plan}", help="what needs approval at first")
    parser.add_argument("--no-sandbox", action="store_true", help="run commands without a sandbox")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    if sys.stdin.isatty():
        return complain(HINT)
    from tenuto.core.start import Start
    from tenuto.frontend.acp.server import run_acp as serve

    start = Start(
        cwd=Path("/"),
        home=home,
        model=parsed.model,
        mode=parsed.mode,
        sandboxed=not parsed.no_sandbox,
        environ=dict(environ),
    )
    return serve(start)
