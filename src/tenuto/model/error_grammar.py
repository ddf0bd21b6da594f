"""A grammar of limits: it tells whether a sentence says that what was sent is too long for the model (R-017).

A provider's sentence has a subject (the prompt, the input, a number of tokens), a verb of excess ("exceeds", "is longer
than", "must be less than") and a bound (a context window, a maximum length, a token limit). The same verb with another
subject is something else: `max_tokens` is the answer's limit, an image or a string is one item, a body has bytes.
All texts are in the form that `normal()` gives: one line each, lower case, plain apostrophes, no backticks.
"""

from __future__ import annotations

import re

MAX_TEXT = 20_000
"""Characters that are looked at: no provider says what matters later."""
N = r"(\d[\d,_]*)"
"""A number as providers write it."""

INPUT = (
    r"(?<![a-z])(?:prompts?|inputs?|messages|conversation|history|context|request|query|query length|input_ids)"
    r"(?![a-z])|输入|上下文|提示|消息|对话"
)
OUTPUT = (
    r"max(?:imum)?[ _]?(?:completion|output|new)?[ _]?tokens(?! allowed)|(?:output|completion|generated) tokens|"
    r"max(?:imum)?[ _]?(?:output|completion)|num_predict"
)
"""The answer's limit; "maximum tokens allowed" is a bound of the input."""
EXCESS = (
    r"exceed(?:s|ed|ing)?|surpass(?:es|ed)?|overflow(?:s|ed)?|"
    r"(?:longer|larger|greater|more|bigger|higher) than|"
    r"(?:must|should|can|may|has to|have to)(?: not)? (?:be|have) (?:less|smaller|fewer|shorter|lower) than|"
    r"(?:must|should|has to) be (?:at most|under|<=?)|超过|超出|超限"
)
CONTEXT = (
    r"context[ _-]?(?:window|length|size|limit)s?|(?:max|maximum|model(?:'s)?)(?: \w+)? context(?![a-z])|"
    r"n_ctx(?![a-z])|max[_ ](?:seq|sequence|model)[_ ]len(?:gth)?|session_len"
)
BOUND = (
    rf"{CONTEXT}|(?:max|maximum|allowed|safe|configured|permitted|available|model|model's|tokens?)(?:[ _]\w+){{0,4}}?"
    r"[ _](?:length|len|tokens?|token size|limit|maximum|max|window|prompt|input)(?![a-z])|"
    r"limit of [\d,]+|(?:length|tokens?) limit"
)
_SUBJECT = re.compile(rf"{INPUT}|(?<!max_)(?<!budget_)tokens?(?![a-z])")
_INPUT = re.compile(INPUT)
_OUTPUT = re.compile(OUTPUT)
_EXCESS = re.compile(EXCESS)
_CONTEXT = re.compile(CONTEXT)
_BOUND = re.compile(BOUND)
_PASSIVE = re.compile(
    rf"(?:{BOUND})[\w ,()]{{0,30}}? ?(?:exceeded|overflow(?:ed|s)?|exceeds limit)|(?:exceeded|overflow)$"
)
_TOO_LONG = re.compile(
    rf"(?:{INPUT})[\w ,]{{0,40}} too long(?! to)|(?:输入|上下文|提示|消息|对话).{{0,30}}(?:过长|超长|超限|超过|超出)"
)
_STATED = re.compile(
    r"(?:maximum|max|only)(?: \w+)?(?: context (?:length|window|size)| prompt length| input tokens| tokens per \w+)"
    rf"(?: [\w./:-]+){{0,4}}? ?[(=:]?{N}|"
    rf"(?:prompt|input|request|messages)(?![a-z])[^.]{{0,60}}\d tokens?[^.]{{0,40}}(?:{CONTEXT})[^.]{{0,20}} {N}"
)
_PLAIN = re.compile(
    "|".join(
        (
            r"reduce the (?:length of (?:the |your )?)?(?:messages|prompt|input|conversation)(?! or)",
            r"(?:shorten|reduce) your (?:prompt|conversation|messages)",
            r"\btoo many (?:input |prompt |total )?tokens\b",
            r"too large for model with \d",
            r"input token count is \d+ but (?:the )?model",
            r"range of input length should be",
            rf"requested {N} tokens, max {N} tokens per request",
            rf"inputs?['\"]? must have less than {N} tokens",
            r"prompt contains.{0,60}\d+ input tokens",
            r"(?:trying to keep|cannot truncate|does not fit|more tokens than)[^.]{0,60}context",
            r"no models? (?:has|have) context window large enough",
            r"supports? only \d+k? (?:tokens )?(?:of )?context",
            r"context[ _-]?(?:window|length|size)[ _-]?(?:has been |was |is )?(?:exceed|overflow)",
            r"maximum allowed input length",
            r"^token limit$",
        )
    ),
    re.MULTILINE,
)
_TOO_LARGE_IN_TOKENS = re.compile(rf"too large\b.{{0,80}}?max size: {N} tokens")
_TOO_SMALL = re.compile(rf"(?:{CONTEXT})[^.]{{0,80}}(?:too small|below the minimum|minimum (?:is|of|required))")
"""An agent's or a gateway's own demand on a model: no conversation is too long there."""
_ITEM = re.compile(
    r"(?:image|file|document|pdf|attachment|media|video)s?(?![a-z])[^.]{0,60}(?:exceed|too large|too big|too many"
    r"|maximum|larger than)|"
    r"(?:string|array|name|id|description|schema|value|field)(?![a-z])[^.]{0,30}too long|"
    r"(?:tools|functions|stop sequences?|messages array|headers?)(?![a-z])[^.]{0,40}(?:exceed|too many|maximum"
    r"|at most)|"
    r"expected (?:a string|an array) with maximum length"
)
"""One thing in the request is too big or too many; a shorter conversation would not help."""
_TOKENS_OF = re.compile(r"(?:total|number of|count of) (?:\w+ )?tokens?|token count")
_CLAUSE = re.compile(r"(?<=[.!?;。；])\s+|\n")
_NEGATIVE_ROOM = re.compile(r"max_?(?:completion_|output_|new_)?tokens must be at least \d+, ?(?:but )?got ?-\d")
"""vLLM: what the window leaves for the answer is below zero."""

