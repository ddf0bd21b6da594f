"""One session of a client: an agent, what the client is told of it, its prompts, and the questions that it asks."""

from __future__ import annotations

import asyncio
import os
import stat
import uuid
from collections.abc import Coroutine, Sequence
from typing import Any

import msgspec
from acp.schema import (
    AllowedOutcome,
    AvailableCommand,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    PermissionOption,
    PromptResponse,
    RequestPermissionRequest,
    RequestPermissionResponse,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionInfoUpdate,
    StopReason,
    TerminalToolCallContent,
    ToolCallProgress,
    ToolCallUpdate,
)
from acp.schema import Usage as TokenUsage

from tenuto.api.agent import Agent
from tenuto.api.approving import Allow, Deny
from tenuto.command.model_commands import MODES
from tenuto.command.outcome import CommandOutcome
from tenuto.command.registry import find_command
from tenuto.command.runtime import typed_name
from tenuto.core.errors import EXPECTED_FAILURES, TaskFailedError, describe_failure
from tenuto.core.start import Start
from tenuto.core.state.live import LiveSession
from tenuto.core.transcript import replay
from tenuto.frontend.acp.calls import Around
from tenuto.frontend.acp.client import CLIENT_FAILURES, AnyUpdate, Client, HostEditor
from tenuto.frontend.acp.content import PromptBlock, read_prompt
from tenuto.frontend.acp.options import (
    EFFORT,
    MODE,
    MODEL,
    OF_THE_EDITOR,
    OF_THE_SCREEN,
    config_options,
    describe_answer,
    offered_commands,
)
from tenuto.frontend.acp.permissions import (
    ACCEPT,
    PROPOSAL_OPTIONS,
    answer_of,
    asked_call,
    offers,
    permission_options,
    proposal_call,
)
from tenuto.frontend.acp.updates import Told, updates_of
from tenuto.guard.secrets import KNOWN, masked_copy
from tenuto.protocol.event import (
    AnyEvent,
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CompactionProposedEvent,
    ModeChangedEvent,
    ModelChangedEvent,
    NoticeEvent,
    Outcome,
)
from tenuto.protocol.model import ModelFacts
from tenuto.protocol.operation import (
    AcceptCompactionOperation,
    DropCompactionOperation,
)
from tenuto.protocol.part import ImagePart, TextPart
from tenuto.protocol.usage import Usage
from tenuto.session.log.lock import lock_owner
from tenuto.text.matching import did_you_mean

MODEL_SECONDS = 1.0
"""How long the answer to `session/new` waits for the lists of models; what comes later is told later."""
REPLAYED_AT_A_TIME = 200
WHOLE_BYTES = 60_000
"""A changed file of at most so many bytes is shown whole, and only the pieces around the changes of a larger one."""
STOP_REASONS: dict[Outcome, StopReason] = {
    "completed": "end_turn",
    "interrupted": "cancelled",
    "cut_off": "max_tokens",
    "limit_reached": "max_turn_requests",
    "declined": "refusal",
}
"""How a turn ended, in the protocol's words; one that failed is an error."""


class SessionRefusedError(Exception):
    """What a client asks of a session cannot be done; the message says why."""


