"""Another model, or another effort, for an open session; whoever asks for it waits until it holds."""

from __future__ import annotations

from tenuto.command.model_commands import DEFAULT
from tenuto.core.errors import TaskFailedError, UsageError
from tenuto.core.runtime import Runtime
from tenuto.core.state.live import LiveSession
from tenuto.core.state.windows import find_model
from tenuto.model.efforts import EFFORTS
from tenuto.protocol.operation import ChangeModelOperation
from tenuto.text.matching import did_you_mean


def effort_of(live: LiveSession) -> str:
    """Return the level at which the present model thinks."""
    return live.effort or DEFAULT


def efforts_of(live: LiveSession) -> tuple[str, ...]:
    """Return what the effort of the present model can be, nothing where it has no levels."""
    levels = live.models.efforts(live.facts)
    if levels is not None and not levels:
        return ()
    return (DEFAULT, *(EFFORTS if levels is None else levels))


async def use_model(runtime: Runtime, model: str) -> None:
    """Use another model. Raises `UsageError`, `ModelError`, or `TaskFailedError` where a compaction for it failed."""
    live = runtime.live
    found = (await find_model(live, model)).facts.id
    if found not in live.settings.models and live.models.listed_instead(found):
        hint = did_you_mean(found, [facts.id for facts in await live.models.available()])
        raise UsageError(f"the provider does not list {found}{hint}")
    await _change(runtime, model)


async def use_effort(runtime: Runtime, effort: str) -> None:
    """Have the present model think as hard. Raises `UsageError` for a level that it does not have."""
    levels, model = efforts_of(runtime.live), runtime.live.facts.id
    if effort not in levels:
        raise UsageError(f"there is no effort “{effort}”: {model} has {', '.join(levels) or 'no levels'}")
    await _change(runtime, model if effort == DEFAULT else f"{model}:{effort}")


async def _change(runtime: Runtime, model: str) -> None:
    submission = await runtime.submit(ChangeModelOperation(session_id=runtime.session_id, model=model))
    finished = await runtime.wait_for(submission)
    if finished is not None and finished.outcome != "completed":
        raise TaskFailedError(finished.error or "the compaction for that model was stopped")
