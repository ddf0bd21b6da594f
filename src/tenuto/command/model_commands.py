"""Commands on the model, the approval mode and what was spent."""

from __future__ import annotations

from typing import get_args

from tenuto.command.outcome import Choice, Choose, CommandOutcome, RowFilter, Say
from tenuto.core.runtime import Runtime
from tenuto.core.state.instructions import describe_patterns, instructions_of
from tenuto.core.state.live import LiveSession
from tenuto.core.state.reminders import current_branch
from tenuto.core.state.request import describe_web_search
from tenuto.core.state.windows import forget_window
from tenuto.model.efforts import EFFORTS
from tenuto.model.registry import OFFLINE
from tenuto.protocol.entry import Mode
from tenuto.protocol.model import ModelFacts
from tenuto.protocol.operation import ChangeModelOperation, ChangeModeOperation
from tenuto.protocol.usage import Usage
from tenuto.text.figures import describe_origin, format_prices, plural, whole_percent
from tenuto.text.matching import did_you_mean
from tenuto.version import __version__


async def run_model(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Change to the model that is named; without a name, offer what can be used."""
    if argument.strip() == "forget":
        return [Say(_forget(runtime.live))]
    if argument:
        before = (runtime.live.facts.id, runtime.live.effort)
        await runtime.submit(ChangeModelOperation(session_id=runtime.session_id, model=argument))
        after = (runtime.live.facts.id, runtime.live.effort)
        search = describe_web_search(runtime.live)
        text = f"Model set to {after[0]}.{f' Web search is {search}.' if search else ''}"
        return [Say(text)] if after != before else []
    return await _offer_models(runtime.live)


async def _offer_models(live: LiveSession) -> list[CommandOutcome]:
    """Return the list of models to pick from, and a line for each server that does not say what it has."""
    present = live.facts.id
    found = {facts.id: facts for facts in [live.facts, *await live.models.available()]}
    recent = [name for name in live.models.recent() if name in found and name != present]
    order = dict.fromkeys([present, *recent, *found])
    rows = tuple(_model_row(live, found[name], recent=name in recent) for name in order)
    providers = list(dict.fromkeys(facts.provider for facts in found.values()))
    filters = tuple(RowFilter(name, (name,)) for name in providers)
    search = describe_web_search(live)
    head = f"Model (now {present}{f'; web search {search}' if search else ''})"
    offer = Choose(head, "model", rows, filters=(RowFilter("all"), *filters) if filters[2:] else ())
    return [*(Say(line, "warning") for line in live.models.silent()), offer]


def _model_row(live: LiveSession, facts: ModelFacts, *, recent: bool) -> Choice:
    """Return one model: in a line what tells it from the others, below the list all that is known of it."""
    is_present = facts.id == live.facts.id
    standing = ["current"] if is_present else ["recent"] if recent else []
    effort = live.effort if is_present else ""
    detail = " · ".join([*standing, *describe(facts, effort)])
    if live.models.is_listed(facts.id) is False:
        detail = " · ".join([*standing, "not in the server's list", *describe(facts, effort)])
    return Choice(facts.id, facts.id, detail, is_present, kind=facts.provider, preview=_explain(live, facts))


def _explain(live: LiveSession, facts: ModelFacts) -> str:
    """Return what is known of a model, each number with where it comes from, in lines."""
    listed = {
        True: "the server lists it",
        False: "the server does not list it",
        None: "there is no list of its server",
    }[live.models.is_listed(facts.id)]
    window = f"{facts.context_window:,} tokens{_origin(facts.source, facts)}" if facts.context_window else "not known"
    output = (
        f"{facts.max_output_tokens:,} tokens{_origin(facts.output_source, facts)}"
        if facts.max_output_tokens
        else "not known"
    )
    price = format_prices(facts.input_price, facts.output_price)
    levels = live.models.efforts(facts)
    effort = "nobody knows which" if levels is None else ", ".join(levels) or "no choice"
    rows = [
        ("window", window),
        ("output", output),
        ("price", f"{price}{_origin(facts.price_source, facts)}" if price else "not known"),
        ("effort", effort),
        ("images", "yes" if facts.images else "no"),
        *([("list", listed)] if facts.provider != OFFLINE else []),
    ]
    return "\n".join(f"{name:<8}{value}" for name, value in rows)


def _origin(source: str, facts: ModelFacts) -> str:
    origin = describe_origin(source, facts.assumed_from)
    return f" ({origin})" if origin else ""


DEFAULT = "default"
"""The word for: as the model thinks by itself."""


async def run_effort(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Change to the effort that is named; without one, offer the levels of the present model."""
    live = runtime.live
    facts, levels = live.facts, live.models.efforts(live.facts)
    if levels is not None and not levels:
        return [
            Say(f"{facts.id} has no levels of effort. /model changes the model.", "warning" if argument else "info")
        ]
    offered = (DEFAULT, *(EFFORTS if levels is None else levels))
    if not argument:
        present = live.effort or DEFAULT
        rows = tuple(Choice(level, level, _describe_effort(level, present), level == present) for level in offered)
        unsure = "; no list says which it has" if levels is None else ""
        return [Choose(f"Effort of {facts.id} (now {present}{unsure})", "effort", rows, in_order=True)]
    if argument not in offered:
        has = f"{facts.id} has {', '.join(offered)}"
        return [Say(f"There is no effort “{argument}”: {has}{did_you_mean(argument, offered)}", "warning")]
    model = facts.id if argument == DEFAULT else f"{facts.id}:{argument}"
    before = live.effort
    await runtime.submit(ChangeModelOperation(session_id=runtime.session_id, model=model))
    return [Say(f"Effort set to {live.effort or DEFAULT}.")] if live.effort != before else []


def _describe_effort(level: str, present: str) -> str:
    """Return what a level means, where its word does not say it."""
    said = {DEFAULT: "as the model does by itself", "none": "no thinking before the answer"}.get(level, "")
    return ", ".join(filter(None, ("now" if level == present else "", said)))


def _forget(live: LiveSession) -> str:
    """Drop the window that the present model's refusals taught, and say what holds now."""
    forgotten = forget_window(live)
    if forgotten is None:
        return f"No refusal has taught anything about the window of {live.facts.id}."
    window, budget = live.facts.context_window, live.budget()
    now = f"{window:,} tokens" if window else f"{budget.window:,} tokens, assumed"
    return f"Forgotten: {live.facts.id} took {forgotten:,} tokens. The window is {now} again."


def describe(facts: ModelFacts, effort: str = "") -> list[str]:
    """Return phrases on window, price, levels of effort (the chosen one alone where there is one), and assumptions."""
    parts: list[str] = []
    if facts.context_window:
        parts.append(f"{facts.context_window // 1000}k window")
    if facts.input_price and facts.output_price:
        parts.append(format_prices(facts.input_price, facts.output_price))
    if effort:
        parts.append(f"effort {effort}")
    elif facts.efforts:
        parts.append(f"effort {facts.efforts[0]} to {facts.efforts[-1]}" if facts.efforts[1:] else facts.efforts[0])
    if facts.assumed_from:
        by_name = "nearest" not in (facts.source, facts.price_source)
        parts.append(describe_origin("name" if by_name else "nearest", facts.assumed_from))
    return parts


EXPLANATIONS: dict[Mode, str] = {
    "ask": "ask before each edit and each command",
    "edits": "edits in the working directory without asking",
    "auto": "edits and commands without asking",
    "plan": "only look and plan, change nothing",
}
MODES: dict[str, Mode] = {mode: mode for mode in get_args(Mode)}


async def run_mode(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Change to the mode that is named; without a name, offer all."""
    if not argument:
        present = runtime.live.mode
        rows = tuple(Choice(mode, mode, text, mode == present) for mode, text in EXPLANATIONS.items())
        return [Choose(f"Mode (now {present})", "mode", rows)]
    mode = MODES.get(argument)
    if mode is None:
        return [
            Say(
                f"There is no mode “{argument}”: there are {', '.join(MODES)}{did_you_mean(argument, MODES)}", "warning"
            )
        ]
    await runtime.submit(ChangeModeOperation(session_id=runtime.session_id, mode=mode))
    return []


async def run_cost(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show tokens by kind and the money, as far as prices are known."""
    del argument
    usage = runtime.live.session.state.usage
    money = f"${usage.cost:.4f}" if usage.cost is not None else "no price is known for the models used"
    facts = runtime.live.facts
    if usage.cost is not None and facts.price_source == "nearest":
        money += f" ({facts.id} has no known price: that of {facts.assumed_from} is taken)"
    rows = [
        ("input", f"{usage.input:,}"),
        ("cache read", f"{usage.cache_read:,}"),
        ("cache write", f"{usage.cache_write:,}"),
        ("output", f"{usage.output:,}" + (f" (reasoning {usage.reasoning:,})" if usage.reasoning else "")),
        *([("web searches", _searches(usage))] if usage.searches else []),
        ("cost", money),
    ]
    return [Say("\n".join(f"{name:<12} {value}" for name, value in rows))]


def _searches(usage: Usage) -> str:
    priced = f"${usage.search_cost:.4f} of the cost" if usage.search_cost else "their price is not known"
    return f"{usage.searches:,} ({priced})"


async def run_status(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show it as rows of a name and a value."""
    del argument
    live = runtime.live
    state, size, budget = live.session.state, live.measure(), live.budget()
    share = f", {whole_percent(size.tokens, budget.window)} % of {budget.window:,}" if budget.window else ""
    rows = [
        ("version", f"Tenuto {__version__}"),
        ("session", f"{live.id}{f' “{state.title}”' if state.title else ''}"),
        ("", f"{plural(state.messages, 'message')}, {plural(state.compactions, 'compaction')}"),
        ("saved in", "nowhere: it is gone at the end" if runtime.temporary else str(live.session.directory)),
        ("directory", _place(runtime)),
        *(("", f"{place} (added)") for place in state.directories),
        ("model", f"{live.facts.id}{f', effort {live.effort}' if live.effort else ''}"),
        ("mode", live.mode),
        ("context", f"{'~' if size.estimated else ''}{size.tokens:,} tokens{share}"),
        ("queue", f"{len(state.queue)} waiting, {plural(len(live.tool_context.jobs.running()), 'background job')}"),
        *_instructions(runtime),
        ("home", str(runtime.home)),
    ]
    return [Say("\n".join(f"{name:<12} {value}" for name, value in rows))]


def _place(runtime: Runtime) -> str:
    cwd = runtime.live.session.cwd
    branch = current_branch(cwd)
    return f"{cwd} (git branch {branch})" if branch else str(cwd)


def _instructions(runtime: Runtime) -> list[tuple[str, str]]:
    """Return a row for each instruction file that holds here, the most general first."""
    found = instructions_of(runtime.live)
    rows = [
        f"{file.path} ({len(file.text):,} characters{', cut' if file.truncated else ''}{describe_patterns(file)})"
        for file in (*found.files, *found.on_touch)
    ]
    rows += found.problems
    names = ["instructions", *[""] * len(rows)]
    return list(zip(names, rows or ["none · /init creates AGENTS.md"], strict=False))
