"""The words by which providers say what went wrong. All matched without regard to case."""

from __future__ import annotations

import re


def _any_of(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


N = r"(\d[\d,_]*)"
"""A number as providers write it."""

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
    r"billing",
    r"payment required|payment_required",
    r"(?:usage|spend(?:ing)?|budget|daily|monthly|weekly|hourly) (?:token |usage |spend(?:ing)? )*(?:limit|cap|quota)",
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
    }
)
OVERFLOW = _any_of(
    # Anthropic, and those that copy its words.
    r"(?:prompt|input|conversation|context|request) (?:is|was) too long(?! to)",
    r"input is too long for requested model",
    r"exceed(?:s|ed)? (?:the |your )?(?:model'?s? )?(?:available |maximum |max )?context[ _-]?(?:window"
    r"|length|size|limit)",
    r"(?:maximum|max) (?:model |allowed )?context (?:length|window|size)(?: \w+){0,3}? \(?\d",
    r"input token count.{0,60}exceeds the maximum",
    r"(?:maximum|max) prompt length is \d",
    r"reduce the length of (?:the |your )?(?:messages|prompt|input|conversation)",
    r"maximum allowed input length",
    r"is longer than the model'?s? (?:maximum )?context",
    r"prompt token count of \d+ exceeds the limit of \d+",
    r"(?:greater|longer|larger|more) than (?:the |its )?(?:maximum |model'?s? )?context (?:length|window|size)",
    r"context (?:window|length|size)s? (?:\w+ ){0,3}?(?:exceed|overflow|too (?:small|long|large))",
    r"exceeded model token limit",
    r"too large for model with \d+ maximum context",
    r"prompt too long; exceeded",
    r"context[ _-](?:length|window|size)[ _-](?:was |has been |is )?exceed",
    r"prompt contains.{0,60}\d+ input tokens",
    r"(?:prompt|input|messages?) exceeds? (?:the )?(?:max(?:imum)?|model) (?:\w+ )?length",
    r"(?:prompt|input|messages|conversation|context|request)\b[^.\n]{0,80}\b(?:exceed\w*|too many|over|larger than"
    r"|longer than|greater than)\b[^.\n]{0,60}\btokens?\b",
    r"tokens?\b[^.\n]{0,60}\b(?:exceed\w*|over|larger than|more than|greater than)\b[^.\n]{0,60}"
    r"\b(?:context|(?:maximum|max) (?:input|prompt|sequence)|input limit|model'?s? limit)",
    r"(?:trying to keep|cannot truncate|does not fit)[^.\n]{0,60}context",
    r"token limit exceeded|tokens? limit (?:of|for) (?:this|the) model",
    r"\btoo many (?:input |prompt )?tokens\b",
    r"maximum sequence length|max_seq_len|max_model_len",
    r"more tokens than[^.\n]{0,40}(?:context|window|model)",
    r"input token count is \d+ but the model",
    r"range of input length should be",
    r"inputs?[`'\"]? must have less than \d+ tokens",
    r"(?:输入|上下文|提示|消息|prompt|tokens?)[^。\n]{0,20}(?:过长|超过|超出|超限)",
)
OUTPUT_ONLY = _any_of(
    r"max_(?:completion_|output_|new_)?tokens[`'\"]?:? \d[\d,]* ?> ?\d",
    r"max_(?:completion_|output_|new_)?tokens[`'\"]? (?:\([\d,]+\) )?(?:is too large|is too big|exceeds|cannot exceed"
    r"|must be|should be|value|may not|can(?:no|')t be|has to be)",
    r"(?:invalid|unsupported|illegal|incorrect)[^.\n]{0,40}max_(?:completion_|output_|new_)?tokens",
    r"'?max(?:imum)?_?(?:output|completion|new)_?tokens'?[^.\n]{0,40}"
    r"(?:too large|too big|exceed|range|at most|maximum|less than)",
    r"(?:supports at most|maximum (?:allowed )?number of output tokens|maximum output tokens)",
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
)
ITEM_SIZE = _any_of(
    r"(?:image|file|document|pdf|attachment|media)s?\b[^.\n]{0,60}(?:exceed|too large|too big|too many"
    r"|maximum|larger than)",
    r"(?:string|array|name|id|description|schema|value|field)\b[^.\n]{0,30}too long",
    r"(?:tools|functions|stop sequences?|messages array|headers?)\b[^.\n]{0,40}(?:exceed|too many|maximum|at most)",
    r"expected (?:a string|an array) with maximum length",
)
"""One thing in the request is too big or too much; a shorter conversation would not help."""

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
LIMIT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"> ?{N} ?(?:tokens? )?maximum",
        rf"(?:context limit|context window|context length|context size): ?\d[\d,]* \+ \d[\d,]* > {N}",
        rf"(?:maximum|max|model'?s?|available|allowed)[\w ']{{0,20}}? context[ _-]?(?:length|window|size"
        rf"|limit)[\w ']{{0,20}}?"
        rf"(?<! by)[ :=(]+{N}(?! ?%)",
        rf"context[ _-](?:length|window|size|limit)(?: \w+){{0,2}} (?:is|of)(?: only| just| at most)? {N}",
        rf"context[ _-](?:length|window|size) \({N}(?: tokens?)?\)",
        rf"(?:exceeds?|exceeded|over) the maximum (?:number of )?(?:input )?tokens?(?: \w+){{0,3}}? \(?{N}",
        rf"maximum (?:allowed )?(?:prompt|input|sequence|model) length (?:is|of) {N}",
        rf"the model only supports up to {N}",
        rf"range of input length should be \[\d+, ?{N}\]",
        rf"must have less than {N} tokens",
        rf"prompt token count of \d+ exceeds the limit of {N}",
        rf"model token limit: ?{N}",
        rf"too large for model with {N} maximum context",
        rf"must be <= ?{N}\. given",
        rf"maximum allowed input length of {N}",
        rf"input tokens? exceed(?:s|ed)? the configured limit of {N}",
    )
)
OBSERVED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{N} tokens? > ?\d",
        rf"context limit: ?{N} \+",
        rf"\({N} (?:in the messages|of text input|in the prompt|in the input|input tokens)",
        rf"(?:has|have|contains?|passed|given:?|with)(?: at least| about)? {N} (?:[`']?inputs?[`']? |prompt )?tokens",
        rf"(?:resulted in|requested|required|request contains|total of|used)(?: about| at least"
        rf"| up to)? {N}(?: input)? tokens",
        rf"input token count (?:\(|is ){N}",
        rf"tokens?\. given:? {N}",
        rf"prompt token count of {N}",
        rf"(?:request|input|prompt) \({N} tokens\)",
        rf"(?:but )?(?:the )?request contains {N}",
        rf"requested:? {N}\)",
        rf"prompt (?:contains|has|is) {N}",
    )
)
OUTPUT_LIMIT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"max_(?:completion_|output_|new_)?tokens[`'\"]?:? \d[\d,]* ?> ?{N}",
        rf"(?:supports at most|at most|maximum(?: allowed)?(?: value)?(?: is| of|:)|less than or equal to|<="
        rf"|cannot exceed|no more than"
        rf"|up to|can only afford|must be under) {N}",
        rf"range of max_tokens is \[\d+, ?{N}\]",
        rf"(?:range|between)[^.\n]{{0,30}}?\d+ ?(?:,|-|to|and) ?{N}",
        rf"maximum (?:number of )?output tokens?[^.\d\n]{{0,30}}{N}",
    )
)
SUM = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"context limit: ?{N} \+ {N} > (?P<window>\d[\d,_]*)",
        rf"context length (?:is|of)(?: only)? (?P<window>\d[\d,_]*).{{0,80}}?requested(?: about)? \d[\d,]* tokens \({N}"
        rf"[^,)]*, {N}[^)]*(?:completion|output)",
        rf"context length is (?P<window>\d[\d,_]*) tokens and your request has {N} input tokens \({N} >",
        rf"passed {N} input tokens and requested {N} output tokens.{{0,80}}?context length is only"
        rf" (?P<window>\d[\d,_]*)",
        rf"must be <= ?(?P<window>\d[\d,_]*)\. given: ?{N} `?inputs`? tokens and {N}",
    )
)
"""Input plus output is over the window: groups are the input, the asked output, and the window."""
