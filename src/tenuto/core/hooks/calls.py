"""Hooks around tool calls: who may stop one, change it, approve it or ask for approval, and what is said of its result.

What they did is told at the step's end, behind all results, so that a resumed transcript has the same order.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tenuto.core.hooks.asking import HOOK_KIND, SHOWN, ask, carry_out, tell
from tenuto.core.state.live import LiveSession
from tenuto.protocol.message import DeveloperMessage, ToolResultMessage
from tenuto.protocol.part import ToolCallPart, text_of
from tenuto.text.bounding import shorten
from tenuto.text.json_access import as_dict

if TYPE_CHECKING:
    from tenuto.extension.hooks.answers import Heard


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What hooks say of a call: why it may not run, why the user is to be asked, whether they approve it.

    `call` is the one to run. Nothing here loosens what the guard refuses: an approval counts as the user's answer.
    """

    call: ToolCallPart
    denial: str = ""
    question: str = ""
    is_approved: bool = False


class CallHooks:
    """The hooks of one step's calls. `ending` is why the turn is not to go on, empty where nobody wants that."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live
        self._told: list[Callable[[], None]] = []
        self.ending = ""

    async def before(self, call: ToolCallPart) -> Ruling:
        """Return what the hooks say of a call whose arguments are good."""
        if self._live.hooks is None:
            return Ruling(call=call)
        from tenuto.extension.hooks.matching import names_of, our_input, their_input, their_name

        meant = _meant(call)
        values = _arguments(meant)
        told = their_input(meant.name, values, self._live.session.cwd)
        details = {"tool_name": their_name(meant.name), "tool_input": told, "tool_use_id": call.id}
        heard = await ask(self._live, "PreToolUse", details, names=names_of(meant.name))
        if heard is None:
            return Ruling(call=call)
        self._note(heard, meant)
        if heard.denial or heard.ending:
            return Ruling(call=call, denial=f"A hook blocked this {meant.name} call; it was not run: {_why(heard)}")
        changes = [
            (command, changed) for command, answer in heard.answers if (changed := answer.change_of(told)) is not None
        ]
        for command, changed in changes[-1:]:
            ours = our_input(meant.name, told, changed)
            if ours != values:
                given = ours if meant is call else {**_arguments(call), "arguments": ours}
                call = msgspec.structs.replace(call, arguments=json.dumps(given, ensure_ascii=False))
                shown = shorten(json.dumps(ours, ensure_ascii=False), SHOWN)
                self._later(f"The {command.name} changed the input of {meant.name}: {shown}")
        asks = heard.of("ask")
        allows = heard.of("allow")
        question = "; ".join(answer.reason or f"the {command.name} wants it" for command, answer in asks)
        return Ruling(call=call, question=question, is_approved=bool(allows) and not asks)

    async def after(self, call: ToolCallPart, result: ToolResultMessage) -> None:
        """Tell the hooks of a call that ran. An interrupt ends them, and the result stays."""
        if self._live.hooks is None:
            return
        from tenuto.extension.hooks.matching import names_of, their_input, their_name

        meant = _meant(call)
        told = their_input(meant.name, _arguments(meant), self._live.session.cwd)
        details = {
            "tool_name": their_name(meant.name),
            "tool_input": told,
            "tool_response": _response(result, told.get("file_path")),
            "tool_use_id": call.id,
        }
        try:
            heard = await ask(self._live, "PostToolUse", details, names=names_of(meant.name))
        except asyncio.CancelledError:
            return
        if heard is None:
            return
        self._note(heard, meant)
        if heard.denial:
            text = f"A hook says of the {meant.name} call {call.id}, which has run: {heard.denial}"
            self._told.append(lambda: self._tell_model(text))

    def keep_for_later(self) -> None:
        """The calls are no part of a step: what the hooks did is told at the next boundary."""
        self._live.task.told_later += self._told
        self._told = []

    def flush(self) -> None:
        """All results are in the log: tell what the hooks did."""
        told, self._told = self._told, []
        for one in told:
            one()

    def _note(self, heard: Heard, call: ToolCallPart) -> None:
        self.ending = self.ending or heard.ending
        for command, answer in heard.of("deny"):
            self._later(f"The {command.name} blocked {call.name}: {shorten(answer.reason, SHOWN)}", warns=True)
        for command, answer in heard.of("allow"):
            if not answer.is_quiet and answer.reason:
                self._later(f"The {command.name} allowed {call.name}: {shorten(answer.reason, SHOWN)}")
        self._told.append(lambda: carry_out(self._live, heard))

    def _later(self, text: str, *, warns: bool = False) -> None:
        self._told.append(lambda: tell(self._live, text, warns=warns))

    def _tell_model(self, text: str) -> None:
        self._live.session.append(DeveloperMessage(text=text, kind=HOOK_KIND))


def _why(heard: Heard) -> str:
    return heard.denial or heard.ending


def _meant(call: ToolCallPart) -> ToolCallPart:
    """Return the call that hooks are told of: where a tool of a server is called by its name, the call of that tool."""
    from tenuto.tool.mcp.tools import CALL

    if call.name != CALL:
        return call
    values = _arguments(call)
    inner = values.get("arguments", {})
    text = inner if isinstance(inner, str) else json.dumps(inner, ensure_ascii=False)
    return msgspec.structs.replace(call, name=str(values.get("name", "")), arguments=text)


def _arguments(call: ToolCallPart) -> dict[str, Any]:
    """Return the arguments of a call that was prepared already."""
    return as_dict(json.loads(call.arguments or "{}"))


def _response(result: ToolResultMessage, file_path: object) -> dict[str, object]:
    """Return a result in the words that scripts of other agents look for."""
    text = text_of(result.parts)
    response: dict[str, object] = {"content": text, "success": not result.is_error, "interrupted": result.interrupted}
    if result.name == "bash":
        response |= {"stdout": text, "stderr": ""}
    if isinstance(file_path, str):
        response["filePath"] = str(Path(file_path))
    return response
