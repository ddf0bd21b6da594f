"""Which kinds of calls an answer may allow together with one call: `pytest *`, edits below `src/`, a host. Pure.

Each kind covers the call that it was derived from. None is offered where what would run is not said by a few words:
for interpreters with a text, `sudo`, `xargs`, `rm`, for what only its exact words can name, and outside of the sandbox.
"""

from __future__ import annotations

import os.path
import shlex
from collections.abc import Iterator, Sequence

from tenuto.guard.rules import OWN_TOOL, Rule, exact_command, exact_path, server_rule, tool_group
from tenuto.guard.subject import ApprovalSubject, SimpleCommand, is_inside
from tenuto.protocol.event import THIS_COMMAND, ApprovalKind
from tenuto.text.late import late

_WORD = late(r"[A-Za-z0-9_][A-Za-z0-9_.:/@+-]*")
_PROGRAM = late(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*|\.{0,2}(?:/[A-Za-z0-9_.+-]+)+|[A-Za-z0-9_.+-]+(?:/[A-Za-z0-9_.+-]+)+")
_PROJECT_PROGRAMS = frozenset(
    {"make", "just", "task", "npm", "pnpm", "yarn", "bun", "gradle", "mvn", "tox", "nox", "rake"}
)
_NEVER = frozenset(
    (
        *("git config", "git bisect", "git clone", "git submodule", "git filter-branch", "docker run", "docker exec"),
        *("podman run", "podman exec", "kubectl exec", "go run", "deno eval", "bun x", "npm exec", "pnpm dlx"),
    )
)
"""Subcommands that run what their arguments say."""
_SCRIPTS = (".sh", ".py", ".js", ".mjs", ".ts", ".rb", ".pl")
_MOST_COMMANDS = 4
_SUBCOMMANDS: dict[str, int] = dict.fromkeys(
    """
    git hg jj npm pnpm yarn cargo go rustup docker podman kubectl helm pip pip3 uv poetry pdm hatch rye pipenv bundle gh
    glab brew apt apt-get systemctl terraform dotnet mix composer conda mamba rails gem just task nx turbo
    """.split(),  # noqa: SIM905
    1,
) | {"docker compose": 2, "gh pr": 2, "gh issue": 2, "gh run": 2, "uv pip": 2}
"""How many words behind a program say what it does."""
_ONLY_EXACTLY = frozenset(
    """
    find fd rm rmdir unlink shred dd mkfs fdisk mount umount chmod chown chgrp kill killall pkill shutdown reboot
    """.split()  # noqa: SIM905
)
"""Programs of which every call is another matter."""
_WIDE_PARTS = 3
"""A kind may cover a folder outside the workspace only below this depth: never all of `/`, `/etc` or a home."""
OUTSIDE = "allowed for longer, it runs outside of the sandbox each time"
CHANGES = "what it runs is the project's, and may change"


def kinds_of(subject: ApprovalSubject, places: Sequence[str]) -> tuple[ApprovalKind, ...]:
    """Return the kinds that an answer to this call may allow, the likeliest first. `places` are the workspace's."""
    match subject.kind:
        case "execute":
            found = _command_kinds(subject)
        case "edit":
            found = _edit_kinds(subject, places)
        case "read":
            found = _read_kinds(subject)
        case "network":
            found = _host_kinds(subject)
        case "mcp":
            found = _server_kinds(subject)
        case "extension":
            found = [ApprovalKind(rules=(Rule(tool=OWN_TOOL, pattern=subject.tool).text,), covers=subject.tool)]
        case "none":
            found = []
    return tuple(kind for kind in found if kind.rules)


# --- commands ---


def _command_kinds(subject: ApprovalSubject) -> list[ApprovalKind]:
    tool = tool_group(subject.tool)
    outside = bool(subject.leaves_sandbox)
    exact = ApprovalKind(
        rules=(Rule(tool=tool, pattern=exact_command(subject.detail, outside=outside)).text,),
        covers=THIS_COMMAND,
        note="; ".join(_notes(subject)),
    )
    if tool != "bash" or subject.writes or outside:  # outside of the sandbox every command is looked at
        return [exact]
    patterns = _patterns(subject)
    if not patterns:
        return [exact]
    rules = tuple(Rule(tool=tool, pattern=pattern).text for pattern in patterns)
    note = CHANGES if any(_is_of_the_project(pattern.removesuffix(" *")) for pattern in patterns) else ""
    return [ApprovalKind(rules=rules, covers=" and ".join(patterns), note=note), exact]


def _notes(subject: ApprovalSubject) -> Iterator[str]:
    if subject.leaves_sandbox:
        yield OUTSIDE
    if _is_of_the_project(subject.detail):
        yield CHANGES


def _patterns(subject: ApprovalSubject) -> list[str]:
    """Return the patterns that together cover a line, none where one of its commands has none."""
    found = [_kind_words(each) for each in subject.commands if not each.reads]
    if not found or not all(found):
        return []
    patterns = list(dict.fromkeys(f"{shlex.join(words)} *" for words in found))
    return patterns if len(patterns) <= _MOST_COMMANDS else []


def _kind_words(command: SimpleCommand) -> list[str]:
    """Return the words that say which kind of command this is, none where only all of them do."""
    words = command.words
    if command.barrier or command.prefix_barrier or not words or words[0] is None:
        return []
    from tenuto.guard.readers.programs import GRAMMARS  # what asks about a reader is where it reads

    program = words[0]
    if program in _ONLY_EXACTLY or program in GRAMMARS or not _PROGRAM.fullmatch(program):
        return []
    both = " ".join(filter(None, words[:2]))
    size = max(1 + _SUBCOMMANDS.get(both, _SUBCOMMANDS.get(program, 0)), command.least)
    kind = [word or "" for word in words[:size]]
    plain = all(_WORD.fullmatch(word) or word == "-m" for word in kind[1:])
    return kind if len(kind) == size and plain and " ".join(kind[:2]) not in _NEVER else []


def _is_of_the_project(command: str) -> bool:
    """Whether a command, or the words of its kind, name a program of the project or what such a file says."""
    words = command.split(" ")
    return "/" in words[0] or words[0] in _PROJECT_PROGRAMS or any(word.endswith(_SCRIPTS) for word in words[1:3])


# --- files and addresses ---


def _edit_kinds(subject: ApprovalSubject, places: Sequence[str]) -> list[ApprovalKind]:
    exact = _files_kind("edit", subject, "edits of")
    root = next((place for place in places if all(is_inside(path, place) for path in subject.paths)), "")
    if not root or subject.concerns or not subject.paths:
        return [exact]
    folder = os.path.commonpath([os.path.dirname(path) for path in subject.paths])  # noqa: PTH120 - pure
    below = [] if folder == root else [_folder_kind("edit", folder, f"edits below {_shown(folder, root)}/")]
    everywhere = "the working directory" if root == places[0] else root
    return [*below, _folder_kind("edit", root, f"edits below {everywhere}"), exact]


def _read_kinds(subject: ApprovalSubject) -> list[ApprovalKind]:
    exact = _files_kind("read", subject, "reading")
    folder = subject.folder
    if subject.concerns or not folder or len([part for part in folder.split("/") if part]) < _WIDE_PARTS:
        return [exact]
    return [_folder_kind("read", folder, f"reading below {folder}"), exact]


def _files_kind(tool: str, subject: ApprovalSubject, verb: str) -> ApprovalKind:
    rules = tuple(Rule(tool=tool, pattern=exact_path(path)).text for path in subject.paths)
    return ApprovalKind(rules=rules, covers=f"{verb} {subject.summary if len(rules) == 1 else 'these files'}")


def _folder_kind(tool: str, folder: str, covers: str) -> ApprovalKind:
    pattern = f"{'' if folder == '/' else exact_path(folder)}/**"
    return ApprovalKind(rules=(Rule(tool=tool, pattern=pattern).text,), covers=covers)


def _shown(folder: str, root: str) -> str:
    return folder[len(root.rstrip("/")) + 1 :]


def _host_kinds(subject: ApprovalSubject) -> list[ApprovalKind]:
    origin = subject.pattern
    host = origin.partition("://")[2]
    rule = Rule(tool=tool_group(subject.tool), pattern=origin.lower() if subject.concerns else f"domain:{host.lower()}")
    return [ApprovalKind(rules=(rule.text,), covers=f"requests to {origin if subject.concerns else host}")]


def _server_kinds(subject: ApprovalSubject) -> list[ApprovalKind]:
    server = server_rule(subject.tool)
    return [
        ApprovalKind(rules=(Rule(tool=subject.tool).text,), covers=subject.tool),
        ApprovalKind(rules=(Rule(tool=server).text,), covers=f"all tools of the MCP server, {server}"),
    ]