_SIZE_OF_OUTPUT = re.compile(
    r"exceed|too (?:large|big|high)|> ?\d|<= ?\d|less (?:than )?or equal|at most|range|value|invalid|"
    r"(?:above|larger than|greater than|more than) (?:the )?max|must be (?:less|under)|"
    r"cannot be (?:greater|larger|more)|supports (?:at most|up to)"
)
_EXCESS_LAST = re.compile(rf"(?:{EXCESS})(?: \w+){{0,4}} $")
_SENT = re.compile(r"(?<![a-z])(?:prompts?|inputs?(?! validation)|messages|conversation)(?![a-z])")
_LEAST = re.compile(r"at least|greater than|below min|>= ?\d|at the same time")


def normal(text: str) -> str:
    """Return a provider's text in the form that is looked at."""
    text = text[:MAX_TEXT].replace("’", "'").replace("`", "").replace("\\n", " ").replace("\\\n", " ")
    return " ".join(text.lower().split())


def is_item(text: str) -> bool:
    """Say whether the text is about the size or the number of single things in the request."""
    return any(_ITEM.search(clause) and not _TOKENS_OF.search(clause) for clause in _CLAUSE.split(text))


def leaves_negative_room(text: str) -> bool:
    """Say whether the text says that nothing is left for the answer: the output's limit is named, the input is it."""
    return _NEGATIVE_ROOM.search(text) is not None


def is_too_long(text: str) -> bool:
    """Say whether a sentence of the text says that the input is larger than the model's limit."""
    if leaves_negative_room(text) or _TOO_LARGE_IN_TOKENS.search(text):
        return True
    clauses = [clause for clause in _CLAUSE.split(text) if not _TOO_SMALL.search(clause)]
    return any(_says_too_long(clause) for clause in clauses)


def names_context(text: str) -> bool:
    """Say whether the text speaks of a context window."""
    return _CONTEXT.search(text) is not None


def is_about_output(text: str) -> bool:
    """Say whether a sentence of the text says that more output was asked for than the model gives."""
    return any(_is_output_clause(clause) for clause in _CLAUSE.split(text))


def _says_too_long(clause: str) -> bool:
    if "budget" in clause or (_ITEM.search(clause) and not _TOKENS_OF.search(clause)):
        return False
    if _PLAIN.search(clause) or _TOO_LONG.search(clause):
        return True
    if _is_output_clause(clause):
        return False
    if _STATED.search(clause) or _PASSIVE.search(clause):
        return True
    excess = _EXCESS.search(clause)
    if excess is None:
        return False
    if _CONTEXT.search(clause):
        return True
    return bool(_SUBJECT.search(clause, 0, excess.start()) and _BOUND.search(clause, excess.start()))


def _is_output_clause(clause: str) -> bool:
    """Say whether the clause's subject is the output, and it is too much of it (not too little)."""
    found = _OUTPUT.search(clause)
    if found is None or _LEAST.search(clause):
        return False
    before = clause[: found.start()]
    if _EXCESS_LAST.search(before) or _SENT.search(before):
        return False  # the bound of an input, or a sum of both
    return _SIZE_OF_OUTPUT.search(clause) is not None
