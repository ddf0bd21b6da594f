"""The words by which providers say what went wrong. All matched without regard to case."""

from __future__ import annotations

import re

from tenuto.model.error_grammar import N


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
    r"is not a valid model",
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
