"""Rules: what the user allows, wants to be asked about, or forbids. One form for settings, options and answers.

A rule is an effect and a text: a tool alone, or a tool and a pattern. `bash(pytest *)` covers each command that begins
with these words, `bash(make test)` that command alone; `edit(src/**)` and `read(/etc/hosts)` cover files by their real
path; `fetch(domain:example.org)` covers a host; `mcp__server` covers all tools of an MCP server, `mcp__server__tool`
one of them; `tool(weather)` covers a tool of an extension, `tool` all of them. Deny wins over ask, ask over allow,
wherever they come from.
A call that leaves the sandbox is allowed only by a rule that says so: `bash(outside: npm publish *)`.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

from tenuto.guard.protected import below, protected_names
from tenuto.guard.subject import MCP_PREFIX, ApprovalSubject, SimpleCommand, is_inside
from tenuto.protocol.entry import ApprovalEntry
from tenuto.text.late import late

Effect = Literal["allow", "ask", "deny"]
Source = Literal["settings", "option", "session", "project", "turn"]
SOURCES: dict[Source, str] = {
    "settings": "your settings",
    "option": "the command line",
    "session": "this session",
    "project": "this project",
    "turn": "the command or skill of this turn",
}
OWN_TOOL = "tool"
"""What rules call the tools of extensions; the pattern is a tool's name."""
TOOLS = ("bash", "edit", "fetch", "jobs", "read", OWN_TOOL)
"""Tools that rules are about; one name for all that change files, and one for all that read them."""
_WORDS = {
    "write": "edit",
    "multiedit": "edit",
    "notebookedit": "edit",
    "apply_patch": "edit",
    "grep": "read",
    "glob": "read",
    "ls": "read",
    "webfetch": "fetch",
    "shell": "bash",
}
"""Other words for them: our own tools of the same kind, and those of other agents."""
_STARRED_END = late(r"\\+\*$")
_OUTSIDE = "outside:"
"""In front of a command: outside of the sandbox as well."""
_LOOKS_OUTSIDE = late(rf"\\*{_OUTSIDE}")
_DOMAIN = "domain:"
_JOINT = "__"
_OF_SERVER = late(rf"{MCP_PREFIX}(?:(?!{_JOINT})[A-Za-z0-9_-])+(?:{_JOINT}[A-Za-z0-9_-]+)?")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class RuleError(Exception):
    """A rule that cannot be read; the text says what is wrong."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule. `pattern` is written as in its text, empty for all that the tool does; `source` is where it stands."""

    tool: str
    pattern: str = ""
    effect: Effect = "allow"
    source: Source = "settings"

    @property
    def text(self) -> str:
        """The rule as it is written."""
        return f"{self.tool}({self.pattern})" if self.pattern else self.tool

    @property
    def is_outside(self) -> bool:
        """Whether it is about calls that leave the sandbox."""
        return self.tool in {"bash", "jobs"} and self.pattern.startswith(_OUTSIDE)

    @property
    def command(self) -> str:
        """The pattern of a rule for commands, without the word for outside of the sandbox; empty for every command."""
        return self.pattern.removeprefix(_OUTSIDE).strip() if self.is_outside else self.pattern

    @property
    def origin(self) -> str:
        """Text and source, for people."""
        return f"{self.text} ({SOURCES[self.source]})"


def describe_idle(rule: Rule) -> str:
    """Return a line for who adds a rule that allows nothing, empty for all others."""
    if rule.tool != "bash" or rule.effect != "allow":
        return ""
    from tenuto.guard.shell.rules import why_it_covers_nothing

    why = why_it_covers_nothing(rule.command)
    return f"this rule covers no command: {why}; name what runs, as bash(python -m pytest *)" if why else ""


def tool_group(tool: str) -> str:
    """Return the name under which rules speak of a tool: `edit` for all that change files."""
    if tool.startswith(MCP_PREFIX):
        return tool  # of two servers, or tools, the names may differ in case alone
    word = tool.casefold()
    return _WORDS.get(word, word)


