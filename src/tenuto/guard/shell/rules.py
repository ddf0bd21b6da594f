"""Which commands of a line a rule like `pytest *` may cover, and whether it does."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable

from tenuto.guard.shell.syntax import Redirection, Simple
from tenuto.guard.subject import SimpleCommand

CHANGES_SHELL = frozenset(
    {
        *("cd", "pushd", "popd", "eval", "source", ".", "alias", "unalias", "exec", "trap", "set", "shopt", "export"),
        *("declare", "typeset", "builtin", "command", "enable", "unset", "readonly", "local", "let", "mapfile"),
        *("readarray", "read", "getopts", "hash", "umask", "ulimit", "fc", "history", "bind", "complete", "disown"),
    }
)
"""Builtins after which the rest of a line may mean something else."""
_RUN_OTHERS = frozenset(
    {
        *("sudo", "doas", "su", "runuser", "env", "xargs", "parallel", "timeout", "nohup", "nice", "ionice", "stdbuf"),
        *("setsid", "time", "watch", "chroot", "flock", "unshare", "nsenter", "strace", "ltrace", "gdb", "script"),
        *("ssh", "busybox", "taskset", "chrt", "systemd-run", "bwrap", "firejail", "caffeinate", "setarch", "linux32"),
        *("linux64", "unbuffer", "expect", "entr", "at", "batch", "crontab", "sg", "newgrp", "fakeroot", "prlimit"),
        "[[",  # sums in it run what stands in an index
    }
)
_INTERPRETERS = re.compile(
    r"(?:python|pypy|ruby|perl|php|lua|node|nodejs|deno|bun|bash|sh|dash|zsh|fish|ksh|csh|tcsh|ash|pwsh|osascript|tclsh|"
    r"Rscript|R|julia|ghci|[gmn]?awk|guile|racket|scala|groovy|irb|ipython)[0-9.]*"
)
_PYTHONS = re.compile(r"(?:python|pypy)[0-9.]*")
_PYTHON_FLAGS = frozenset({"-u", "-B", "-I", "-s", "-O", "-OO", "-q"})
_RUN_WHAT_THEY_NAME = {"npx": 2, "bunx": 2, "uvx": 2, "pnpx": 2}
_RUN_BY_SUBCOMMAND = {
    ("npm", "exec"): 3,
    ("pnpm", "dlx"): 3,
    ("pnpm", "exec"): 3,
    ("yarn", "dlx"): 3,
    ("uv", "run"): 3,
    ("pipx", "run"): 3,
    ("poetry", "run"): 3,
    ("pipenv", "run"): 3,
    ("hatch", "run"): 3,
    ("bundle", "exec"): 3,
    ("docker", "exec"): 4,
}
_BARRED_WORDS: dict[str, re.Pattern[str]] = {
    "find": re.compile(r"-(?:exec|execdir|ok|okdir|delete|fprint|fprintf|fprint0|fls|files0-from)\b.*"),
    "fd": re.compile(r"-[a-zA-Z]*[xX].*|--exec.*"),
    "rg": re.compile(r"--pre.*|--hostname-bin.*"),
    "tar": re.compile(
        r"--to-command.*|--checkpoint-action.*|-I.*|--use-compress-program.*|--rsh-command.*|-F.*|--info-script.*"
    ),
    "rsync": re.compile(r"-[a-zA-Z]*e.*|--rsh.*|--rsync-path.*"),
    "sed": re.compile(r".*"),
    "sort": re.compile(r"--compress-prog.*|-o.*|--output.*"),
    "make": re.compile(r"SHELL=.*|--eval.*|-E.*"),
    "man": re.compile(r"-[a-zA-Z]*[PH].*|--pager.*|--html.*"),
    "vim": re.compile(r".*"),
    "vi": re.compile(r".*"),
    "less": re.compile(r".*"),
    "ed": re.compile(r".*"),
}
_GIT_RUNS = re.compile(r"--exec.*|--upload-pack.*|--receive-pack.*|--ext-diff|-O.*|--open-.*")
_GIT_GROUPS = frozenset({"bisect", "submodule", "filter-branch", "difftool", "mergetool", "config", "worktree", "lfs"})
"""Commands of git with commands of their own, some of which run what they are given."""
_WRITING = frozenset({">", ">>", ">|", "<>", "&>", "&>>", ">&", "<&"})


def describe_command(command: Simple, *, reads: bool) -> SimpleCommand:
    """Return what rules have to know of a command."""
    words = tuple(word.value for word in command.words)
    prefix_barrier, least = _prefix_limits(words)
    return SimpleCommand(
        words=words, reads=reads, barrier=_barrier(command), prefix_barrier=prefix_barrier, least=least
    )


def covers(patterns: Iterable[str], commands: tuple[SimpleCommand, ...]) -> bool:
    """Whether rules cover a line: each of its commands only reads, or is one that a rule names.

    A pattern is a command word by word; with `*` as its last word, any words may follow. `*` alone covers every line.
    """
    rules = [_words(pattern) for pattern in patterns]
    if ["*"] in rules:
        return True
    return bool(commands) and all(
        command.reads or any(_covers(rule, command) for rule in rules if rule is not None) for command in commands
    )


def _words(pattern: str) -> list[str] | None:
    try:
        return shlex.split(pattern)
    except ValueError:
        return None


def _covers(rule: list[str], command: SimpleCommand) -> bool:
    if command.barrier or not command.words or not rule:
        return False
    if rule[-1] != "*":
        return list(command.words) == rule
    literal = rule[:-1]
    if command.prefix_barrier or len(literal) < command.least:
        return False
    return list(command.words[: len(literal)]) == literal


def why_it_covers_nothing(pattern: str) -> str:
    """Return why a pattern that ends with `*` can cover no command, empty where it may cover some."""
    words = _words(pattern) or []
    return _prefix_limits(tuple(words[:-1]))[0] if words[1:] and words[-1] == "*" else ""


def runs_others(program: str) -> bool:
    """Whether a program may run another one that stands among its arguments."""
    named = {name for name, _ in _RUN_BY_SUBCOMMAND}
    return program in _RUN_OTHERS or program in _RUN_WHAT_THEY_NAME or program in named or program in {"find", "fd"}


def writes_elsewhere(redirection: Redirection) -> bool:
    """Whether a redirection writes to more than the line's own output and `/dev/null`."""
    if redirection.kind not in _WRITING:
        return False
    text = redirection.target.value
    if redirection.kind in (">&", "<&"):
        return text is None or not re.fullmatch("[0-2]|-", text)
    return text != "/dev/null"


