"""What a provider's error says: every message and code in it, however deeply it is wrapped (R-018).

Gateways put the provider's own error into theirs: as an object, as JSON in a string (OpenRouter `metadata.raw`), or as
JSON at the end of a sentence (LiteLLM).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

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


MAX_DEPTH = 24
MAX_OPENINGS = 20
MAX_SHOWN = 500
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.IGNORECASE | re.DOTALL)
_MESSAGE_KEYS = (
    "message",
    "detail",
    "error_message",
    "msg",
    "reason",
    "title",
    "error_msg",
    "description",
    "status_msg",
)
_CODE_KEYS = ("code", "type", "status", "error_code", "reason")
_INNER_KEYS = (
    "error",
    "errors",
    "metadata",
    "raw",
    "detail",
    "details",
    "response",
    "body",
    "cause",
    "inner_error",
    "base_resp",
)
_LABELS = frozenset({"error", "errors"})


@dataclass(slots=True)
class Said:
    """What was found: messages from the outermost to the innermost, codes in lower case, token numbers, a status.

    `param` is the field of the request that an error object names, or the place that a validator gives.
    """

    messages: list[str] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    status: int | None = None
    observed: int | None = None
    limit: int | None = None
    retry_after: float | None = None
    param: str = ""

    @property
    def all_text(self) -> str:
        """Everything in one text, a line each, in the form that patterns and grammar look at."""
        return "\n".join(normal(text) for text in [*self.messages, *sorted(self.codes)])

    @property
    def shown(self) -> str:
        """The innermost message on one line, bounded: what a user should read."""
        best = next((text for text in reversed(self.messages) if " " in text), "")
        best = best or (self.messages[-1] if self.messages else "") or ", ".join(sorted(self.codes))
        line = " ".join(best.split())
        return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 1] + "…"


def read_error(text: str) -> Said:
    """Return what an error body, or any text that holds one, says."""
    said = Said()
    _read_text(text, said, 0)
    return said


def read_error_object(value: Any) -> Said:
    """Return what an error that came as a JSON value says."""
    said = Said()
    _read_value(value, said, 0)
    return said


def _read_text(text: str, said: Said, depth: int) -> None:
    text = text.strip()
    if not text or depth > MAX_DEPTH:
        return
    value = _embedded(text)
    if value is None:
        if text.startswith("<"):
            text = " ".join(_TAGS.sub(" ", text).split())
        _add_message(text, said)
        return
    found, start, end = value
    around = f"{text[:start].rstrip(' -:b' + chr(39) + chr(34))} {text[end:].strip(chr(39) + chr(34))}".strip()
    if len(around) > 2:
        _add_message(around, said)
    _read_value(found, said, depth + 1)


def _embedded(text: str) -> tuple[Any, int, int] | None:
    """Return the JSON object or array in `text` and its place; only what looks like an error is taken."""
    decoder = json.JSONDecoder(strict=False)
    for opening in islice(re.finditer(r'[{\[](?=\s*["{\[])', text), MAX_OPENINGS):
        try:
            value, end = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        return value, opening.start(), end
    return None


def _read_value(value: Any, said: Said, depth: int) -> None:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        _read_text(value, said, depth + 1)
    elif isinstance(value, list):
        for item in cast("list[Any]", value)[:10]:
            _read_value(item, said, depth + 1)
    elif isinstance(value, dict):
        _read_object(cast("dict[str, Any]", value), said, depth)


def _read_object(value: dict[str, Any], said: Said, depth: int) -> None:
    for key in _CODE_KEYS:
        code = value.get(key)
        if isinstance(code, str) and code and " " not in code and code.lower() not in _LABELS:
            said.codes.add(code.lower())
            if code.isdecimal():
                code = int(code)
        if isinstance(code, int) and 400 <= code < 600:
            said.status = code
    said.observed = _number(value.get("n_prompt_tokens")) or said.observed
    said.limit = _number(value.get("n_ctx")) or said.limit
    delay = value.get("retryDelay") or value.get("retry_after_seconds")
    if isinstance(delay, (str, int, float)):
        said.retry_after = _seconds(str(delay)) or said.retry_after
    for key in _MESSAGE_KEYS:
        if isinstance(value.get(key), str):
            _read_text(value[key], said, depth + 1)
    param = value.get("param")
    if isinstance(param, str) and " " in param:  # some gateways put the sentence there
        _read_text(param, said, depth + 1)
    elif isinstance(param, str):
        said.param = param or said.param
    said.param = _place(value.get("loc")) or said.param
    for key in _INNER_KEYS:
        inner = value.get(key)
        if isinstance(inner, (dict, list)) or (isinstance(inner, str) and key not in _MESSAGE_KEYS):
            _read_value(inner, said, depth + 1)


def _place(loc: Any) -> str:
    """Return the place of a validator's complaint: `["body", "stream_options"]` is `stream_options`."""
    if not isinstance(loc, list):
        return ""
    steps = [str(step) for step in cast("list[Any]", loc)]
    return ".".join(steps[1:] if steps[:1] == ["body"] else steps)


