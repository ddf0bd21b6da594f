"""What the offline model understands: a text of a user becomes a list of wishes. Pure; no tool is known here.

A wish is data; `offline_rules.py` carries it out. Names and texts may be quoted with backticks or any usual quotes,
which is needed where they contain spaces.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from tenuto.model.offline_wishes import (
    AddTodo,
    Create,
    Explain,
    FindFiles,
    FinishTodo,
    Greet,
    Help,
    Look,
    Read,
    Replace,
    Run,
    RunTests,
    Search,
    ShowTodo,
    Thanks,
    Unknown,
    Wish,
)

_QUOTED = r"`(?:[^`]+)`|\"(?:[^\"]+)\"|'(?:[^']+)'|“(?:[^”]+)”|‘(?:[^’]+)’|«(?:[^»]+)»"
_THING = rf"(?:{_QUOTED}|\S+)"
_PATH = _THING
_POLITE = re.compile(
    r"^(?:(?:please|pls|kindly|now|ok(?:ay)?|so|and|then|also|hey|well|just|tenuto)\b[,:]?\s+"
    r"|(?:can|could|would|will)\s+you\s+|i\s+(?:want|need|would\s+like)\s+(?:you\s+)?to\s+|let(?:'s| us)\s+"
    r"|(?:go|try)\s+(?:ahead\s+)?(?:and|to)\s+)+",
    re.IGNORECASE,
)
_RANGE = r"(?<=.)(?:#L|:)(\d+)(?:-L?(\d+))?$"
"""Lines behind a path, as they are written behind an `@`."""
_THEN = re.compile(r"(?:\s*[,;.]\s+|\s+)(?:and\s+)?(?:then|after that|afterwards)[,:]?\s+", re.IGNORECASE)
_LONG = 2_000
"""Characters from which a text can only be one that carries its own block: a file to write, a command to run."""
_FENCE = re.compile(r"^\s*```[^\n]*\n(.*?)\n?```\s*$", re.DOTALL)
_AND = re.compile(rf"({_QUOTED})|\s*,\s*(?:and\s+)?|\s+and\s+", re.IGNORECASE)
_PROGRAMS = (
    r"git|pwd|whoami|uname|wc|stat|du|df|python3?|pip3?|pytest|uv|ruff|mypy|npm|pnpm|yarn|npx|node|cargo|docker|curl"
    r"|sed|awk|echo|mkdir|cp|mv|chmod|sh|bash|go(?= (?:build|test|run|vet|fmt|mod)\b)|make(?=$| [\w-]+$)"
)
_ENGLISH = re.compile(r"\b(?:the|a|an|my|your|this|that|it|us|me|sure|please)\b", re.IGNORECASE)


def unquote(text: str) -> str:
    """Return the text without the quotes around it, or without an `@` and end punctuation that are not its own."""
    text = text.strip()
    if re.fullmatch(_QUOTED, text):
        return text[1:-1]
    if len(text) > 1 and text[-1] in ",;:!?":
        text = text[:-1]
    if len(text) > 1 and text[-1] == "." and not text.endswith(".."):
        text = text[:-1]
    return text.removeprefix("@") or text


def parse(text: str) -> list[Wish]:
    """Return the wishes in a user's text, in order; never empty. `then` divides two wishes."""
    whole = _parse_one(text)
    if not isinstance(whole, Unknown) and not _THEN.search(text):
        return [whole]
    parts = [part for part in _split_outside_quotes(text) if part.strip()]
    wishes = [_parse_one(part) for part in parts]
    if len(wishes) > 1 and not any(isinstance(wish, Unknown) for wish in wishes):
        return wishes
    return _parse_many_reads(text) or [whole]


def _split_outside_quotes(text: str) -> list[str]:
    """Split at `then`, but not inside quotes or a text block."""
    spans = [match.span() for match in re.finditer(rf"```.*?```|{_QUOTED}", text, re.DOTALL)]
    parts: list[str] = []
    start = 0
    for match in _THEN.finditer(text):
        if not any(low <= match.start() < high for low, high in spans):
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


def _parse_many_reads(text: str) -> list[Wish]:
    """Understand `read A and B`."""
    match = re.match(rf"(?:{_READ_WORDS})\s+(?:me\s+)?(?:the\s+)?(?:files?\s+)?(.+)$", _plain(text), re.IGNORECASE)
    if match is None:
        return []
    # `re.split` with a group hands back the quoted names between the pieces.
    names = [piece for piece in _AND.split(match[1]) if piece and piece.strip()]
    if len(names) < 2 or any(re.search(r"\s", name.strip()) and not re.fullmatch(_QUOTED, name) for name in names):
        return []
    return [Read(unquote(name)) for name in names]