class HostedSession:
    """A session of a client, from `open` on. What is told before the client knows it waits until `begin`."""

    def __init__(self, start: Start, client: Client) -> None:
        self.agent = Agent.of(start, approve=self._approve)
        self.id = ""
        self._client = client
        self._held: list[AnyUpdate] | None = []
        self._told = Told()
        self._around = Around(
            cwd=str(start.cwd),
            key=uuid.uuid4().hex[:8],
            compactions=client.compactions,
            load_image=self._load_image,
            read_text=read_small_text,
        )
        self._models: Sequence[ModelFacts] = ()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._commands: list[AvailableCommand] = []
        self._prompts = 0
        self._is_cancelled = False

    async def open(self) -> None:
        """Open it, to be written to. Raises `SessionRefusedError`, and what `Agent.open` raises; it is closed then."""
        await self.agent.open()
        live = self.live
        if live.session.is_read_only:
            owner = lock_owner(live.session.directory)
            raise SessionRefusedError(
                f"session {live.id[:8]} is open in {owner.owner}: close it there, or fork it"
                if owner is not None
                else f"session {live.id[:8]} can only be read here: a newer version of Tenuto has written it"
            )
        self.id = live.id
        self._around = msgspec.structs.replace(self._around, cwd=str(live.session.cwd))
        self.agent.subscribe(self.hear)
        self.agent.hear_commands(self._say_outcome)
        live.tool_context.editor = HostEditor(self._client, self.id, self._show_terminal)

    @property
    def live(self) -> LiveSession:
        """The open session."""
        return self.agent.runtime.live

    async def find_models(self) -> None:
        """Look for the models that can be used, and go on after a moment; the client is told of a longer list later."""
        search = self._spawn(self._look_for_models())
        await asyncio.wait([search], timeout=MODEL_SECONDS)

    async def _look_for_models(self) -> None:
        found = await self.live.models.available()
        if [facts.id for facts in found] != [facts.id for facts in self._models]:
            self._models = found
            self._tell_options()

    def begin(self) -> None:
        """The client knows the session by now: tell what has waited, and what can be typed."""
        held, self._held = self._held or [], None
        for update in held:
            self._client.update(self.id, update)
        self._spawn(self._tell_first_commands())

    # --- what the client is told ---

    def hear(self, event: AnyEvent) -> None:
        """Tell the client of an event of the session itself, or of a question that a sub-agent asks."""
        if event.session_id != self.id and not isinstance(event, ApprovalRequestedEvent | ApprovalResolvedEvent):
            return
        updates, self._told = updates_of(event, self._told, self._around)
        for update in updates:
            self._tell(update)
        match event:
            case ModelChangedEvent() | ModeChangedEvent():
                self._tell_options()
            case CompactionProposedEvent():
                self._spawn(self._propose(event))
            case _:
                return

    def _tell(self, update: AnyUpdate) -> None:
        if self._held is not None:
            self._held.append(update)
        else:
            self._client.update(self.id, update)

    def _say(self, text: str) -> None:
        self.hear(NoticeEvent(session_id=self.id, text=text))

    def _say_outcome(self, text: str, outcome: CommandOutcome) -> None:
        if said := describe_answer(text, outcome):
            self._say(said)

    def _tell_options(self) -> None:
        options = self.options()
        self._tell(ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    async def _tell_first_commands(self) -> None:
        """Tell them at once, and again with those of servers and extensions that were still starting."""
        await self._tell_commands()
        await self.live.extensions.host()
        await self.live.mcp.answered()
        await self._tell_commands()

    async def _tell_commands(self) -> None:
        """Tell what can be typed, where that is not what the client was told last."""
        commands = offered_commands(await self.agent.runtime.own_commands())
        if commands != self._commands:
            self._commands = commands
            self._tell(AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands))

    def _show_terminal(self, call_id: str, terminal_id: str) -> None:
        """Show the client's own terminal in the call that runs in it."""
        self._told = msgspec.structs.replace(self._told, terminals={**self._told.terminals, call_id: terminal_id})
        content = [TerminalToolCallContent(type="terminal", terminal_id=terminal_id)]
        self._tell(ToolCallProgress(session_update="tool_call_update", tool_call_id=call_id, content=[*content]))

    def _load_image(self, sha256: str) -> bytes | None:
        try:
            return self.live.load_blob(sha256)
        except OSError:
            return None

    async def replay(self) -> None:
        """Tell the client the whole conversation, as it would have been told when it took place."""
        live = self.live
        told = Told(replays=True)
        around = msgspec.structs.replace(self._around, key=f"{self._around.key}-{self._told.messages}")
        for number, event in enumerate(replay(live.id, live.session.path())):
            if KNOWN:
                event = masked_copy(event, KNOWN.mask)
            updates, told = updates_of(event, told, around)
            for update in updates:
                self._client.update(self.id, update)
            if number % REPLAYED_AT_A_TIME == 0:
                await asyncio.sleep(0)
        if title := live.session.state.title:
            self._client.update(self.id, SessionInfoUpdate(session_update="session_info_update", title=title))

    # --- prompts ---

    async def prompt(self, blocks: Sequence[PromptBlock]) -> PromptResponse:
        """Answer a prompt or run a slash command. Raises `ContentError` and `TaskFailedError`."""
        if self._prompts == 0:
            self._is_cancelled = False
        self._prompts += 1
        try:
            parts = await asyncio.to_thread(read_prompt, blocks, self.live)
            text = next((part.text for part in parts if isinstance(part, TextPart)), "")
            images = [part for part in parts if isinstance(part, ImagePart)]
            is_command = not images and await self.agent.is_command(text)
            if self._is_cancelled:
                return _ended("cancelled")
            return await (self._run_command(text) if is_command else self._send(text, images))
        finally:
            self._prompts -= 1

    async def _send(self, text: str, images: Sequence[ImagePart]) -> PromptResponse:
        try:
            answer = await self.agent.run(text, images=images, queue=True)
        except EXPECTED_FAILURES as error:
            raise TaskFailedError(describe_failure(error)) from error
        reason = "cancelled" if self._is_cancelled else STOP_REASONS.get(answer.outcome)
        if reason is None:
            raise TaskFailedError(answer.error or "the turn failed")
        return _ended(reason, answer.usage)

    async def _run_command(self, line: str) -> PromptResponse:
        command = find_command(typed_name(line))
        if command is not None and command.name in OF_THE_EDITOR:
            self._say(f"/{command.name}: your editor has its own way to open, leave and copy sessions.")
            return _ended("end_turn")
        if command is not None and command.name in OF_THE_SCREEN:
            self._say(f"/{command.name} is for Tenuto's own screen: `tenuto --resume {self.id[:8]}` opens it there.")
            return _ended("end_turn")
        answer = await self.agent.command(line, queue=True)
        await self._tell_commands()  # `/reload` and `/trust` change them
        # Of a compaction that came to nothing its own update says why.
        reason = "cancelled" if self._is_cancelled else STOP_REASONS.get(answer.outcome, "end_turn")
        return _ended(reason, answer.usage)

    async def cancel(self) -> None:
        """Stop what runs, and what waits behind it: the client has taken back all its prompts."""
        self._is_cancelled = self._prompts > 0
        await self.agent.interrupt(drop_queue=True)

    # --- questions ---

    async def _approve(self, event: ApprovalRequestedEvent) -> Allow | Deny:
        """Ask the client's user; where that cannot be done nothing is allowed."""
        offered = offers(event, asks_reasons=self._client.has_forms)
        feedback = ""
        try:
            answer = await self._choose(asked_call(event, self._around), permission_options(offered))
            chosen = next((one for one in offered if one.id == answer), None)
            if chosen is not None and chosen.option.feedback:
                if not self._client.has_forms:
                    return Deny(stop=event.kind == "call")
                message = event.detail if event.kind == "question" else "What is to be done instead?"
                feedback = await self._client.ask_text(self.id, message, chosen.option.label)
        except CLIENT_FAILURES as error:
            return Deny(f"The editor could not ask the user: {error}")
        return answer_of(chosen, feedback)

    async def _propose(self, event: CompactionProposedEvent) -> None:
        """Show a proposed compaction; it is written if the user wants it, and dropped otherwise."""
        try:
            answer = await self._choose(proposal_call(event), PROPOSAL_OPTIONS)
        except CLIENT_FAILURES:
            answer = ""
        operation = AcceptCompactionOperation if answer == ACCEPT else DropCompactionOperation
        await self.agent.runtime.submit(operation(session_id=self.id))

    async def _choose(self, call: ToolCallUpdate, options: Sequence[PermissionOption]) -> str:
        """Return the id of the option that the user takes, empty for none. Raises one of `CLIENT_FAILURES`."""
        asked = RequestPermissionRequest(session_id=self.id, tool_call=call, options=[*options])
        answer = RequestPermissionResponse.model_validate(
            await self._client.request("session_request_permission", asked)
        )
        return answer.outcome.option_id if isinstance(answer.outcome, AllowedOutcome) else ""

    # --- options ---

    def options(self) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
        """Return what the client can choose from, and what holds."""
        return config_options(self.agent, self._models)

    async def set_option(self, option: str, value: str) -> None:
        """Use another mode, model or effort. Raises `SessionRefusedError`, and what the agent raises."""
        match option:
            case "mode":
                await self.set_mode(value)
            case "model":
                await self.agent.set_model(value)
            case "effort":
                await self.agent.set_effort(value)
            case unknown:
                known = (MODE, MODEL, EFFORT)
                raise SessionRefusedError(f"there is no option “{unknown}”{did_you_mean(unknown, known)}")

    async def set_mode(self, mode: str) -> None:
        """Use another approval mode. Raises `SessionRefusedError`."""
        known = MODES.get(mode)
        if known is None:
            raise SessionRefusedError(f"there is no mode “{mode}”: there are {', '.join(MODES)}")
        await self.agent.set_mode(known)

    # --- the end ---

    async def close(self) -> str:
        """End what runs and close the session; return what has to be said of its log, empty for most."""
        self._held = []
        for task in (*self._tasks,):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.agent.close()
        return self.agent.parting

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def read_small_text(path: str) -> str | None:
    """Return a file as it is on the disk, without known secrets; `None` for a large one and for what is no text."""
    try:
        with open(path, "rb", opener=_open_regular) as file:
            data = file.read(WHOLE_BYTES + 1)
    except OSError:
        return None
    if len(data) > WHOLE_BYTES or b"\0" in data:
        return None
    try:
        return KNOWN.mask(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None


def _open_regular(path: str, flags: int) -> int:
    """Open a file, and never wait for one that is a pipe. Raises `OSError`."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no regular file")
    return descriptor


def _ended(reason: StopReason, used: Usage | None = None) -> PromptResponse:
    """Return how a turn ended, in the protocol's words."""
    return PromptResponse(stop_reason=reason, usage=token_usage(used or Usage()))


def token_usage(used: Usage) -> TokenUsage:
    """Return what a turn has used, in the protocol's words."""
    return TokenUsage(
        total_tokens=used.total,
        input_tokens=used.input,
        output_tokens=used.output,
        thought_tokens=used.reasoning or None,
        cached_read_tokens=used.cache_read or None,
        cached_write_tokens=used.cache_write or None,
    )
