"""One session of a client: a runtime, what the client is told of it, its prompts, and the questions that it asks."""

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

from tenuto.command.model_commands import MODES
from tenuto.command.registry import find_command, run_command
from tenuto.command.runtime import CommandRuntime
from tenuto.core.errors import EXPECTED_FAILURES, TaskFailedError, describe_failure
from tenuto.core.state.windows import find_model
from tenuto.core.transcript import replay
from tenuto.frontend.acp.calls import Around
from tenuto.frontend.acp.client import CLIENT_FAILURES, AnyUpdate, Client, HostEditor
from tenuto.frontend.acp.content import PromptBlock, read_prompt
from tenuto.frontend.acp.options import (
    OF_THE_EDITOR,
    OF_THE_SCREEN,
    config_options,
    describe_answer,
    effort_levels,
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
from tenuto.frontend.print import is_command
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
    PromptReturnedEvent,
)
from tenuto.protocol.model import ModelError, ModelFacts
from tenuto.protocol.operation import (
    AcceptCompactionOperation,
    ChangeModelOperation,
    ChangeModeOperation,
    DropCompactionOperation,
    EditQueueOperation,
    InterruptOperation,
)
from tenuto.protocol.part import ContentPart, TextPart
from tenuto.protocol.usage import Usage
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
    """An open session. What is told before the client knows the session waits until `begin`."""

    def __init__(self, runtime: CommandRuntime, client: Client) -> None:
        live = runtime.live
        self.runtime = runtime
        self.id = live.id
        self._client = client
        self._held: list[AnyUpdate] | None = []
        self._told = Told()
        self._around = Around(
            cwd=str(live.session.cwd),
            key=uuid.uuid4().hex[:8],
            compactions=client.compactions,
            load_image=self._load_image,
            read_text=read_small_text,
        )
        self._models: Sequence[ModelFacts] = ()
        self._questions: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._returned: list[str] = []
        self._prompts = 0
        self._is_sending = False
        self._is_cancelled = False
        runtime.subscribe(self.hear)
        self._host()

    def _host(self) -> None:
        """Let the session's tools use what the client has of files and terminals."""
        self.runtime.live.tool_context.editor = HostEditor(self._client, self.id, self._show_terminal)

    async def find_models(self) -> None:
        """Look for the models that can be used, and go on after a moment; the client is told of a longer list later."""
        search = self._spawn(self._look_for_models())
        await asyncio.wait([search], timeout=MODEL_SECONDS)

    async def _look_for_models(self) -> None:
        found = await self.runtime.live.models.available()
        if [facts.id for facts in found] != [facts.id for facts in self._models]:
            self._models = found
            self._tell_options()

    def begin(self) -> None:
        """The client knows the session by now: tell what has waited, and what can be typed."""
        held, self._held = self._held or [], None
        for update in held:
            self._client.update(self.id, update)
        self._spawn(self._tell_commands())

    # --- what the client is told ---

    def hear(self, event: AnyEvent) -> None:
        """Tell the client of an event, and ask what it asks. Of sub-agents' own events only their questions count."""
        if event.session_id != self.id and not isinstance(event, ApprovalRequestedEvent | ApprovalResolvedEvent):
            return
        updates, self._told = updates_of(event, self._told, self._around)
        for update in updates:
            self._tell(update)
        match event:
            case ModelChangedEvent() | ModeChangedEvent():
                self._tell_options()
            case ApprovalRequestedEvent():
                self._questions[event.request_id] = self._spawn(self._ask(event))
            case ApprovalResolvedEvent():
                question = self._questions.pop(event.request_id, None)
                if question is not None and question is not asyncio.current_task():
                    question.cancel()
            case CompactionProposedEvent():
                self._spawn(self._propose(event))
            case PromptReturnedEvent():
                self._returned.append(event.reason)
            case _:
                return

    def _tell(self, update: AnyUpdate) -> None:
        if self._held is not None:
            self._held.append(update)
        else:
            self._client.update(self.id, update)

    def _say(self, text: str) -> None:
        self.hear(NoticeEvent(session_id=self.id, text=text))

    def _tell_options(self) -> None:
        options = self.options()
        self._tell(ConfigOptionUpdate(session_update="config_option_update", config_options=options))

    async def _tell_commands(self) -> None:
        commands = offered_commands(await self.runtime.own_commands())
        self._tell(AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands))

    def _show_terminal(self, call_id: str, terminal_id: str) -> None:
        """Show the client's own terminal in the call that runs in it."""
        self._told = msgspec.structs.replace(self._told, terminals={**self._told.terminals, call_id: terminal_id})
        content = [TerminalToolCallContent(type="terminal", terminal_id=terminal_id)]
        self._tell(ToolCallProgress(session_update="tool_call_update", tool_call_id=call_id, content=[*content]))

    def _load_image(self, sha256: str) -> bytes | None:
        try:
            return self.runtime.live.load_blob(sha256)
        except OSError:
            return None

    async def replay(self) -> None:
        """Tell the client the whole conversation, as it would have been told when it took place."""
        live = self.runtime.live
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
        before = self.runtime.live.session.state.usage
        self._prompts += 1
        try:
            parts = await asyncio.to_thread(read_prompt, blocks, self.runtime.live)
            line = _command_line(parts)
            if line and is_command(line, self.runtime.live):
                stop_reason = await self._run_command(line)
            else:
                stop_reason = await self._send(parts)
        finally:
            self._prompts -= 1
        used = self.runtime.live.session.state.usage - before
        return PromptResponse(stop_reason=stop_reason, usage=token_usage(used))

    async def _send(self, parts: tuple[ContentPart, ...]) -> StopReason:
        self._is_sending = True
        self._returned.clear()
        try:
            await self.runtime.submit_prompt(parts)
        except EXPECTED_FAILURES as error:
            raise TaskFailedError(describe_failure(error)) from error
        finally:
            self._is_sending = False
        if self._is_cancelled:
            await self._stop()
        return await self._settle()

    async def _settle(self) -> StopReason:
        """Wait until the session is idle, and say how that came about. Raises `TaskFailedError` where it failed."""
        settled = await self.runtime.wait_settled()
        if self._is_cancelled:
            return "cancelled"
        reason = STOP_REASONS.get(settled.outcome)
        if reason is None:
            raise TaskFailedError(settled.error or next(filter(None, self._returned), "") or "the turn failed")
        return reason

    async def _run_command(self, line: str) -> StopReason:
        name = line[1:].split(maxsplit=1)[0]
        command = find_command(name)
        if command is not None and command.name in OF_THE_EDITOR:
            self._say(f"/{command.name}: your editor has its own way to open, leave and copy sessions.")
            return "end_turn"
        if command is not None and command.name in OF_THE_SCREEN:
            self._say(f"/{command.name} is for Tenuto's own screen: `tenuto --resume {self.id[:8]}` opens it there.")
            return "end_turn"
        self._returned.clear()
        was_idle = self.runtime.live.task.settled
        turns = self.runtime.live.task.turns
        for outcome in await run_command(self.runtime, line):
            if text := describe_answer(outcome):
                self._say(text)
        if self._is_cancelled:
            await self._stop()
        if was_idle and self.runtime.live.task.settled and turns == self.runtime.live.task.turns:
            return "cancelled" if self._is_cancelled else "end_turn"  # nothing was started
        settled = await self.runtime.wait_settled()
        if self._is_cancelled or settled.outcome == "interrupted":
            return "cancelled"
        # Of a compaction that came to nothing its own update says why.
        return STOP_REASONS.get(settled.outcome, "end_turn")

    async def cancel(self) -> None:
        """Stop what runs, and what waits behind it: the client has taken back all its prompts."""
        self._is_cancelled = self._prompts > 0
        if not self._is_sending:
            await self._stop()

    async def _stop(self) -> None:
        live = self.runtime.live
        for entry in live.session.state.queue:
            await self.runtime.submit(EditQueueOperation(session_id=live.id, target=entry.seq, action="delete"))
        await self.runtime.submit(InterruptOperation(session_id=live.id))

    # --- questions ---

    async def _ask(self, event: ApprovalRequestedEvent) -> None:
        """Ask the client's user; where that cannot be done nothing is allowed."""
        offered = offers(event, asks_reasons=self._client.has_forms)
        feedback, stops = "", False
        chosen = None
        try:
            answer = await self._choose(asked_call(event, self._around), permission_options(offered))
            chosen = next((one for one in offered if one.id == answer), None)
            if chosen is not None and chosen.option.feedback:
                if self._client.has_forms:
                    message = event.detail if event.kind == "question" else "What is to be done instead?"
                    feedback = await self._client.ask_text(self.id, message, chosen.option.label)
                else:
                    stops = event.kind == "call"
        except CLIENT_FAILURES as error:
            feedback = f"The editor could not ask the user: {error}"
        self._questions.pop(event.request_id, None)  # it is answered: nobody has to withdraw it
        await self.runtime.submit(answer_of(event, chosen, feedback))
        if stops:
            await self.runtime.submit(InterruptOperation(session_id=self.id))

    async def _propose(self, event: CompactionProposedEvent) -> None:
        """Show a proposed compaction; it is written if the user wants it, and dropped otherwise."""
        try:
            answer = await self._choose(proposal_call(event), PROPOSAL_OPTIONS)
        except CLIENT_FAILURES:
            answer = ""
        operation = AcceptCompactionOperation if answer == ACCEPT else DropCompactionOperation
        await self.runtime.submit(operation(session_id=self.id))

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
        return config_options(self.runtime.live, self._models)

    async def set_mode(self, mode: str) -> None:
        """Use another approval mode. Raises `SessionRefusedError`."""
        known = MODES.get(mode)
        if known is None:
            raise SessionRefusedError(f"there is no mode “{mode}”: there are {', '.join(MODES)}")
        await self.runtime.submit(ChangeModeOperation(session_id=self.id, mode=known))

    async def set_model(self, model: str) -> None:
        """Use another model. Raises `SessionRefusedError` where it cannot be used, or its provider does not list it."""
        live = self.runtime.live
        try:
            found = (await find_model(live, model)).facts.id
        except (ModelError, *EXPECTED_FAILURES) as error:
            raise SessionRefusedError(describe_failure(error)) from error
        if found not in live.settings.models and live.models.listed_instead(found):
            hint = did_you_mean(found, [facts.id for facts in self._models])
            raise SessionRefusedError(f"the provider does not list {found}{hint}")
        await self._change(model)

    async def set_effort(self, effort: str) -> None:
        """Have the model think as hard. Raises `SessionRefusedError` for a level that it does not have."""
        levels = effort_levels(self.runtime.live)
        if effort not in levels:
            has = ", ".join(levels) or "no levels"
            raise SessionRefusedError(f"there is no effort “{effort}”: {self.runtime.live.facts.id} has {has}")
        model = self.runtime.live.facts.id
        await self._change(model if effort == levels[0] else f"{model}:{effort}")

    async def _change(self, model: str) -> None:
        await self.runtime.submit(ChangeModelOperation(session_id=self.id, model=model))

    # --- the end ---

    async def close(self) -> str:
        """End what runs and close the session; return what has to be said of its log, empty for most."""
        self._held = []
        for task in (*self._tasks,):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.runtime.close()
        return self.runtime.opener.parting

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


def _command_line(parts: Sequence[ContentPart]) -> str:
    """Return the text of a prompt that has nothing else in it."""
    match parts:
        case [TextPart(text=text)]:
            return text.strip()
        case _:
            return ""


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
