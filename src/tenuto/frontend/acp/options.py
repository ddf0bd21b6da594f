"""What a client can choose from in a session: modes, models, effort, and slash commands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acp.schema import (
    AvailableCommand,
    AvailableCommandInput,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
    UnstructuredCommandInput,
)

from tenuto.api.agent import Agent
from tenuto.command.model_commands import EXPLANATIONS, describe
from tenuto.command.outcome import Choose, CommandOutcome
from tenuto.command.registry import COMMANDS, Command
from tenuto.protocol.model import ModelFacts

MODE, MODEL, EFFORT = "mode", "model", "effort"
"""The ids of the options."""
NAMES = {"ask": "Ask", "edits": "Edits", "auto": "Auto", "plan": "Plan"}
OF_THE_EDITOR = frozenset({"new", "resume", "fork", "move", "exit"})
"""Commands that open another session, or leave: the client has its own way for that."""
OF_THE_SCREEN = frozenset({"help", "copy", "transcript", "mouse", "theme", "keys", "queue", "memory"})
"""Commands on what only a screen of ours has."""


def mode_state(agent: Agent) -> SessionModeState:
    """Return the approval modes, and the one that holds."""
    modes = [SessionMode(id=mode, name=NAMES[mode], description=text) for mode, text in EXPLANATIONS.items()]
    return SessionModeState(current_mode_id=agent.mode, available_modes=modes)


def config_options(
    agent: Agent, models: Sequence[ModelFacts]
) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
    """Return mode, model and effort with what there is of each; no effort where the model has none.

    `models` are those that are known to be usable; the present one is among what is offered in any case.
    """
    present = agent.runtime.live.facts
    known = models if any(facts.id == present.id for facts in models) else [present, *models]
    options = [
        SessionConfigOptionSelect(
            type="select",
            id=MODE,
            name="Mode",
            category="mode",
            current_value=agent.mode,
            options=[
                SessionConfigSelectOption(value=mode, name=NAMES[mode], description=text)
                for mode, text in EXPLANATIONS.items()
            ],
        ),
        SessionConfigOptionSelect(
            type="select",
            id=MODEL,
            name="Model",
            category="model",
            current_value=present.id,
            options=[
                SessionConfigSelectOption(
                    value=facts.id, name=facts.id, description=" · ".join(describe(facts)) or None
                )
                for facts in known
            ],
        ),
    ]
    levels = agent.efforts
    if levels:
        options.append(
            SessionConfigOptionSelect(
                type="select",
                id=EFFORT,
                name="Effort",
                category="thought_level",
                current_value=agent.effort,
                options=[SessionConfigSelectOption(value=level, name=level.capitalize()) for level in levels],
            )
        )
    return [*options]


def describe_answer(text: str, outcome: CommandOutcome) -> str:
    """Return what a command says, as Markdown: a list to choose from as the commands to type, and tables as they are.

    Empty for what only a screen can do.
    """
    if isinstance(outcome, Choose):
        kinds = outcome.filters[0].kinds if outcome.filters else ()
        rows = (row for row in outcome.choices if row.value and (not kinds or row.kind in kinds))
        lines = (f"- `/{outcome.command} {row.value}` {row.label} {row.detail}".rstrip() for row in rows)
        return "\n".join([f"{outcome.title}", "", *lines])
    text = text.rstrip()
    return f"```\n{text}\n```" if "\n" in text and "```" not in text else text


def offered_commands(own: Iterable[Command]) -> list[AvailableCommand]:
    """Return the slash commands that mean something in an editor, with those that users and projects bring."""
    built_in = (one for one in COMMANDS if one.name not in OF_THE_EDITOR | OF_THE_SCREEN)
    return [
        AvailableCommand(
            name=one.name,
            description=one.description,
            input=AvailableCommandInput(root=UnstructuredCommandInput(hint=one.argument_hint))
            if one.argument_hint
            else None,
        )
        for one in (*built_in, *own)
    ]