def _barrier(command: Simple) -> str:
    """Return why no rule on the words of a command may cover it."""
    if command.assignments:
        return "it sets variables"
    if any(writes_elsewhere(redirection) for redirection in command.redirections):
        return "its output goes to a file"
    if not command.words:
        return "it names no program"
    name = command.words[0].value
    if name is None:
        return "its program is named by an expansion or a pattern"
    if name in CHANGES_SHELL:
        return "it changes what the rest of the line means"
    return ""


def _prefix_limits(words: tuple[str | None, ...]) -> tuple[str, int]:
    """Return why no rule with `*` may cover these words, and how many of them such a rule has to spell out."""
    if not words or words[0] is None:
        return "", 1
    name = words[0].rpartition("/")[2]
    if name in _RUN_OTHERS:
        return f"{name} runs another command", 1
    barred = _BARRED_WORDS.get(name)
    if barred and any(word is None or barred.fullmatch(word) for word in words[1:]):
        return f"{name} runs or writes something by its arguments", 1
    if name == "git":
        return _git_limits(words)
    if _INTERPRETERS.fullmatch(name):
        return _interpreter_limits(name, words)
    if name in _RUN_WHAT_THEY_NAME:
        return _naming_limits(name, words, _RUN_WHAT_THEY_NAME[name])
    least = _RUN_BY_SUBCOMMAND.get((name, words[1] or "")) if len(words) > 1 else None
    return _naming_limits(name, words, least) if least else ("", 1)


def _git_limits(words: tuple[str | None, ...]) -> tuple[str, int]:
    """In front of git's command stand settings (`-c`), and some commands take programs."""
    command = words[1] if len(words) > 1 else ""
    is_exec = command == "rebase" and any((word or "").startswith("-x") for word in words)
    if command is None or command.startswith("-") or is_exec or any(_GIT_RUNS.fullmatch(word or "") for word in words):
        return "git runs something by its arguments", 2
    return "", 3 if command in _GIT_GROUPS else 1


def _naming_limits(name: str, words: tuple[str | None, ...], least: int) -> tuple[str, int]:
    """A rule has to spell out the program that is run, and no option may stand in front of it."""
    named = words[1:least]
    if len(words) < least or any(word is None or word.startswith("-") for word in named):
        return f"{name} runs another command", least
    inner, inner_least = _prefix_limits(words[least - 1 :])
    return inner, least - 1 + inner_least


def _interpreter_limits(name: str, words: tuple[str | None, ...]) -> tuple[str, int]:
    barrier = f"{name} runs code from its arguments or its input"
    is_python = bool(_PYTHONS.fullmatch(name))
    for place, word in enumerate(words[1:], 1):
        if word is None:
            return barrier, 1
        if is_python and word == "-m" and place + 1 < len(words) and words[place + 1] is not None:
            return "", place + 2
        if is_python and word in _PYTHON_FLAGS:
            continue
        if word.startswith("-") or name.endswith("awk"):
            return barrier, 1
        return "", place + 1
    return barrier, 1