def _add_message(text: str, said: Said) -> None:
    text = text.strip()
    if text and text not in said.messages:
        said.messages.append(text)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _seconds(text: str) -> float | None:
    try:
        return float(text.strip().removesuffix("s"))
    except ValueError:
        return None


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


RATE = _any_of(
    r"rate[ _-]?limit",
    r"too many requests",
    r"throttl",
    r"too many tokens,? please wait",
    r"tokens? per (?:minute|min\b|hour|day)",
    r"requests? per (?:minute|min\b|hour|day|second)",
    r"per[- ]minute",
    r"\b(?:TPM|RPM|ITPM|OTPM|TPD|RPD)\b",
    r"slow down",
    r"resource_?exhausted",
    r"concurren(?:cy|t requests?) (?:limit|exceeded)",
    r"访问量过大|请求过于频繁|速率限制",
)
QUOTA = _any_of(
    r"insufficient[ _](?:quota|balance|credit|funds)",
    r"exceeded your current quota",
    r"quota[ _]exceeded|quota has been|out of quota",
    r"credit balance",
    r"(?:requires|need|out of|no|not enough|more) credits?\b",
    r"insufficient_\w*quota|quota is not enough|not enough quota",
    r"extra usage",
    r"limit \([\d,]+ (?:tokens )?per (?:day|week|month)\)",
    r"billing",
    r"payment required|payment_required",
    r"(?:usage|spend(?:ing)?|budget|daily|monthly|weekly|hourly) (?:token |usage |request |spend(?:ing)? )*"
    r"(?:limit|cap|quota)",
    r"(?:limit|quota) for (?:today|this (?:day|week|month))",
    r"余额不足|欠费|额度",
)
QUOTA_OF_A_MINUTE = re.compile(r"quota exceeded[^\n]{0,160}per[_ -]?(?:minute|base_model)", re.IGNORECASE)
"""Google says of a limit by the minute that a quota is exceeded."""
RETRY_IN = re.compile(
    r"(?:try again|retry|reset|available again)(?: \w+){0,3}? (?:in|after) (?:about )?(?:(\d+)\s*h(?:ours?)?\s*)?"
    r"(?:(\d+)\s*m(?:in(?:ute)?s?)?(?![a-z])\s*)?(?:([\d.]+)\s*(ms|milliseconds?|s\b|sec\w*|seconds?)?)?",
    re.IGNORECASE,
)
RATE_SIZE = re.compile(rf"limit:?\s*{N}\b.{{0,80}}?requested:?\s*{N}", re.IGNORECASE | re.DOTALL)
"""Groq and OpenAI: "Limit 6000, Requested 7012": the request alone is larger than the allowance (R-029)."""

