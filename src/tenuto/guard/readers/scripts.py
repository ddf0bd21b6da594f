"""Small languages inside of arguments: scripts of sed, awk and jq that only print. What is not plain is not known."""

from __future__ import annotations

import re

_BRACKET = r"\[\^?\]?(?:\[:[a-z]+:\]|[^\[\]\\\n{d}])*\]"
"""Characters in brackets; a class is the only bracket inside, so that all programs see the same end."""
_SED_TEXT = r"(?:[^\\\n\[{d}]|\\[^\n]|" + _BRACKET + ")*"
_SED_RE = _SED_TEXT.replace("{d}", "/")
_SED_ADDRESS = rf"(?:[0-9]+(?:~[0-9]+)?|\$|/{_SED_RE}/I?)"
_SED_REPLACEMENT = r"s{d}" + _SED_TEXT + r"{d}(?:[^\\\n{d}]|\\[^\n])*{d}[gpIi0-9]*"
_SED_SUBSTITUTION = "|".join(_SED_REPLACEMENT.replace("{d}", re.escape(mark)) for mark in "/|,#@:!")
_SED_COMMAND = rf"(?:{_SED_ADDRESS}(?:,(?:\+?{_SED_ADDRESS}|\+[0-9]+))?\s*!?\s*)?(?:[pdq=]|{_SED_SUBSTITUTION})"
_SED = re.compile(rf"\s*{_SED_COMMAND}\s*(?:;\s*{_SED_COMMAND}\s*)*;?\s*")


def is_plain_sed(script: str) -> bool:
    """Whether a script only prints, leaves out, and replaces in what is printed."""
    return len(script) < 500 and bool(_SED.fullmatch(script))


_AWK_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+|\\\n)|(?P<end>[\n;])|(?P<text>"(?:[^"\\\n]|\\[^\n])*")|(?P<number>[0-9]+(?:\.[0-9]+)?)|"""
    r"""(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>&&|\|\||[=!<>]=|!~|\+\+|--|[-+*%]=|[-+*%=<>!~?:,$(){}\[\]])|(?P<slash>/)"""
)
_AWK_RE = re.compile(r'/(?:[^/\\\n"\[]|\\[^\n"]|' + _BRACKET.replace("{d}", '/"') + ")+/")
_AWK_NAMES = frozenset(
    {
        *("BEGIN", "END", "NR", "NF", "FNR", "FS", "OFS", "ORS", "RS", "FILENAME", "RSTART", "RLENGTH"),
        *("print", "printf", "if", "else", "for", "in", "next", "exit", "length", "substr", "index", "split", "sub"),
        *("gsub", "match", "tolower", "toupper", "sprintf", "int"),
        *(
            "count",
            "sum",
            "total",
            "max",
            "min",
            "last",
            "prev",
            "seen",
            "found",
            "key",
            "name",
            "line",
            "value",
            "val",
        ),
    }
)
_AWK_SINGLE = re.compile(r"[a-z][0-9]?")
_AWK_LOOP = re.compile(r"\bfor\b(?!\s*\(\s*[a-z]+\s+in\s+[a-z]+\s*\))")
_STATEMENT_WORDS = frozenset({"print", "printf", "in", "else", "exit", "if", "for", "next"})


def is_plain_awk(script: str) -> bool:
    """Whether a script only prints: no files, no commands, no loops without an end."""
    if len(script) > 1_000 or _AWK_LOOP.search(script) or re.search("[0-9]{6}", script):
        return False
    at, braces, brackets, before = 0, 0, 0, "start"
    while at < len(script):
        match = _AWK_TOKEN.match(script, at)
        if match is None:
            return False
        kind, token = match.lastgroup or "", match[0]
        if kind == "slash":
            if before == "operand":  # a division
                before, at = "sign", at + 1
                continue
            match = _AWK_RE.match(script, at) if before in ("start", "sign") else None
            if match is None:
                return False
            before, at = "closed", match.end()
            continue
        at = match.end()
        if kind == "blank":
            continue
        if kind == "name" and token not in _AWK_NAMES and not _AWK_SINGLE.fullmatch(token):
            return False
        if token == ">" and braces and not brackets:
            return False
        braces += (token == "{") - (token == "}")
        brackets += (token == "(") - (token == ")")
        before = _awk_state(kind, token)
    return braces == 0 and brackets == 0


def _awk_state(kind: str, token: str) -> str:
    """Return what a slash behind this would be: `operand` a division, `start` or `sign` an expression, else unclear."""
    if kind == "name":
        return "unclear" if token in _STATEMENT_WORDS else "operand"
    if kind in ("number", "text") or token == "]":
        return "operand"
    if kind == "end" or token in "{}":
        return "start"
    return "unclear" if token in (")", "++", "--", "$") else "sign"


_JQ_TOKEN = re.compile(
    r"""\s+|"(?:[^"\\]|\\["\\/bfnrtu])*"|\.[A-Za-z_][A-Za-z0-9_]*|\.\.?|[0-9]+(?:\.[0-9]+)?|\$[a-z][a-z0-9_]*|"""
    r"""(?P<name>[a-z_][a-z0-9_]*)|@(?:csv|tsv|json|text|html|uri|sh|base64d?)|//=?|\?//|[-+*/%|]=|[=!<>]=|[-+*/%|,:;?()\[\]{}<>=]"""
)
_JQ_NAMES = frozenset(
    {
        *("map", "select", "keys", "length", "has", "in", "to_entries", "from_entries", "with_entries", "add", "any"),
        *("all", "flatten", "sort", "sort_by", "group_by", "unique", "unique_by", "min", "max", "min_by", "max_by"),
        *("reverse", "contains", "inside", "startswith", "endswith", "split", "join", "ascii_downcase"),
        *("ascii_upcase", "test", "match", "capture", "sub", "gsub", "type", "tostring", "tonumber", "if", "then"),
        *("elif", "else", "end", "and", "or", "not", "as", "null", "true", "false", "empty", "first", "last", "nth"),
        *("values", "nulls", "arrays", "objects", "strings", "numbers", "booleans", "scalars", "paths", "getpath"),
        *("del", "keys_unsorted", "map_values", "path", "tojson", "fromjson", "ltrimstr", "rtrimstr", "floor", "round"),
        *("limit", "index", "indices", "reduce", "try", "catch", "name", "version", "id"),
    }
)


def is_plain_jq(script: str) -> bool:
    """Whether a filter only looks at its input: no environment, no modules, no other files."""
    at = 0
    while at < len(script):
        match = _JQ_TOKEN.match(script, at)
        if match is None or (match["name"] and match["name"] not in _JQ_NAMES):
            return False
        at = match.end()
    return len(script) < 2_000


_FORMAT = re.compile(r"(?:[^%]|%%|%[-+ #0]*[0-9]{0,3}(?:\.[0-9]{0,3})?[diouxXeEfgGcsbq])*", re.DOTALL)


def is_plain_format(text: str) -> bool:
    """Whether `printf` only prints with this."""
    return bool(_FORMAT.fullmatch(text))
