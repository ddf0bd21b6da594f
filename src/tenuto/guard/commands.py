"""Which commands need nobody's leave, told from their text alone (R-083, R-084, first form).

Only *simple* commands are ever allowed: one program, plain words. Whatever the shell would interpret makes a command
not simple, also inside quotes, and then a user decides.
"""

from __future__ import annotations

import os.path
import re

_INTERPRETED = re.compile(r"[;&|$`<>(){}\[\]*?!~#\\\x00-\x1f\x7f]")
_PROGRAM = re.compile(r"[a-z][a-z0-9_-]*$")
_READERS = frozenset(
    (
        "pwd",
        "ls",
        "cat",
        "head",
        "tail",
        "wc",
        "stat",
        "du",
        "df",
        "id",
        "whoami",
        "uname",
        "which",
        "basename",
        "dirname",
        "realpath",
        "readlink",
        "echo",
        "true",
        "false",
        "diff",
        "cmp",
        "md5sum",
        "sha1sum",
        "sha256sum",
        "nl",
        "cut",
        "grep",
        "egrep",
        "fgrep",
        "rg",
        "find",
        "git",
    )
)
_FORBIDDEN: dict[str, tuple[str, ...]] = {
    "find": ("-L", "-H", "-follow", "-exec", "-ok", "-delete", "-fprint", "-fls", "-files0-from"),
    "rg": ("-L", "--follow", "--pre", "--hostname-bin", "-z", "--search-zip", "-f", "--file", "--ignore-file"),
    "grep": ("-R", "--dereference-recursive", "-f", "--file"),
    "egrep": ("-R", "--dereference-recursive", "-f", "--file"),
    "fgrep": ("-R", "--dereference-recursive", "-f", "--file"),
    "tail": ("-f", "-F", "--follow", "--retry", "--pid"),
    "diff": ("-r", "--recursive"),
    "wc": ("--files0-from",),
    "du": ("--files0-from", "--exclude-from", "-X"),
    "git": (
        "--output",
        "--ext-diff",
        "--textconv",
        "--show-signature",
        "--exec",
        "--no-index",
        "--filters",
        "-O",
        "--contents",
    ),
}
"""Beginnings of options that make a reader write, run something, wait for ever, follow links or read lists of files."""
_GIT_READERS = frozenset(
    (
        "status",
        "log",
        "diff",
        "show",
        "rev-parse",
        "ls-files",
        "ls-tree",
        "blame",
        "describe",
        "shortlog",
        "rev-list",
        "cat-file",
    )
)
_GIT_LISTERS: dict[str, frozenset[str]] = {
    "branch": frozenset({"-a", "-r", "-v", "-vv", "--all", "--list", "--show-current"}),
    "remote": frozenset({"-v", "--verbose"}),
    "tag": frozenset({"-l", "--list"}),
    "stash": frozenset({"list"}),
    "worktree": frozenset({"list"}),
}
_WRITERS = frozenset(
    (
        "rm",
        "rmdir",
        "unlink",
        "shred",
        "mv",
        "cp",
        "ln",
        "install",
        "tee",
        "touch",
        "mkdir",
        "chmod",
        "chown",
        "chgrp",
        "truncate",
        "dd",
        "rsync",
    )
)
_ONLY_LAST_IS_WRITTEN = frozenset({"cp", "ln", "install", "rsync"})
_PREFIXES = frozenset({"sudo", "doas", "env", "command", "exec", "nohup", "time", "nice", "then", "do", "else", "{"})
_SEPARATORS = frozenset({";", "&", "&&", "|", "||", "|&", "(", ")", "\n"})
_OUTPUT_REDIRECTIONS = frozenset({">", ">>", ">|", "&>", "&>>", ">&"})
_SCRATCH = ("/tmp", "/var/tmp", "/private/tmp", "/dev")


def simple_words(command: str) -> list[str] | None:
    """Return the words of a simple command, `None` for anything that the shell would interpret."""
    if _INTERPRETED.search(command):
        return None
    import shlex

    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return words if words and _PROGRAM.match(words[0]) else None


_ONE_PROGRAM = re.compile(r"""(?:'[^'\x00-\x1f\x7f]*'|"[^"$`\\\x00-\x1f\x7f]*"|[^'";&|$`<>()\\\x00-\x1f\x7f])*""")
"""Words, with quotes in which the shell interprets nothing; outside of them nothing that runs or writes more."""


