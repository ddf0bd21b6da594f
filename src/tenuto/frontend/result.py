"""The outcome of a headless run as an exit code, and as the JSON object that scripts read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct

from tenuto.exit_codes import CALLS_REFUSED, CUT_OFF, DECLINED, FAILED, INTERRUPTED, LIMIT_REACHED, OK
from tenuto.protocol.usage import Usage

if TYPE_CHECKING:
    from tenuto.api.result import RunResult
    from tenuto.frontend.lines import ResultLine, ResultSubtype, UsageNumbers
    from tenuto.protocol.event import Outcome

EXIT_CODES: dict[Outcome, int] = {
    "completed": OK,
    "failed": FAILED,
    "cut_off": CUT_OFF,
    "limit_reached": LIMIT_REACHED,
    "declined": DECLINED,
    "interrupted": INTERRUPTED,
}
SUBTYPES: dict[int, ResultSubtype] = {
    OK: "success",
    CUT_OFF: "error_cut_off",
    LIMIT_REACHED: "error_limit_reached",
    CALLS_REFUSED: "error_calls_refused",
    DECLINED: "error_declined",
    INTERRUPTED: "error_interrupted",
}
"""What the result calls an exit code; every other one is `error_during_execution`."""


def exit_code(outcome: Outcome, refused: int) -> int:
    """Return the exit code of a run that ended so; `refused` calls needed an approval that nobody could give."""
    return EXIT_CODES[outcome] or (CALLS_REFUSED if refused else OK)


class Ended(Struct, frozen=True, kw_only=True):
    """How a run, or one prompt of it, ended. `value` is the answer as JSON where a schema asked for it."""

    code: int = OK
    error: str = ""
    usage: Usage = Usage()
    seconds: float = 0.0
    value: Any = None


def describe_result(result: RunResult, ended: Ended) -> ResultLine:
    """Return what ends a run: for `--output-format json` and the last line of `stream-json`.

    Names that other agents use mean the same here.
    """
    from tenuto.frontend.lines import Denial, Page, ResultLine  # a run that prints text has no such lines

    return ResultLine(
        subtype=SUBTYPES.get(ended.code, "error_during_execution"),
        is_error=ended.code != OK,
        exit_code=ended.code,
        result=result.text,
        sources=tuple(Page(title=source.title, url=source.url) for source in result.sources.values()),
        error=ended.error or None,
        stop_reason=result.stop_reason,
        session_id=result.session_id,
        num_turns=result.turns,
        duration_ms=round(ended.seconds * 1000),
        total_cost_usd=ended.usage.cost,
        usage=describe_usage(ended.usage),
        permission_denials=tuple(
            Denial(tool_name=call.name, tool_use_id=call.call_id, summary=call.summary, reason=call.reason)
            for call in result.refused
        ),
        changed_files=tuple(result.changed_files),
        structured_output=UNSET if ended.value is None else ended.value,
    )


def describe_usage(usage: Usage) -> UsageNumbers:
    """Return tokens, and web searches if there were any, under the names that the Messages API gave them."""
    from tenuto.frontend.lines import Searches, UsageNumbers

    return UsageNumbers(
        server_tool_use=Searches(usage.searches) if usage.searches else UNSET,
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_input_tokens=usage.cache_read,
        cache_creation_input_tokens=usage.cache_write,
    )