def _plain(text: str) -> str:
    return _POLITE.sub("", text.strip())


def _parse_one(text: str) -> Wish:
    plain = _plain(text)
    for pattern, make in _RULES:
        if len(plain) > _LONG and make not in (_create, _command):
            continue
        # Compiled when first tried (and kept by `re`): all of them together would cost 25 ms at the first prompt.
        match = re.fullmatch(pattern, plain, re.IGNORECASE | re.DOTALL)
        if match is not None and (wish := make(match)) is not None:
            return wish
    return Unknown(text.strip())


# --- what the rules make of a match; `None` lets the next rule try ---


def _named(match: re.Match[str], name: str) -> str:
    value = match.groupdict().get(name)
    return unquote(value) if value else ""


def _command(match: re.Match[str]) -> Wish | None:
    command = (match["command"] or match["command2"]).strip()
    fence = _FENCE.match(command)
    command = fence[1] if fence else command
    if re.fullmatch(_QUOTED, command):
        command = command[1:-1]
    return Run(command) if command else None


def _bare_command(match: re.Match[str]) -> Wish | None:
    """A line that begins with a program's name is a command, unless it reads like English."""
    command = match["command"].strip()
    quoted = re.search(r"[`'\"]", command)
    return None if _ENGLISH.search(command) and not quoted else Run(command)


def _read(match: re.Match[str]) -> Wish | None:
    path = _named(match, "path")
    if path in ("around", "here", ".") or path.endswith("/"):
        return Look("" if path in ("around", "here", ".") else path)
    first, last = int(match["first"] or 0), int(match["last"] or 0)
    if not first and (lines := re.search(_RANGE, path)) is not None:
        path, first = path[: lines.start()], int(lines[1])
        last = int(lines[2] or first)
    if last and last < first:
        first, last = last, first
    return Read(path, first, last)


def _show(match: re.Match[str]) -> Wish | None:
    """`show X` is for a file only when X looks like one."""
    path = _named(match, "path")
    looks_like_file = (
        re.search(r"[./\\]", path) or re.fullmatch(r"[A-Z][A-Za-z]*", path) or path != match["path"].strip()
    )
    return _read(match) if looks_like_file else None


def _find(match: re.Match[str]) -> Wish | None:
    """`find X`: by name when X looks like a name, else by content."""
    pattern, path = _named(match, "pattern"), _named(match, "path")
    bare = match["pattern"].strip() == pattern
    if bare and (re.search(r"[*?]", pattern) or re.fullmatch(r"[\w./-]+\.\w{1,5}", pattern)):
        return FindFiles(pattern, path)
    return Search(pattern, path)


def _find_named(match: re.Match[str]) -> Wish:
    pattern = _named(match, "pattern")
    if re.fullmatch(r"\.\w+", pattern):
        pattern = f"*{pattern}"
    return FindFiles(pattern, _named(match, "path"))


def _search(match: re.Match[str]) -> Wish | None:
    raw = (match["pattern"] or match.groupdict().get("pattern2") or "").strip()
    if len(raw) > 2 and raw.startswith("/") and raw.endswith("/"):
        return Search(raw[1:-1], _named(match, "path"), regular=True)
    return Search(unquote(raw), _named(match, "path"), regular=bool(match.groupdict().get("regular")))


def _replace(match: re.Match[str]) -> Wish | None:
    old, new = _exact(match["old"]), _exact(match["new"])
    everywhere = bool(match["all"] or match["everywhere"])
    return Replace(old, new, _named(match, "path"), everywhere) if old != new else None


def _exact(text: str) -> str:
    """Return a text to be replaced: only quotes go, punctuation is the user's own."""
    fence = _FENCE.match(text)
    if fence:
        return fence[1]
    stripped = text.strip()
    return stripped[1:-1] if re.fullmatch(_QUOTED, stripped) else stripped


def _create(match: re.Match[str]) -> Wish | None:
    text = _exact(match["text"] or "")
    return Create(_named(match, "path"), text if not text or text.endswith("\n") else f"{text}\n")


def _add_todo(match: re.Match[str]) -> Wish | None:
    raw = _exact(match["texts"])
    divider = r"\n+|;" if re.search(r"[\n;]", raw) else ","
    texts = [re.sub(r"^\s*(?:[-*]|\d+[.)])\s+", "", piece).strip() for piece in re.split(divider, raw)]
    kept = tuple(text for text in texts if text)
    return AddTodo(kept) if kept else None