def seen_from(text: str, root: str) -> str:
    """Return a rule's text with its path as it can be written in the directory `root`."""
    tool, bracket, pattern = text.partition("(")
    place = f"{exact_path(root).rstrip('/')}/"
    return f"{tool}({pattern.removeprefix(place)}" if bracket and tool in {"edit", "read"} else text


# --- reading and writing ---


def read_rule(text: str, effect: Effect = "allow", source: Source = "settings") -> Rule:
    """Return the rule that a text is. Raises `RuleError`. Pure: paths stay as they are written."""
    from tenuto.text.matching import did_you_mean

    word, bracket, rest = text.strip().partition("(")
    tool = tool_group(word.strip())
    if tool.startswith(MCP_PREFIX):
        return Rule(tool=_canonical_server(tool, bracket + rest, text), effect=effect, source=source)
    if tool not in TOOLS or (bracket and not rest.endswith(")")):
        hint = did_you_mean(tool, [*TOOLS, *_WORDS])
        tools = f"{', '.join(TOOLS)}, {MCP_PREFIX}server{hint}"
        raise RuleError(f"“{text}”: write it as tool or tool(pattern); the tools are {tools}")
    pattern = _canonical(tool, rest.removesuffix(")"), text)
    return Rule(tool=tool, pattern=pattern, effect=effect, source=source)


def _canonical(tool: str, pattern: str, text: str) -> str:
    bare = pattern.strip()
    if bare in {"", "*"} or (tool == "fetch" and bare == f"{_DOMAIN}*"):
        return ""
    if tool in {"bash", "jobs"}:
        if bare.startswith(_OUTSIDE):
            return f"{_OUTSIDE} {_canonical(tool, bare.removeprefix(_OUTSIDE), text)}".strip()
        if bare.endswith(":*"):  # as Claude Code writes it
            bare = f"{bare.removesuffix(':*')} *"
        if bare.endswith(" *") and split_words(bare) is None:
            raise RuleError(f"“{text}”: a quotation in it is not closed")
        return bare
    if tool == "fetch":
        return _canonical_host(bare, text)
    if tool == OWN_TOOL:
        return bare
    if "\0" in pattern:
        raise RuleError(f"“{text}”: a path has no NUL byte")
    return pattern


def _canonical_server(tool: str, behind: str, text: str) -> str:
    """Return the public name of a tool of an MCP server, or of all of a server's."""
    name = tool.removesuffix(f"{_JOINT}*")
    if behind.strip() not in {"", "()", "(*)"} or not _OF_SERVER.fullmatch(name):
        raise RuleError(f"“{text}”: write it as {MCP_PREFIX}server or {MCP_PREFIX}server__tool, by the names in /mcp")
    return name


def server_rule(tool: str) -> str:
    """Return the text of the rule for all tools of the server that a tool belongs to."""
    return MCP_PREFIX + tool.removeprefix(MCP_PREFIX).partition(_JOINT)[0]


def _canonical_host(pattern: str, text: str) -> str:
    if "://" in pattern:
        return pattern.rstrip("/").lower()
    host = pattern.removeprefix(_DOMAIN).strip().lower()
    if not host or re.search(r"[\s/()]", host):
        raise RuleError(f"“{text}”: write it as fetch(domain:example.org), or fetch(https://example.org)")
    return f"{_DOMAIN}{host}"


def exact_command(command: str, *, outside: bool = False) -> str:
    """Return the pattern that stands for this command line and no other; `outside`: outside of the sandbox as well."""
    text = command.strip()
    if _LOOKS_OUTSIDE.match(text):
        text = f"\\{text}"
    if text.endswith((" *", ":*")) or text == "*" or _STARRED_END.search(text):
        text = f"{text[:-1]}\\*"
    return f"{_OUTSIDE} {text}" if outside else text


