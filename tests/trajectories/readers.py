"""Recorded runs of other agents, read from their own files: SWE-agent, mini-swe-agent, Claude Code, ATIF."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.trajectories.calls import (
    Create,
    Find,
    Lines,
    Look,
    Other,
    Recorded,
    Replace,
    Search,
    Shell,
    Shown,
    named,
    numbered_lines,
    shell,
)

SUFFIXES = (".traj", ".traj.json", ".jsonl", "trajectory.json", "session.json")


def find_recordings(folder: Path) -> list[Path]:
    """Return the files below a folder, or the file itself, that look like recordings."""
    if folder.is_file():
        return [folder]
    return sorted(path for path in folder.rglob("*") if path.name.endswith(SUFFIXES) and path.is_file())


def read_recording(path: Path) -> tuple[str, list[Recorded]]:
    """Return the agent's name and its calls in order; no calls where the file is nothing that is known here."""
    text = path.read_text(encoding="utf-8")
    if path.name.endswith(".jsonl"):
        return "Claude Code", list(_claude([json.loads(line) for line in text.splitlines() if line.strip()]))
    value = json.loads(text)
    if isinstance(value, list) or "messages" in value:
        return "mini-swe-agent", list(_mini(value if isinstance(value, list) else value["messages"]))
    if "loglines" in value:
        return "Claude Code", list(_claude(value["loglines"]))
    if "trajectory" in value:
        return "SWE-agent", list(_swe_agent(value["trajectory"]))
    if str(value.get("schema_version", "")).startswith("ATIF"):
        return value["agent"]["name"], list(_atif(value["steps"]))
    return "", []


_BLOCK = re.compile(r"```(?:mswea_bash_command|bash)\s*\n(.*?)\n```", re.DOTALL)
_OUTPUT = re.compile(r"<returncode>(-?\d+)</returncode>\s*<output>\n?(.*?)\n?</output>", re.DOTALL)


def _mini(messages: list[dict[str, Any]]) -> Iterator[Recorded]:
    for message, answer in zip(messages, [*messages[1:], {}], strict=True):
        block = _BLOCK.search(message["content"]) if message["role"] == "assistant" else None
        found = _OUTPUT.search(str(answer.get("content", ""))) if block else None
        if block is None or found is None:
            continue
        output, failed = found[2], found[1] != "0"
        call = Recorded(shell(block[1]), output, failed, "it failed" if failed else "")
        if isinstance(call.wanted, Look) and not failed and "<warning>" not in str(answer["content"]):
            call = replace(call, shown=(_lines_shown(call.wanted, block[1], output),))
        yield call


def _lines_shown(look: Look, command: str, output: str) -> Shown:
    """Return what `cat`, `head`, `sed -n` and `nl` print."""
    if command.startswith("nl"):
        return numbered_lines(look.path, output)
    lines = output.split("\n")
    total = len(lines) if look.count is None else None
    return Shown(look.path, dict(enumerate(lines, look.first)), total)