def _finish_todo(match: re.Match[str]) -> Wish | None:
    which = match["which"].strip()
    if re.fullmatch(r"(?:all|everything|the whole (?:list|todo list))", which, re.IGNORECASE):
        return FinishTodo((0,))
    numbers = re.fullmatch(r"#?\d+(?:(?:\s*,\s*|\s+and\s+)#?\d+)*", which)
    if numbers:
        return FinishTodo(tuple(int(number) for number in re.findall(r"\d+", which)))
    return FinishTodo((unquote(which),))


_READ_WORDS = r"read|open|cat|view|print|display|show|summari[sz]e|look at|what(?: is|'s) in"
_IN = rf"(?:\s+(?:in|inside|under|within|of)\s+(?:the\s+)?(?:(?:file|folder|directory)\s+)?(?P<path>{_PATH}?)[?.!]*)?"
_LINES = r"(?:[,:]?\s+(?:from\s+)?lines?\s+(?P<first>\d+)(?:\s*(?:-|–|to|through|until)\s*(?P<last>\d+))?)?"
_FILE = rf"(?:me\s+)?(?:the\s+)?(?:contents?\s+of\s+)?(?:the\s+)?(?:file\s+)?(?P<path>{_PATH}){_LINES}[?.!]*"
_HERE = (
    r"(?:(?:in\s+)?(?:here|there)|(?:in\s+)?(?:this|the)\s+"
    r"(?:project|repo(?:sitory)?|folder|directory|code\s*base|code|working directory))"
)
_FILES = r"(?:all\s+)?(?:the\s+)?(?:files?|contents?|folders?|director(?:y|ies))"