def exact_path(path: str) -> str:
    """Return the pattern that stands for this path and no other."""
    return re.sub(r"([*?\\])", r"\\\1", path)


def rule_of(entry: ApprovalEntry) -> Rule:
    """Return the rule that an answer made. Raises `RuleError`.

    Answers of earlier versions have no form: the text of a command, a path or a folder, the origin of an address.
    """
    source: Source = "project" if entry.scope == "project" else "session"
    tool = tool_group(entry.tool)
    if entry.form == "rule":
        return read_rule(f"{entry.tool}({entry.pattern})" if entry.pattern else entry.tool, entry.effect, source)
    pattern = entry.pattern
    if tool in {"bash", "jobs"}:
        pattern = exact_command(pattern)
    elif tool.startswith(MCP_PREFIX):
        pattern = ""
    elif tool != "fetch":
        pattern = f"{exact_path(pattern[:-3])}/**" if pattern.endswith("/**") else exact_path(pattern)
    return Rule(tool=tool, pattern=pattern, effect=entry.effect, source=source)


def read_rules(texts: Mapping[Effect, Iterable[str]], source: Source) -> tuple[list[Rule], list[str]]:
    """Return the rules of a source, and a line on each that cannot be read."""
    rules: list[Rule] = []
    problems: list[str] = []
    for effect, each in texts.items():
        for text in each:
            try:
                rules.append(read_rule(text, effect, source))
            except RuleError as error:
                problems.append(f"The rule to {effect} {error}; it holds nowhere")
    return rules, problems


def standing_rules(given: Iterable[Rule], answers: Iterable[ApprovalEntry], workspace: Path) -> list[Rule]:
    """Return what holds in a workspace: given rules, and answers of a session or of its directory. Settled."""
    rules = list(given)
    for answer in answers:
        with contextlib.suppress(RuleError):  # of a later version: what it would allow is asked for
            rules.append(rule_of(answer))
    return list(settle(rules, workspace))


# --- paths ---


def settle(rules: Iterable[Rule], workspace: Path) -> Iterator[Rule]:
    """Yield the rules with their paths as real ones, seen from the workspace.

    An allow rule for what lies in the workspace never leads out of it by a link; a rule that asks or denies holds for
    both, what is written and what it leads to.
    """
    for rule in rules:
        if rule.tool not in {"edit", "read"} or not rule.pattern:
            yield rule
            continue
        try:
            written, real = _places(rule.pattern, workspace)
        except (OSError, ValueError, RuntimeError):  # a loop of links, no home: an allow rule covers nothing then
            if rule.effect != "allow":
                yield msgspec.structs.replace(rule, pattern="")
            continue
        root = str(workspace)
        escapes = is_inside(_literal(written), root) and not is_inside(_literal(real), root)
        if rule.effect != "allow":
            yield from (msgspec.structs.replace(rule, pattern=each) for each in dict.fromkeys((written, real)))
        else:
            yield msgspec.structs.replace(rule, pattern=written if escapes else real)


def _places(pattern: str, workspace: Path) -> tuple[str, str]:
    """Return a pattern with the absolute path that it begins with, and with the real one."""
    if pattern.endswith("/") and len(pattern) > 1:
        pattern += "**"
    if pattern.startswith("//"):  # as Claude Code writes an absolute path
        pattern = pattern[1:]
    parts = pattern.split("/")
    plain = next((place for place, part in enumerate(parts) if _is_magic(part)), len(parts))
    base = _unescaped("/".join(parts[:plain]) or ("/" if pattern.startswith("/") else "."))
    rest = "/".join(parts[plain:])
    written = os.path.normpath(workspace / Path(base).expanduser())
    return _joined(written, rest), _joined(os.path.realpath(written), rest)


def _joined(base: str, rest: str) -> str:
    base = exact_path(base)
    return f"{base.rstrip('/')}/{rest}" if rest else base


