"""Whether a line only reads: every command by its program's grammar, every operand by where it leads from where it is.

A line is followed as bash would run it. What is known of it are the directories in which it can be by then, and the
values that its own variables can have; both only grow, so that a loop is gone through until nothing new comes.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path

import msgspec

from tenuto.guard.git import reading_concern
from tenuto.guard.readers.found import (
    Names,
    check_names,
    find_names,
    only_passes_on,
    printed_names,
    read_find,
    read_handed,
    read_xargs,
)
from tenuto.guard.readers.git import read_git
from tenuto.guard.readers.options import Argument, read_options, sort_operands
from tenuto.guard.readers.places import (
    Asks,
    Place,
    check_directory,
    check_path,
    check_shell,
    enter_directory,
    find_program,
)
from tenuto.guard.readers.programs import (
    BUILTINS,
    GRAMMARS,
    asks_for_version,
    check_sleep,
    is_own_name,
    read_builtin,
    read_condition,
)
from tenuto.guard.readers.words import NUMBERS, Directories, Words, known_directories
from tenuto.guard.shell.forms import ends_by_itself, not_split, plain_pipe
from tenuto.guard.shell.parse import Line, read_line, redirections_of
from tenuto.guard.shell.syntax import (
    AndOr,
    Assignment,
    Case,
    For,
    Group,
    If,
    Node,
    Pipeline,
    ProcessSubstitution,
    Redirection,
    Sequence,
    Simple,
    Substitution,
    Variable,
    While,
    Word,
)

_MAX_PASSES = 4
_MORE_THAN_BASH = re.compile(r"\$['\"]|&>|\|&|<\(|>\(|<<<|[{}~]|\[\[|;&|;;&")
"""What another shell reads differently."""
_SHELLS = frozenset({"bash", "sh"})


class Reading(msgspec.Struct):
    """What became of a line. `reason` says why it does not only read, to be read behind "it"; empty where it does.

    `reasons` has the same for each simple command, by its identity, those of `bash -c` texts too; `inner` are these
    texts, by the identity of their command. `others` are reasons that belong to no single command: loops, redirections.
    """

    reason: str
    reasons: dict[int, str]
    inner: dict[int, Line]
    others: tuple[str, ...] = ()

    def only_reads(self, command: Simple) -> bool:
        """Whether one command of the line only reads, whatever the others do."""
        return self.reasons.get(id(command), "-") == ""


def read_inner(command: Simple) -> Line | None:
    """Return the line that a command like `bash -c 'ls; pwd'` runs, `None` for other commands."""
    values = [word.value for word in command.words]
    if len(values) != 3 or values[0] not in _SHELLS or values[1] != "-c" or values[2] is None:
        return None
    return read_line(values[2])


def judge_line(line: Line, place: Place) -> Reading:
    """Say of a line, and of each of its commands, whether it only reads what may be read unasked."""
    follower = _Follower(place)
    if line.problem:
        return Reading(f"cannot be understood: {line.problem}", {}, {})
    try:
        check_shell(place)
        _check_dialect(line.source, is_bash=place.is_bash)
    except Asks as asks:
        return Reading(str(asks), {}, {})
    for _ in range(_MAX_PASSES):
        follower.words.has_news = False
        follower.follow(line.body, frozenset({place.cwd}))
        if not follower.words.has_news:
            break
    else:
        follower.note("", "has variables that change too often")
    reason = next((reason for reason in (*follower.reasons.values(), *follower.others) if reason), "")
    return Reading(reason, follower.reasons, follower.inner, tuple(dict.fromkeys(follower.others)))


def _check_dialect(source: str, *, is_bash: bool) -> None:
    if not is_bash and _MORE_THAN_BASH.search(source):
        raise Asks("is written for bash, which is not here")


class _Follower:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.reasons: dict[int, str] = {}
        self.inner: dict[int, Line] = {}
        self.others: list[str] = []
        self.words = Words(place)
        self.uncertain = 0
        """How many things are around a command that may keep it from running, or from the rest of the line."""
        self.before: dict[int, tuple[Simple, ...] | None] = {}
        """What stands in front of a command in its pipe, by the identity of it; `None` where that is not plain."""
        self.depth = 0

    def note(self, key: Simple | str, reason: str) -> None:
        """Keep the first reason."""
        if isinstance(key, str):
            self.others.append(reason)
        elif not self.reasons.get(id(key)):
            self.reasons[id(key)] = reason

    def follow(self, node: Node, at: Directories) -> Directories:
        """Judge what a node does when it begins in these directories; return where the shell can be after it."""
        match node:
            case Simple():
                return self._simple(node, at)
            case Pipeline():
                for place, item in enumerate(node.items):
                    self.before[id(item)] = plain_pipe(node, place)
                    at = _either(at, self._perhaps(item, at))
                return at
            case AndOr():
                after = reached = self.follow(node.first, at)
                for item in node.rest:
                    reached = self._perhaps(item, reached)
                    after = reached = _either(after, reached)
                return after
            case Sequence():
                for index, item in enumerate(node.items):
                    in_background = index in node.background
                    after = self._perhaps(item, at) if in_background else self.follow(item, at)
                    at = _either(at, after) if in_background else after
                return at
            case Group() | If() | While() | For() | Case():
                self._compound_redirections(node, at)
                return self._compound(node, at)

    def _perhaps(self, node: Node, at: Directories) -> Directories:
        """Follow what may not run, or runs in a shell of its own, so that its variables may not be set afterwards."""
        self.uncertain += 1
        try:
            return self.follow(node, at)
        finally:
            self.uncertain -= 1

    def _compound(self, node: Group | If | While | For | Case, at: Directories) -> Directories:
        match node:
            case Group():
                if node.is_subshell:
                    self._perhaps(node.body, at)
                    return at
                return self.follow(node.body, at)
            case If():
                for condition, body in node.branches:
                    if condition is not None:
                        at = _either(at, self._perhaps(condition, at))
                    at = _either(at, self._perhaps(body, at))
                return at
            case While():
                if node.is_negated or not ends_by_itself(node.condition):
                    self.note("", "may go on for ever")
                return self._loop(at, node.condition, node.body)
            case For():
                self._assign_loop(node, at)
                return self._loop(at, node.body)
            case Case():
                self._case_word(node.word, at)
                for branch in node.branches:
                    at = _either(at, self._perhaps(branch.body, at))
                return at

    def _loop(self, at: Directories, *bodies: Sequence) -> Directories:
        for _ in range(_MAX_PASSES):
            after = at
            for body in bodies:
                after = _either(after, self._perhaps(body, after))
            if after == at:
                return at
            at = after
        self.note("", "changes directories in a loop")
        return None

    def _assign_loop(self, node: For, at: Directories) -> None:
        try:
            if not is_own_name(node.name) or node.name in self.place.environ:
                raise Asks(f"sets {node.name}")
            if node.words is None:
                raise Asks("uses arguments that it does not have")
            for word in node.words:
                self._substitutions(word, at)
            for argument in self.words.arguments(node.words, at):
                self.words.remember(node.name, set(argument.texts) if argument.texts else None)
        except Asks as asks:
            self.words.remember(node.name, None)
            self.note("", str(asks))

    def _case_word(self, word: Word, at: Directories) -> None:
        self._substitutions(word, at)
        try:
            self.words.argument(word if word.has_tilde else not_split(word), at)
        except Asks as asks:
            self.note("", str(asks))

    def _compound_redirections(self, node: Group | If | While | For | Case, at: Directories) -> None:
        for redirection in redirections_of(node):
            try:
                self._redirection(redirection, at)
            except Asks as asks:
                self.note("", str(asks))

    def _simple(self, command: Simple, at: Directories) -> Directories:
        self.reasons.setdefault(id(command), "")
        try:
            for assignment in command.assignments:
                self._substitutions(assignment.value, at)
                self._assignment(assignment, command, at)
            for redirection in command.redirections:
                self._redirection(redirection, at)
            if not command.words:
                return at
            return self._program(command, at)
        except Asks as asks:
            self.note(command, str(asks))
            for word in command.words:
                self._substitutions(word, at)
            changes_shell = command.words and command.words[0].value in (None, *_CHANGE_DIRECTORY)
            return None if changes_shell else at

    def _assignment(self, assignment: Assignment, command: Simple, at: Directories) -> None:
        name = assignment.name
        if command.words and name == "IFS" and command.words[0].value == "read" and assignment.value.is_text:
            return
        if command.words or not is_own_name(name) or name in self.place.environ or assignment.appends:
            raise Asks(f"sets {name}")
        if self.uncertain or name in self.words.unset:
            self.words.remember(name, {""})
        value = assignment.value
        if value.has_glob or value.has_braces or value.has_tilde:
            self.words.remember(name, None)
            return
        argument = self.words.argument(not_split(value), at)
        self.words.remember(name, set(argument.texts) if argument.texts else None)

    def _redirection(self, redirection: Redirection, at: Directories) -> None:
        self._substitutions(redirection.target, at)
        kind, target = redirection.kind, redirection.target
        if redirection.body is not None:
            self._substitutions(redirection.body, at)
            self.words.pieces(redirection.body, at)
            return
        if kind == "<<<":
            self.words.pieces(target, at)
            return
        text = target.value
        if kind in (">&", "<&"):
            if text not in ("0", "1", "2") or redirection.fd not in ("", "1", "2"):
                raise Asks("redirects to where it is not known")
        elif kind == "<":
            self._paths([self.words.argument(target, at)], at)
        elif text != "/dev/null":
            raise Asks(f"writes to {text or 'a file'}")

    def _program(self, command: Simple, at: Directories) -> Directories:
        for word in command.words:
            self._substitutions(word, at)
        if command.words[0].keyword == "[[":
            self._condition(command, at)
            return at
        name = command.words[0].value
        if name is None or not re.fullmatch(r"[a-z][a-z0-9_+-]*|\[|:", name):
            raise Asks("runs a program that is not named plainly" if name is None else f"runs {name}")
        if name == "cd":
            return self._change_directory(command, at)
        inner = read_inner(command)
        if inner is not None:
            self._inner(command, name, inner, at)
        elif name in BUILTINS:
            self._builtin(name, self.words.arguments(command.words[1:], at), at)
        else:
            self._program_file(command, name, at)
        return at

    def _builtin(self, name: str, arguments: list[Argument], at: Directories) -> None:
        self._paths(read_builtin(name, arguments), at)
        if name == "read":
            for argument in arguments:
                if argument.only != "-r":
                    self.words.remember(argument.only or "", None)

    def _program_file(self, command: Simple, name: str, at: Directories) -> None:
        arguments = self.words.arguments(command.words[1:], at)
        find_program(name, self.place)
        if asks_for_version(name, arguments):
            return
        for cwd in known_directories(at):
            if name == "xargs":
                self._xargs(command, arguments, cwd)
            else:
                self._paths(self._files(name, arguments, cwd), frozenset({cwd}), compares=_compares(name))

    def _condition(self, command: Simple, at: Directories) -> None:
        """In `[[ … ]]` words stay one, and patterns are no files."""
        self._paths(read_condition([self._operand(word, at) for word in command.words[1:-1]]), at)

    def _operand(self, word: Word, at: Directories) -> Argument:
        only = word.pieces[0] if len(word.pieces) == 1 else None
        if isinstance(only, Variable) and only.name in NUMBERS:
            return Argument(("0",))
        if word.keyword == "=~":
            return Argument(("=~",))
        return self.words.argument(word if word.has_tilde else not_split(word), at)

    def _xargs(self, command: Simple, arguments: list[Argument], cwd: str) -> None:
        if any(redirection.kind.startswith("<") for redirection in command.redirections):
            raise Asks("gives xargs names from a file")
        xargs = read_xargs(arguments)
        names, is_filtered = self._names(self.before.get(id(command)), cwd)
        if names.ends_in_nul != xargs.ends_in_nul or (is_filtered and names.ends_in_nul):
            raise Asks("gives xargs names that it takes apart in another way")
        self._hand_over(xargs.words, names, cwd, exactly=xargs.ends_in_nul)

    def _names(self, before: tuple[Simple, ...] | None, cwd: str) -> tuple[Names, bool]:
        """Return what the commands in front of one print, and whether some of it is left out on the way."""
        for place, simple in reversed(list(enumerate(before or ()))):
            name = simple.words[0].value or ""
            arguments = self.words.arguments(simple.words[1:], frozenset({cwd}))
            if place == 0 or not only_passes_on(name, arguments, cwd):
                return printed_names(name, arguments, cwd), before is not None and place < len(before) - 1
        raise Asks("gives xargs names that are not known")

    def _hand_over(self, words: list[Argument], names: Names, cwd: str, *, exactly: bool) -> None:
        find_program(words[0].only or "", self.place)
        self._paths(read_handed(words, cwd), frozenset({cwd}))
        check_names(names, cwd, self.place, exactly=exactly)

    def _find(self, arguments: list[Argument], cwd: str) -> list[Argument]:
        found = read_find(arguments)
        self._paths(found.starts, frozenset({cwd}))
        for sieve, words in found.commands:
            self._hand_over(words, find_names(found, (sieve,)), cwd, exactly=True)
        return found.files

    def _files(self, name: str, arguments: list[Argument], cwd: str) -> list[Argument]:
        """Return the files that a program opens, by its grammar. Raises `Asks`."""
        if name == "git":
            return self._git(arguments, cwd)
        if name == "find":
            return self._find(arguments, cwd)
        if name == "sleep":
            check_sleep(arguments)
            return []
        grammar = GRAMMARS.get(name)
        if grammar is None:
            raise Asks(f"runs {name}")
        found = read_options(grammar, arguments, cwd)
        sort_operands(grammar, found)
        return found.paths

    def _git(self, arguments: list[Argument], cwd: str) -> list[Argument]:
        if any(argument.may_vanish for argument in arguments):
            raise Asks("runs git with a word that may be empty")
        read = read_git(arguments, cwd)
        places = {cwd}
        for directory in read.directories:
            if not directory.texts or directory.is_many:
                raise Asks("works in a directory that is not known")
            places = {check_path(text, place, self.place) for place in places for text in directory.texts}
        for place in places:
            concern = reading_concern(Path(place), self.place.environ, looks_at_files=read.looks_at_files)
            if concern:
                raise Asks(f"runs git, and {concern}")
            if read.directories:
                self._paths(read.paths, frozenset({place}))
        return [] if read.directories else read.paths

    def _inner(self, command: Simple, name: str, inner: Line, at: Directories) -> None:
        find_program(name, self.place)
        self.inner[id(command)] = inner
        if inner.problem:
            raise Asks(f"cannot be understood: {inner.problem}")
        _check_dialect(inner.source, is_bash=self.place.is_bash and name == "bash")
        if self.depth > 4 or self.words.values:
            raise Asks("runs a shell in a shell")
        self.depth += 1
        self._perhaps(inner.body, at)
        self.depth -= 1

    def _change_directory(self, command: Simple, at: Directories) -> Directories:
        words = [word for word in command.words[1:] if word.value not in ("--", "-L")]
        if len(words) != 1 or (words[0].value or "x").startswith("-"):
            raise Asks("changes to a directory that is not named plainly")
        argument = self.words.argument(words[0], at)
        if not argument.texts or argument.is_many or not all(argument.texts):
            raise Asks("changes to a directory that is not known")
        return frozenset(
            enter_directory(text, cwd, self.place) for cwd in known_directories(at) for text in argument.texts
        )

    def _paths(self, arguments: list[Argument], at: Directories, *, compares: bool = False) -> None:
        """Raises `Asks` where a file may not be read unasked."""
        for argument in arguments:
            if argument.is_pipe:
                continue
            if not argument.texts:
                raise Asks("reads a file that is not known")
            for text in argument.texts:
                if text == "-":
                    continue
                for cwd in known_directories(at):
                    path = check_path(text, cwd, self.place)
                    if compares and os.path.isdir(path):  # noqa: PTH112
                        check_directory(path, self.place, deep=True)

    def _substitutions(self, word: Word, at: Directories) -> None:
        for piece in word.pieces:
            if isinstance(piece, Substitution | ProcessSubstitution):
                self._perhaps(piece.body, at)


_CHANGE_DIRECTORY = (
    *("cd", "pushd", "popd", "eval", "source", ".", "alias", "exec", "trap", "set", "shopt", "export", "declare"),
    *("typeset", "builtin", "command", "enable", "unset", "readonly", "local", "let", "mapfile", "readarray"),
)
"""After these, if they are not known to read, nobody knows where the shell is."""


def _compares(name: str) -> bool:
    grammar = GRAMMARS.get(name)
    return grammar is not None and grammar.compares


def _either(first: Directories, second: Directories) -> Directories:
    return None if first is None or second is None else first | second
