"""The nets under a rebuilding: what the program writes, sends and offers, recorded so that two states can be compared.

What differs from run to run (ids, times, durations, addresses) is replaced by marks. See `scripts/nets`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import filecmp
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from shutil import rmtree
from typing import Any, get_args
from unittest import mock

import msgspec
from tests.config.support import leaves

import tenuto
from tenuto.command.registry import COMMANDS
from tenuto.config.settings import Settings
from tenuto.evaluation import driving
from tenuto.evaluation.driving import PROVIDER, Case
from tenuto.evaluation.scripted import SUMMARISERS, ScriptedModel, ScriptedTransport
from tenuto.model.endpoint import ProviderKind
from tenuto.model.http.transport import register_transport, unregister_transport
from tenuto.protocol.event import AnyEvent
from tenuto.protocol.message import KnownEntry
from tenuto.protocol.operation import AnyOperation
from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session
from tenuto.tui.keys.keys import KEYS

CASES = [
    Case(seed=seed, window=window, rounds=3, summariser=summariser, protocol=protocol)
    for protocol, summariser, (seed, window) in product(get_args(ProviderKind), SUMMARISERS, ((1, 8_192), (2, 16_384)))
]
PROMPTS = ("hello", "list", "read README.md", "run echo seen", "write notes.txt: one line")
"""What the offline model is asked in one session each, for the `--json` traces."""
NOW = 1_800_000_000.0
PLACE = Path(tempfile.gettempdir()) / "tenuto-nets"
CHANGING = [
    (re.compile(pattern), mark)
    for pattern, mark in (
        (r"[0-9a-f]{8}-\d{8}-\d{6}", "SESSION"),
        (r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?", "DATE"),
        (r'"(ts|time|started|created|updated|mtime|changed_at|at)":\d+(\.\d+)?([eE][+-]?\d+)?', r'"\1":0'),
        (r'"(duration|seconds|elapsed|thinking_duration)":\d+(\.\d+)?([eE][+-]?\d+)?', r'"\1":0'),
        (r'"(pid|submission_id|id|folder|prompt_cache_key|user_id|host|boot)":("[^"]*"|\d+)', r'"\1":0'),
        (r'"(max_tokens|max_output_tokens|max_completion_tokens)":\d+', r'"\1":0'),  # moves with what changes in texts
        (r'"prefix":"[0-9a-f]+', '"prefix":"'),
        (r"127\.0\.0\.1:\d+", "ADDRESS"),
        (r"\b\d+(\.\d+)? ?(ms|s)\b", "TIME"),
    )
]


def main() -> int:
    """Run `record FOLDER` or `compare OLD NEW`."""
    parser = argparse.ArgumentParser(prog="scripts/nets")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("record").add_argument("folder", type=Path)
    compared = actions.add_parser("compare")
    compared.add_argument("old", type=Path)
    compared.add_argument("new", type=Path)
    arguments = parser.parse_args()
    if arguments.action == "record":
        record(arguments.folder.absolute())
        return 0
    return compare(arguments.old, arguments.new)


def record(folder: Path) -> None:
    """Write everything below `folder`, which must not exist or be empty."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise SystemExit(f"{folder} is not empty: name a new folder")
    write(folder / "names.txt", "".join(f"{line}\n" for line in sorted(public_names())))
    write(folder / "tests.txt", "".join(f"{line}\n" for line in test_ids()))
    for number, case in enumerate(CASES, 1):
        name = f"{case.protocol}-{case.summariser}-{case.window}-{case.seed}"
        print(f"{number}/{len(CASES)}: {name}", file=sys.stderr)
        with new_place() as place:
            asyncio.run(record_session(case, place, folder / "sessions" / name))
    for prompt in PROMPTS:
        with new_place() as place:
            write(folder / "traces" / f"{re.sub('[^a-z]+', '-', prompt)}.jsonl", trace(prompt, place))