def _claude(lines: list[Any]) -> Iterator[Recorded]:
    answers: dict[str, dict[str, Any]] = {}
    calls: list[dict[str, Any]] = []
    for line in lines:
        message = line.get("message") if isinstance(line, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        blocks = content if isinstance(content, list) else []
        for block in (one for one in blocks if isinstance(one, dict)):
            if block.get("type") == "tool_use":
                calls.append(block)
            elif block.get("type") == "tool_result":
                answers[block["tool_use_id"]] = block
    for call in calls:
        if (answer := answers.get(call["id"])) is not None:
            parts = answer.get("content") or ""
            text = parts if isinstance(parts, str) else "".join(str(part.get("text", "")) for part in parts)
            yield named(call["name"], call["input"], text, failed=bool(answer.get("is_error")))


def _atif(steps: list[dict[str, Any]]) -> Iterator[Recorded]:
    for step in steps:
        answers = {one.get("source_call_id"): one for one in (step.get("observation") or {}).get("results", [])}
        for call in step.get("tool_calls") or []:
            answer = answers.get(call["tool_call_id"], {})
            text = answer.get("content") or ""
            failed = bool((answer.get("extra") or {}).get("is_error"))
            yield named(call["function_name"], call["arguments"], text if isinstance(text, str) else "", failed=failed)


_WINDOW = re.compile(r"\[File: (.+?) \((\d+) lines total\)\]\n(?:\(\d+ more lines? above\)\n)?")
_EDIT = re.compile(r"edit (\d+):(\d+)\n(.*?)\n?end_of_edit", re.DOTALL)
_EDIT_AT_CURSORS = re.compile(r"edit\n(.*?)\n?end_of_edit", re.DOTALL)
_LINTED = "introduced new syntax error"


def _swe_agent(steps: list[dict[str, Any]]) -> Iterator[Recorded]:
    state: dict[str, str] = {}
    cursors = (1, 1)
    for step in steps:
        action, answer = step["action"].strip(), step["observation"].replace("\r\n", "\n")
        if (found := re.match(r"set_cursors (\d+) (\d+)", action)) is not None:
            cursors = int(found[1]), int(found[2])
        refused = "the linter" if _LINTED in answer else "it failed" if _swe_failed(action, answer) else ""
        windows = tuple(_windows(answer, state.get("working_dir", "")))
        wanted = _swe_wanted(action, windows[0].path if windows else state.get("open_file", ""), cursors)
        shown = () if refused else windows
        if isinstance(wanted, Look) and shown and shown[0].lines:
            first = min(shown[0].lines)
            wanted = replace(wanted, path=shown[0].path, first=first, count=len(shown[0].lines))
        yield Recorded(wanted, answer, bool(refused), refused, shown)
        read = step.get("state") or {}
        state = json.loads(read) if isinstance(read, str) else read


def _swe_failed(action: str, answer: str) -> bool:
    if not action.startswith(("edit", "insert", "open", "create")):
        return "Traceback" in answer or "command not found" in answer
    return answer.lstrip().startswith(("Error", "Text not found", "Your edit", "Usage", "File", "No ")) or not answer


def _windows(answer: str, folder: str) -> Iterator[Shown]:
    for found in _WINDOW.finditer(answer):
        lines = numbered_lines("", answer[found.end() :]).lines
        path = found[1] if found[1].startswith("/") else f"{folder}/{found[1]}"
        yield Shown(path, lines, int(found[2]))


def _swe_wanted(action: str, file: str, cursors: tuple[int, int]) -> Any:
    if (found := _EDIT.match(action)) is not None:
        return Lines(file, int(found[1]), int(found[2]), found[3])
    if (found := _EDIT_AT_CURSORS.match(action)) is not None:
        return Lines(file, *cursors, found[1])
    try:
        words = shlex.split(action)
    except ValueError:
        return Shell(action)
    match words:
        case ["edit", old, new, *rest]:
            return Replace(file, old, new, rest == ["True"])
        case ["insert", text]:
            return Lines(file, -1, -1, text)
        case ["insert", text, line]:
            return Lines(file, int(line) + 1, int(line), text)
        case ["open", path, *_]:
            return Look(path)
        case ["goto" | "scroll_up" | "scroll_down", *_]:
            return Look(file)
        case ["create", path]:
            return Create(path, "\n")
        case ["find_file", pattern, *where]:
            return Find(f"**/{pattern}", where[0] if where else ".")
        case ["search_dir" | "search_file", pattern, *where]:
            return Search(pattern, where[0] if where else ".")
        case ["submit" | "set_cursors" | "exit" | "exit_forfeit", *_]:
            return Other(words[0])
        case ["connect_start" | "connect_sendline" | "decompile" | "disassemble" | "RsaCtfTool.py", *_]:
            return Shell(action)
        case _:
            return shell(action)