def _is_magic(part: str) -> bool:
    return bool(re.search(r"(?<!\\)(?:\\\\)*[*?]", part))


def _unescaped(text: str) -> str:
    return re.sub(r"\\([*?\\])", r"\1", text)


def _literal(pattern: str) -> str:
    """Return the path before the first part that stands for several."""
    parts = pattern.split("/")
    plain = next((place for place, part in enumerate(parts) if _is_magic(part)), len(parts))
    return _unescaped("/".join(parts[:plain])) or "/"


@lru_cache(maxsize=256)
def _path_regex(pattern: str, fold: bool) -> re.Pattern[str]:
    out: list[str] = []
    place = 0
    if pattern.endswith("/**"):  # a folder itself as well
        pattern, tail = pattern[:-3], "(?:/.*)?"
    else:
        tail = ""
    while place < len(pattern):
        char = pattern[place]
        if char == "\\" and pattern[place + 1 : place + 2] in {"*", "?", "\\"}:
            out.append(re.escape(pattern[place + 1]))
            place += 1
        elif pattern.startswith("**/", place):
            out.append("(?:[^/]+/)*")
            place += 2
        elif pattern.startswith("**", place):
            out.append(".*")
            place += 1
        else:
            out.append({"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char)))
        place += 1
    return re.compile(f"{''.join(out)}{tail}", re.DOTALL | (re.IGNORECASE if fold else 0))


# --- what a rule covers ---


def covering(rules: Sequence[Rule], subject: ApprovalSubject, root: str) -> tuple[Rule, ...]:
    """Return the allow rules by which a call may run, empty when it may not. Rules are settled ones.

    Of a line of several commands, and of several files, each is covered by a rule of its own; a command that only reads
    needs none.
    """
    if subject.kind == "mcp":
        return next(((rule,) for rule in rules if rule.effect == "allow" and _covers_server(rule, subject)), ())
    if subject.kind == "extension":
        return next(((rule,) for rule in rules if rule.effect == "allow" and _covers_own(rule, subject)), ())
    group = tool_group(subject.tool)
    own = [rule for rule in rules if rule.effect == "allow" and rule.tool == group]
    if subject.kind == "execute":
        return _covering_commands(own, subject)
    if subject.kind == "network":
        return next(((rule,) for rule in own if _covers_address(rule, subject)), ())
    found = [next((rule for rule in own if _covers(rule, path, subject, root)), None) for path in subject.paths]
    return tuple(dict.fromkeys(rule for rule in found if rule is not None)) if None not in found else ()


def _covering_commands(rules: Sequence[Rule], subject: ApprovalSubject) -> tuple[Rule, ...]:
    usable = [rule for rule in rules if rule.is_outside or not subject.leaves_sandbox]
    for rule in usable:
        if not rule.command or _is_exactly(rule.command, subject.detail):
            return (rule,)
    if not subject.commands or subject.writes:
        return ()
    needed = [each for each in subject.commands if not each.reads]
    found = [next((rule for rule in usable if _names(rule.command, each)), None) for each in needed]
    return tuple(dict.fromkeys(rule for rule in found if rule is not None)) if None not in found else ()


def _names(pattern: str, command: SimpleCommand) -> bool:
    """Whether a pattern covers one command of a line."""
    if pattern.endswith(" *"):
        from tenuto.guard.shell.rules import covers

        return covers((pattern,), (command,))
    return not command.barrier and bool(command.words) and split_words(_text_of(pattern)) == list(command.words)


def _text_of(pattern: str) -> str:
    """Return the command that a pattern without a star at its end stands for."""
    text = f"{pattern[:-2]}*" if _STARRED_END.search(pattern) else pattern
    return text[1:] if text.startswith("\\") and _LOOKS_OUTSIDE.match(text) else text


def _is_exactly(pattern: str, line: str) -> bool:
    return not pattern.endswith(" *") and _text_of(pattern) == line.strip()


def split_words(text: str) -> list[str] | None:
    """Return the words that a shell would see in plain text, `None` where a quotation is not closed."""
    import shlex

    try:
        return shlex.split(text)
    except ValueError:
        return None


def _covers(rule: Rule, path: str, subject: ApprovalSubject, root: str) -> bool:
    pattern = rule.pattern or f"{'' if root == '/' else exact_path(root)}/**"
    if not _path_regex(pattern, fold=False).fullmatch(path):
        return False
    if not subject.concerns or pattern == exact_path(path):
        return True
    literal = _literal(pattern)  # what the rule names itself was meant
    return not subject.hard_linked and literal != "/" and not protected_names(below(path, literal))


def _covers_address(rule: Rule, subject: ApprovalSubject) -> bool:
    if not rule.pattern:
        return not subject.concerns
    url = urlsplit(subject.pattern)
    if not rule.pattern.startswith(_DOMAIN):
        return rule.pattern == subject.pattern.lower()
    host = rule.pattern.removeprefix(_DOMAIN)
    if host == url.netloc.lower():
        return True
    usual = url.port in {None, _DEFAULT_PORTS.get(url.scheme)}
    return usual and not subject.concerns and _is_host(host, url.hostname or "")


def _covers_server(rule: Rule, subject: ApprovalSubject) -> bool:
    """Whether a rule is about this tool of a server, or about all that this server has."""
    return rule.tool in {subject.tool, server_rule(subject.tool)}


def _covers_own(rule: Rule, subject: ApprovalSubject) -> bool:
    """Whether a rule is about this tool of an extension, or about all of them."""
    return rule.tool == OWN_TOOL and rule.pattern in {"", subject.tool}


def _is_host(wanted: str, host: str) -> bool:
    return host == wanted or (wanted.startswith("*.") and host.endswith(wanted[1:]))


def touching(rules: Iterable[Rule], effect: Effect, subject: ApprovalSubject) -> Rule | None:
    """Return the first rule that asks about or denies a call: any part of what it does is enough. Settled rules."""
    return next((rule for rule in rules if rule.effect == effect and _touches(rule, subject)), None)


def _touches(rule: Rule, subject: ApprovalSubject) -> bool:
    if subject.kind == "mcp":
        return _covers_server(rule, subject)
    if subject.kind == "extension":
        return _covers_own(rule, subject)
    group = tool_group(subject.tool)
    if subject.kind == "execute":
        if rule.tool in {"read", "edit"} and rule.pattern:
            return (rule.tool == "read" or not subject.reads) and _touches_paths(rule, subject)
        return rule.tool == group and _touches_command(rule, subject)
    if rule.tool != group:
        return False
    if not rule.pattern:
        return True
    if subject.kind == "network":
        url = urlsplit(subject.pattern)
        host = rule.pattern.removeprefix(_DOMAIN)
        return rule.pattern == subject.pattern.lower() or host == url.netloc or _is_host(host, url.hostname or "")
    return _touches_paths(rule, subject)


def _touches_paths(rule: Rule, subject: ApprovalSubject) -> bool:
    regex = _path_regex(rule.pattern, fold=True)
    return any(regex.fullmatch(path) for path in subject.paths)


def _touches_command(rule: Rule, subject: ApprovalSubject) -> bool:
    if rule.is_outside and not subject.leaves_sandbox:
        return False
    pattern = rule.command
    if not pattern or _is_exactly(pattern, subject.detail):
        return True
    from tenuto.guard.shell.touched import every_command

    is_prefix = pattern.endswith(" *")
    wanted = split_words(pattern[:-2] if is_prefix else _text_of(pattern)) or []
    size = len(wanted)
    return any(
        words[:size] == wanted and (is_prefix or len(words) == size) for words in every_command(subject.detail) if size
    )