def compare(old: Path, new: Path) -> int:
    """Show what differs as a diff; return 1 where anything does."""
    names = sorted({path.relative_to(top) for top in (old, new) for path in top.rglob("*") if path.is_file()})
    differing = [name for name in names if not same(old / name, new / name)]
    for name in differing:
        print(f"differs: {name}")
        subprocess.run(["diff", "-N", "-u0", old / name, new / name], check=False)
    print(f"{len(names) - len(differing)} of {len(names)} files are equal")
    return int(bool(differing))


def same(old: Path, new: Path) -> bool:
    """Say whether both are there and equal."""
    return old.is_file() and new.is_file() and filecmp.cmp(old, new, shallow=False)


def public_names() -> Iterator[str]:
    """Yield what users and their code can name, each with its kind."""
    yield from (f"api {name}" for name in tenuto.__all__)
    yield from (f"setting {'.'.join(path)} {kind}" for path, kind in leaves(Settings))
    yield from (f"command {command.name} {' '.join(command.aliases)}" for command in COMMANDS)
    yield from (f"key {key.id} {' '.join(key.keys)} {key.context}" for key in KEYS)
    for kind, union in (("entry", KnownEntry), ("event", AnyEvent), ("operation", AnyOperation)):
        for member in get_args(union):
            fields = " ".join(field.encode_name for field in msgspec.structs.fields(member))
            yield f"{kind} {member.__struct_config__.tag} {fields}"


def test_ids() -> list[str]:
    """Return the names of all tests without their files, which may move."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-o", "addopts=", "-q", "-m", ""]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = sorted(line.partition("::")[2] for line in shown.split("\n") if "::" in line)
    if not found:
        raise SystemExit("pytest collected no test")
    return found


@contextlib.contextmanager
def new_place() -> Iterator[Path]:
    """Yield the one folder, empty: paths are in the records and count as tokens. Another run waits for its turn."""
    with PLACE.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rmtree(PLACE, ignore_errors=True)
        PLACE.mkdir(mode=0o700)
        yield PLACE
        rmtree(PLACE)


async def record_session(case: Case, place: Path, folder: Path) -> None:
    """Play one session in `place`, and write its log, the view of it, and every request."""
    model = ScriptedModel(case.protocol, case.window, case.summariser, case.seed)
    requests: list[bytes] = []

    def answer(body: bytes) -> Iterator[bytes]:
        requests.append(body)
        return model.answer(body)

    register_transport(PROVIDER, lambda _: ScriptedTransport(answer))
    try:
        with mock.patch("time.time", return_value=NOW), mock.patch("os.urandom", random.Random(1).randbytes):
            await driving.play(case, model, place)
    finally:
        unregister_transport(PROVIDER)
    for log in sorted(place.rglob(LOG_NAME)):
        session = Session.open(log.parent, read_only=True)
        write(folder / "log.jsonl", log.read_text())
        write(folder / "view.jsonl", "".join(f"{as_json(message)}\n" for message in session.get_llm_history()))
        session.close()
    write(folder / "requests.jsonl", "".join(f"{body.decode()}\n" for body in requests))


def trace(prompt: str, place: Path) -> str:
    """Return what `tenuto -p PROMPT --json` prints with the offline model in a project in `place`."""
    (place / "project").mkdir()
    (place / "project" / "README.md").write_text("# A project\n\nIt does a thing.\n")
    environ = {"PATH": os.environ["PATH"], "HOME": str(place), "TENUTO_HOME": str(place / "home"), "LANG": "C.UTF-8"}
    command = [sys.executable, "-m", "tenuto", "-p", prompt, "--json", "--model", "offline/tenuto", "--mode", "auto"]
    ended = subprocess.run(
        command,
        cwd=place / "project",
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout


def as_json(value: Any) -> str:
    """Return a struct as one line of JSON."""
    return msgspec.json.encode(value).decode()


def write(path: Path, text: str) -> None:
    """Write a text without what changes from run to run."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for pattern, mark in CHANGING:
        text = pattern.sub(mark, text)
    path.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