OVERFLOW_CODES = frozenset(
    {
        "context_length_exceeded",
        "exceed_context_size_error",
        "model_context_window_exceeded",
        "context_window_exceeded",
        "contextwindowexceedederror",
        "string_above_max_context",
        "context_too_large",
        "prompt_too_long",
        "model_max_prompt_tokens_exceeded",
        "max_prompt_tokens_exceeded",
        "tokens_limit_reached",
        "max_tokens_per_request",
    }
)
PARAMETER_NAME = re.compile(
    r"(?:unsupported|unrecognized|unknown|unexpected|extra)[ _](?:parameter|field|argument|input|request argument)"
    r"|not supported with this model|extra inputs are not permitted",
    re.IGNORECASE,
)
BYTES = _any_of(
    r"request_too_large|requestentitytoolarge",
    r"(?:request|payload|body|content|entity)(?: \w+){0,3}? too large(?! for model)",
    r"(?:request|body|payload)[^.\n]{0,60}(?:exceed|larger|over|above)[^.\n]{0,60}(?:bytes|\bMi?B\b|size)",
    r"maximum (?:allowed )?(?:request|payload|body|number of bytes)",
    r"max bytes|(?:message|body|payload|request) size \d+ exceed",
)
THINKING = _any_of(
    r"signature[^.\n]{0,80}thinking|thinking[^.\n]{0,80}signature",
    r"thinking[^.\n]{0,120}(?:cannot be modified|must remain|were modified|prefix)",
    r"prefix_mismatch|block_binding",
    r"expected [`'\"]?(?:thinking|redacted_thinking)",
    r"encrypted[ _]content[^.\n]{0,80}(?:could not|cannot|invalid|fail|not be (?:verified|decrypted))",
    r"(?:invalid|unverifiable)[^.\n]{0,20}encrypted[ _](?:content|reasoning)",
    r"item with id [`'\"]?rs_\w*[`'\"]? not found",
    r"of type [`'\"]?reasoning[`'\"]? was provided without",
    r"reasoning_(?:content|details)[`'\"]?[^.\n]{0,80}(?:not|invalid|must|should|remove|unexpected|unsupported)",
    r"thought[_ ]signature",
)
OVERLOADED = _any_of(
    r"overloaded",
    r"(?:server|service|engine|model) (?:is )?(?:currently )?(?:busy|at capacity|under heavy load)",
    r"over capacity|no capacity|capacity (?:exceeded|constraints)|at capacity",
    r"temporarily unavailable|service[ _]unavailable|no available (?:server|instance|worker)s?",
    r"compaction_unavailable",
    r"high demand",
)
MISSING = _any_of(
    r"model_not_found|not_found_error|notfounderror",
    r"model\b[^.\n]{0,80}(?:not found|does not exist|doesn'?t exist|not exist|is not available|unknown|not supported)",
    r"(?:unknown|no such|invalid|unsupported) model\b",
    r"is not a valid model|model identifier is invalid",
    r"no (?:endpoints|allowed providers|deployments?)[^.\n]{0,40}(?:found|available|for)",
    r"try pulling it first|model is not loaded|no models? loaded",
)
AUTH = _any_of(
    r"(?:invalid|incorrect|missing|expired|wrong|no)[^.\n]{0,20}(?:api[ _-]?key|x-api-key|credential"
    r"|token\b(?! count)|authentication)",
    r"api[ _-]?key[^.\n]{0,30}(?:invalid|not valid|missing|expired|required)",
    r"authentication_error|invalid_api_key|unauthorized|unauthenticated|no auth credentials|permission_"
    r"(?:error|denied)",
    r"could not resolve authentication",
)
REFUSED = _any_of(
    r"content[ _](?:filter|policy|management policy|moderation)",
    r"responsibleai|data_inspection_failed|flagged (?:as|for|by)|prohibited_content",
    r"violat\w+[^.\n]{0,60}(?:polic|terms|guideline)",
    r"cyber_policy|invalid_prompt",
)
_WORDS = r"(?: [\w'-]+)"
_GAP = r"(?: (?:is|of|are|only|just|at most|allowed|up to|to))*[ :=(~\[]*"
"""What may stand between the name of a bound and its number; never "by"."""
_AFTER_EXCESS = r"(?:exceed(?:s|ed|ing)?|(?:longer|greater|larger|more|less|fewer) than)(?: or equal to)?"
LIMIT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"> ?{N} ?(?:tokens? )?maximum",
        rf"\(\d[\d,]* ?/ ?{N}\)",
        rf"n_ctx[:= ]+{N}",
        rf"(?:超过|超出)[^\d\n]{{0,12}}{N}",
        rf"{_AFTER_EXCESS}{_WORDS}{{0,6}}? (?:[\w'-]*(?:len|length|context|window|tokens?|maximum|max|size)|safe limit"
        rf"|limit(?= of)){_GAP}{N}(?! ?%)",
        rf"(?:maximum|max|model'?s?|available|allowed)[\w ']{{0,20}}? context[ _-]?(?:length|window|size"
        rf"|limit)[\w './-]{{0,40}}?"
        rf"(?<! by)[ :=(]+{N}(?! ?%)",
        rf"context[ _-](?:length|window|size|limit)(?: \w+){{0,2}} (?:is|of)(?: only| just| at most)? {N}",
        rf"context[ _-](?:length|window|size) \({N}(?: tokens?)?\)",
        rf"maximum (?:allowed )?(?:prompt|input|sequence|model) length (?:is|of) {N}",
        rf"model only supports up to {N}",
        rf"range of input length should be \[\d+, ?{N}\]",
        rf"must have less than {N} tokens",
        rf"model token limit: ?{N}",
        rf"too large for model with {N} maximum context",
        rf"maximum allowed input length of {N}",
        rf"max(?:imum)?(?: size| length| is| input tokens| allowed)*[:=]? ?{N}(?= tokens|[)'\"]|$|[.,]? )",
        rf"(?:cannot|must not|should not|may not) exceed {N}",
        rf"(?:limit|while limit) is {N}",
        rf"(?:tokens per submitted batch|per request) is {N}",
        rf"\(max {N}",
        rf"tokens, max {N}",
    )
)
OBSERVED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{N} tokens? > ?\d",
        rf"(?:contains|has|passed)(?: at least| about)? {N} input tokens",
        rf"(?:resulted in|requested|required|request contains|total of|used)(?: about| at least"
        rf"| up to)? {N}(?: input)? tokens",
        rf"\({N} (?:in the messages|of text input|in the prompt|in the input|input tokens)",
        rf"(?:has|have|contains?|passed|given:?|with)(?: at least| about)? {N} (?:[`']?inputs?[`']? |prompt )?tokens",
        rf"input token count (?:\(|is ){N}",
        rf"(?:tokens?\. given|received|got|requested|given)[:=]? ?{N}",
        rf"prompt token count of {N}",
        rf"(?:request|input|prompt|tokens?|length|count|too long)(?: of| is| was)?[ :=(~]+(?:length )?{N}",
        rf"(?:but )?(?:the )?request contains {N}",
        rf"prompt (?:contains|has|is) {N}",
        rf"~?{N} tokens exceed",
        rf"will take {N} tokens",
        rf"n_keep[:= ]+{N}",
        rf"数量\({N}",
    )
)
"""Sizes of what was sent; only one that is over the limit counts."""
OUTPUT_LIMIT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"max_(?:completion_|output_|new_)?tokens[`'\"]?:? \d[\d,]* ?> ?{N}",
        rf"(?:supports at most|at most|maximum(?: allowed)?(?: value)?(?: is| of|:)|less (?:than )?or equal to|<="
        rf"|cannot exceed|no more than"
        rf"|up to|can only afford|must be under) {N}",
        rf"range of max_tokens is \[\d+, ?{N}\]",
        rf"(?:range|between)[^.\n]{{0,40}}?\d+ ?(?:\(inclusive\) )?(?:,|-|to|and) ?{N}",
        rf"maximum (?:number of )?output tokens?[^.\d\n]{{0,30}}{N}",
        rf"model limit of {N}",
    )
)
_BOTH = r"(?:, |; )(?:\d[\d,]* [^,;)]*(?:, |; ))?"
SUM = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"context limit: ?(?P<sent>{N}) \+? ?(?P<asked>{N}) > (?P<window>{N})",
        rf"context length (?:is|of)(?: only)? (?P<window>{N}).{{0,80}}?requested(?: about)? (?P<total>{N}) ?tokens"
        rf" \(\d[^,;)]*{_BOTH}(?P<asked>{N})[^)]*(?:completion|output)",
        rf"context length (?:is|of) (?P<window>{N}) tokens and your request has (?P<sent>{N}) input tokens"
        rf" \((?P<asked>{N}) >",
        rf"passed (?P<sent>{N}) input tokens and requested (?P<asked>{N}) output tokens.{{0,80}}?context length is only"
        rf" (?P<window>{N})",
        rf"must be <= ?(?P<window>{N})\. given: ?(?P<sent>{N}) [`']?inputs?[`']? tokens and (?P<asked>{N})",
        rf"context length is (?P<window>{N}) tokens.{{0,20}}?requested (?P<asked>{N}) output tokens and your prompt"
        rf" contains at least (?P<sent>{N}) input tokens",
        rf"context length of (?P<window>{N}) tokens.{{0,40}}?total of (?P<total>{N}) tokens: \d+ tokens from the input"
        rf" messages and (?P<asked>{N})",
        rf"requested (?P<asked>{N}) to generate tokens, following a prompt of length (?P<sent>{N}), which exceeds the"
        rf" max limit of (?P<window>{N})",
        rf"request length (?P<sent>{N}) \+ (?P<asked>{N}) is greater than \w+ (?P<window>{N})",
    )
)
"""Input plus output is over the window: what was sent (or the total), the asked output, and the window."""