_RULES: tuple[tuple[str, Callable[[re.Match[str]], Wish | None]], ...] = (
    (
        r"(?:hi|hello|hey|hallo|hola|ciao|bonjour|salut|servus|good (?:morning|day|evening)|你好|こんにちは)"
        r"(?:\s+(?:there|tenuto|again|all))?[\s!.,?]*",
        lambda _: Greet(),
    ),
    (
        r"(?:help|\?+)(?:\s+me)?[!.?]*|what (?:can|do) (?:you|i) (?:do|say|ask|understand).*|who are you\W*"
        r"|what are you\W*"
        r"|how (?:do|can) i (?:connect|use|set up|configure)\b.*(?:model|key|provider|ollama|claude|gpt).*",
        lambda _: Help(),
    ),
    (r"(?:thanks?|thank you|thx|great|nice|perfect|good job|well done|danke)\b.{0,30}", lambda _: Thanks()),
    (
        r"(?:why|what)\b.*\b(?:fail(?:s|ed|ing|ure)?|wrong|error|broke(?:n)?|crash(?:ed)?|problem)\b.*"
        r"|explain\b.*\b(?:fail\w*|error|output|problem|crash)\b.*|explain (?:that|it|this)\W*",
        lambda _: Explain(),
    ),
    (
        r"(?:run|execute|start)\s+(?:(?:the|my|our|its|unit|all)\s+)*(?:tests?|test ?suite)[!.?]*"
        r"|tests?[!.?]*|do the tests pass\W*",
        lambda _: RunTests(),
    ),
    (
        r"(?:run|execute|exec|shell|bash)(?:\s+the\s+(?:shell\s+)?command)?:?\s+(?P<command>.+)"
        r"|[$!]\s*(?P<command2>.+)",
        _command,
    ),
    (
        r"(?:replace|change|rename|substitute)\s+"
        r"(?P<all>(?:all|every|each)\s+(?:(?:occurrences?|instances?)\s+of\s+)?)?"
        rf"(?P<old>{_QUOTED}|```.*?```|.+?)\s+(?:by|with|to|into|for)\s+(?P<new>{_QUOTED}|```.*?```|.+?)"
        rf"(?P<everywhere>\s+everywhere)?\s+(?:in|inside)\s+(?:the\s+)?(?:file\s+)?(?P<path>{_PATH})[.!]*",
        _replace,
    ),
    (
        r"(?:create|make|write|add|save)\s+(?:a\s+|the\s+)?(?:new\s+)?(?:file\s+)?(?:called\s+|named\s+)?"
        rf"(?P<path>{_PATH}?)"
        r"(?::\s*\n|,?\s+(?:with|containing|that (?:says|contains)|saying)"
        r"(?:\s+the)?(?:\s+(?:text|contents?|line))?:?\s+)"
        r"(?P<text>.+)",
        _create,
    ),
    (
        rf"(?:write|save|put)\s+(?P<text>{_QUOTED}|```.*?```)\s+(?:to|into|in)\s+(?:the\s+)?(?:file\s+)?"
        rf"(?P<path>{_PATH})[.!]*",
        _create,
    ),
    (
        r"(?:create|make)\s+(?:an?\s+)?(?:new\s+)?(?:empty\s+)?file\s+(?:called\s+|named\s+)?"
        rf"(?P<path>{_PATH})(?P<text>)[.!]*",
        _create,
    ),
    (
        r"(?:show\s+(?:me\s+)?(?:the\s+|my\s+)?)?(?:todos?(?:\s+list)?|task list)[?.!]*"
        r"|what(?: is|'s) (?:on (?:the|my)|left on the) (?:todo|task)s?(?: list)?\W*"
        r"|what(?: is|'s) left(?: to do)?\W*",
        lambda _: ShowTodo(),
    ),
    (
        r"(?:todos?(?:\s+list)?|make (?:a|the) todo list|(?:add|new) todos?)\s*(?::|\bwith\b|\bof\b)?"
        r"\s+(?P<texts>.+)",
        _add_todo,
    ),
    (r"(?:add|put)\s+(?P<texts>.+?)\s+(?:to|on)\s+(?:the|my)\s+(?:todos?|task)(?:\s+list)?[.!]*", _add_todo),
    (
        r"(?:mark|check|tick)\s+(?:off\s+)?(?:todo\s+|item\s+|number\s+)?"
        r"(?P<which>.+?)\s*(?:off|(?:as\s+)?done|as\s+finished)[.!]*",
        _finish_todo,
    ),
    (
        r"(?:finish|done with|complete|tick off|check off)\s+(?:todo\s+|item\s+|number\s+)?(?P<which>#?\d+.*?)[.!]*",
        _finish_todo,
    ),
    (
        rf"look\s+around.*|(?:explore|describe|explain|summari[sz]e|survey|show(?:\s+me)?|tell me about)\s+{_HERE}\W*"
        rf"|(?:list|ls|dir|show(?:\s+me)?)(?:\s+{_FILES})?(?:\s+{_HERE})?\W*"
        rf"|what(?: is|'s| do we have| files (?:are|do we have))\s+(?:there\s+)?{_HERE}\W*|what files are there\W*"
        r"|what is this\W*|(?:give me )?an? overview.*|where am i\W*",
        lambda _: Look(),
    ),
    (
        rf"(?:list|ls|dir)\s+(?:{_FILES}\s+)?(?:(?:in|of|under)\s+)?(?:the\s+)?(?:(?:folder|directory)\s+)?"
        r"(?P<path>[\w./~-]+)/?(?:\s+(?:folder|directory))?[?.!]*",
        lambda match: Look(_named(match, "path")),
    ),
    (
        r"(?:find|list|show(?:\s+me)?|search for)\s+(?:all\s+)?(?:the\s+)?files?\s+"
        r"(?:that are\s+)?(?:named|called|matching|like|ending (?:in|with)|with (?:the )?extension)\s+"
        rf"(?P<pattern>{_THING}){_IN}\W*",
        _find_named,
    ),
    (
        r"(?:find|list|show(?:\s+me)?)\s+(?:all\s+)?(?:the\s+)?(?P<pattern>\S*[*]\S*|\.\w+)(?:\s+files)?"
        rf"{_IN}\W*",
        _find_named,
    ),
    (
        rf"where\s+(?:is|are|do we (?:use|call|define))\s+(?P<pattern>{_THING})"
        rf"(?:\s+(?:defined|used|called|set|declared|from))?{_IN}\W*"
        rf"|(?:who|what)\s+(?:calls|uses|imports)\s+(?P<pattern2>{_THING})\W*",
        _search,
    ),
    (
        r"(?:search|grep|look)\s+(?:for\s+)?"
        r"(?P<regular>(?:the\s+)?(?:regex|regular expression|pattern)\s+)?(?:the\s+(?:word|text)\s+)?"
        rf"(?P<pattern>{_QUOTED}){_IN}[?.!]*",
        _search,
    ),
    (
        r"(?:search(?:\s+for)?|grep(?:\s+for)?|look\s+for)\s+"
        r"(?P<regular>(?:the\s+)?(?:regex|regular expression|pattern)\s+)?"
        rf"(?P<pattern>.+?){_IN}[?!]*",
        _search,
    ),
    (rf"find\s+(?:all\s+)?(?:uses|usages|occurrences|mentions)\s+of\s+(?P<pattern>{_THING}){_IN}\W*", _search),
    (rf"find\s+(?:the\s+file\s+)?(?P<pattern>{_THING}){_IN}[?!]*", _find),
    (rf"(?:read|open|cat|view|print|look at|look into)\s+{_FILE}", _read),
    (rf"(?:show|display|summari[sz]e|explain|what(?: is|'s) in)\s+{_FILE}", _show),
    (rf"(?P<command>(?:\./\S+|(?:{_PROGRAMS}))(?:\s+[^\n]+)?)", _bare_command),
)