def fits(pattern: str, command: str) -> bool:
    """Whether a rule of the command line covers a command: the same words, or with `*` last, words that begin so.

    A command that runs another one, or writes where its words do not say, fits `*` alone.
    """
    if pattern == "*":
        return True
    if not _ONE_PROGRAM.fullmatch(command):
        return False
    import shlex

    try:
        wanted, words = shlex.split(pattern), shlex.split(command)
    except ValueError:
        return False
    if wanted[-1:] == ["*"]:
        return words[: len(wanted) - 1] == wanted[:-1]
    return words == wanted


def path_words(words: list[str]) -> list[str]:
    """Return the words of a simple command that can name files: all that are no options."""
    return [word for word in words[1:] if word and not word.startswith("-")]


def is_read_only(command: str) -> bool:
    """Whether a command is simple and known to only read. What it reads is judged by the paths in its subject."""
    words = simple_words(command)
    if words is None or words[0] not in _READERS:
        return False
    program, options = words[0], [word for word in words[1:] if word.startswith("-")]
    # A path inside an option (-f/etc/x, --file=../x) is not among the subject's paths.
    if any("/" in option or ".." in option for option in options):
        return False
    if any(_is_forbidden(program, option) for option in options):
        return False
    return program != "git" or _is_git_reader(words[1:])


def _is_forbidden(program: str, option: str) -> bool:
    for forbidden in _FORBIDDEN.get(program, ()):
        if option.startswith(forbidden):
            return True
        # getopt takes any unambiguous beginning of a long option
        name = option.partition("=")[0]
        if forbidden.startswith("--") and len(name) > 3 and forbidden.startswith(name):
            return True
        # single-letter options can be written together: -rf is -r -f
        clustered = len(forbidden) == 2 and program != "find" and re.match(r"-[A-Za-z]+", option)
        if clustered and forbidden[1] in clustered[0]:
            return True
    return False


def _is_git_reader(words: list[str]) -> bool:
    if not words:
        return False
    if words[0] in _GIT_LISTERS:
        return all(word in _GIT_LISTERS[words[0]] for word in words[1:]) and (
            words[0] not in {"stash", "worktree"} or words[1:] == ["list"]
        )
    return words[0] in _GIT_READERS


def outside_writes(command: str, root: str) -> list[str]:
    """Return the places outside `root` that a command plainly writes to (mode auto).

    Told from the words alone, so it stops accidents and not someone who hides: it is no sandbox.
    """
    places: list[str] = []
    for words in _parts(command):
        places += [word for word in _written_by(words) if _is_outside(word, root)]
    return list(dict.fromkeys(places))


def _parts(command: str) -> list[list[str]]:
    """Split a command line into its simple commands; what cannot be read as words is taken line by line."""
    import shlex

    parts: list[list[str]] = [[]]
    for line in command.replace("\\\n", " ").split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=";&|<>()")
        lexer.whitespace_split = True
        lexer.commenters = "#"
        try:
            words = list(lexer)
        except ValueError:
            words = line.split()
        for word in words:
            if word in _SEPARATORS:
                parts.append([])
            else:
                parts[-1].append(word)
        parts.append([])
    return [part for part in parts if part]


def _written_by(words: list[str]) -> list[str]:
    written: list[str] = []
    plain: list[str] = []
    index = 0
    while index < len(words):
        if words[index] in _OUTPUT_REDIRECTIONS and index + 1 < len(words):
            written.append(words[index + 1])
            index += 1
        else:
            plain.append(words[index])
        index += 1
    while plain and (plain[0] in _PREFIXES or re.match(r"[A-Za-z_]\w*=", plain[0])):
        plain.pop(0)
    program = os.path.basename(plain[0]) if plain else ""  # noqa: PTH119 - a word, not a path on this machine
    if program not in _WRITERS:
        return written
    operands = [word for word in plain[1:] if not word.startswith("-")]
    if program == "dd":
        return written + [word[3:] for word in operands if word.startswith("of=")]
    return written + (operands[-1:] if program in _ONLY_LAST_IS_WRITTEN else operands)


def _is_outside(word: str, root: str) -> bool:
    if word.startswith(("~", "$HOME", "${HOME}")):
        return True
    if word.startswith("&") or word.isdigit():  # 2>&1
        return False
    path = os.path.normpath(os.path.join(root, word))  # noqa: PTH118 - pure
    inside = [root, *_SCRATCH]
    return not any(path == place or path.startswith(place.rstrip("/") + "/") for place in inside)
