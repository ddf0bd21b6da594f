"""For terminals that cannot move their cursor (`TERM=dumb`) and for screen readers: lines out, lines in.

Nothing that was written changes, nothing moves, no key is special but those that the terminal itself knows. Dialogs
are numbered lists.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from tenuto.command import outcome as outcomes
from tenuto.command.registry import find_command
from tenuto.config.settings import UiSettings
from tenuto.config.sources import load_settings
from tenuto.exit_codes import SIGNAL
from tenuto.guard.terminal import sanitize_for_terminal, sanitize_line
from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.tui.alerts import Alerts
from tenuto.tui.first_paint.decide import IMMOVABLE
from tenuto.tui.inline.line_reader import LineReader
from tenuto.tui.inline.printer import Printer
from tenuto.tui.keys.bindings import Bindings
from tenuto.tui.keys.key_file import OwnKeys
from tenuto.tui.keys.keyboard import Machine
from tenuto.tui.keys.keys import default_bindings, help_text
from tenuto.tui.launch import Ended, Opening, noise_file, opening_texts
from tenuto.tui.panels.approval import approval_detail, option_label, other_kind, plan_lines, reason_of
from tenuto.tui.programs import read_page
from tenuto.tui.render.frame import image_words
from tenuto.tui.render.options import RenderOptions, glyphs_for
from tenuto.tui.runner import LateRuntime, Runner
from tenuto.tui.state import effects as screen_effects
from tenuto.tui.state import intents
from tenuto.tui.state.effects import ScreenEffect
from tenuto.tui.state.intents import Intent
from tenuto.tui.state.item import UserItem
from tenuto.tui.state.state import Picker, UiState
from tenuto.tui.terminal.clipboard import copy_text
from tenuto.tui.terminal.terminal import WRITE_SECONDS, Terminal, borrow_terminal, leave_on_signals

if TYPE_CHECKING:
    from tenuto.core.start import Start


PICKER_ROWS = 20
OTHER_ROWS = "+"
"""What is answered to see the rows of the list's next filter."""
ASKING = frozenset({"approval", "feedback", "picker"})


def wanted_answer(state: UiState) -> bool:
    """Say whether the next line answers something."""
    return state.contexts[0] in ASKING


class Menus:
    """`news` gives what is asked since it was called last, `take` gives a line to what is asked."""

    def __init__(self, machine: Machine, columns: int, options: RenderOptions) -> None:
        self._machine = machine
        self._columns = columns
        self._glyphs = glyphs_for(options)
        self._asked: object = None

    # --- asking ---

    def news(self) -> list[str]:
        """Return the lines of a question that has not been printed yet."""
        state = self._machine.state
        if state.help_open:
            self._machine.handle(intents.ToggleHelp())
            return help_text(state.keys).split("\n")
        request, picker = state.approvals.current, state.picker
        shown = (id(picker), picker.filter, picker.row_filter) if picker is not None else None
        asked: object = (request.request_id, state.contexts[0]) if request is not None else shown
        if asked == self._asked:
            return []
        self._asked = asked
        if request is not None:
            return self._approval(state, request)
        return _picker(picker) if picker is not None else []

    def _approval(self, state: UiState, request: ApprovalRequestedEvent) -> list[str]:
        if state.approvals.feedback is not None:
            if request.kind == "question":
                return ["Write the answer:"]
            return ["What shall be done instead? An empty line just says no:"]
        position, total = state.approvals.position
        count = f" ({position} of {total})" if total > 1 else ""
        if request.kind == "plan":
            lines = [f"Go ahead with this plan?{count}"]
            lines += [line.text.rstrip() for line in plan_lines(request.detail, self._columns, self._glyphs)]
        elif request.kind == "question":
            lines = [f"{sanitize_line(request.summary)}{count}"]
            lines += [f"Sub-agent {sanitize_line(request.agent)} works with it."] if request.agent else []
            lines += [line.text.rstrip() for line in approval_detail(request, self._columns - 4, self._glyphs)]
        else:
            lines = [f"Allow {sanitize_line(request.tool)}?{count} {sanitize_line(request.summary)}"]
            lines += [f"Sub-agent {sanitize_line(request.agent)} asks."] if request.agent else []
            lines += [f"Why it is asked: {sanitize_line(reason_of(request))}"] if request.reason else []
            lines += [line.text.rstrip() for line in approval_detail(request, self._columns - 4, self._glyphs)]
        lines += [f"{number}. {option_label(option)}" for number, option in enumerate(state.approvals.options, 1)]
        lines += [f"k. Have 2 and 3 be for {other}"] if (other := other_kind(state, request)) else []
        return [*lines, "Answer with a number:"]

    # --- answers ---

    def take(self, line: str, now: float, say: Callable[[Sequence[str]], None]) -> bool:
        """Take a line as an answer; `False` when nothing is asked."""
        state = self._machine.state
        match state.contexts[0]:
            case "approval":
                self._answer(line.strip().lower(), now, say)
            case "feedback":
                self._machine.handle(intents.FeedbackChanged(line))
                self._machine.handle(intents.AnswerApproval())
            case "picker":
                return self._pick(line.strip())
            case _:
                return False
        return True

    def _answer(self, word: str, now: float, say: Callable[[Sequence[str]], None]) -> None:
        approvals = self._machine.state.approvals
        request = approvals.current
        if request is None:
            return
        options = approvals.options
        if now < approvals.accept_after:
            say(["This was asked only just now. Answer with a number:"])
        elif word.isdecimal() and 0 < int(word) <= len(options):
            self._machine.handle(intents.AnswerApproval(int(word) - 1))
        elif word == "k" and other_kind(self._machine.state, request):
            self._machine.handle(intents.SwitchKind())
            self._asked = None
        elif word in [option.letter for option in options]:
            self._machine.handle(intents.AnswerApprovalWith(word))
        else:
            say([f"Answer with a number from 1 to {len(options)}:"])

    def _pick(self, word: str) -> bool:
        """Take a number, a filter, or an empty line; a command closes the list: `False`, it is to be run.

        What can be done with a row stands behind its number: `2 rename TITLE`.
        """
        picker = self._machine.state.picker
        number, _, act = word.partition(" ")
        if word.startswith("/") and find_command(word[1:].partition(" ")[0]) is not None:
            self._machine.handle(intents.Escape())
            return False
        if picker is None or not word:
            self._machine.handle(intents.Escape())
        elif picker.gives_way and not number.isdecimal():
            self._machine.handle(intents.Escape())
            return False
        elif word.isdecimal() and 0 < int(word) <= len(picker.shown):
            self._machine.handle(intents.PickChoice(int(word) - 1))
        elif word == OTHER_ROWS and picker.filters:
            self._machine.handle(intents.CycleRowFilter(1))
        elif number.isdecimal() and act.split(" ")[0] in picker.acts and 0 < int(number) <= len(picker.shown):
            value = picker.choices[picker.shown[int(number) - 1]].value
            self._machine.handle(intents.Escape())
            self._machine.handle(intents.SendText(f"/{picker.command} {value} {act}"))
        else:
            self._machine.handle(intents.FilterChanged(word))
        return True


def _picker(picker: Picker) -> list[str]:
    lines = [sanitize_line(picker.title)]
    previews = {choice.preview for choice in picker.choices}
    if len(previews) == 1:  # all rows are about the same text
        lines += [sanitize_for_terminal(preview) for preview in previews if preview]
    for number, place in enumerate(picker.shown[:PICKER_ROWS], 1):
        choice = picker.choices[place]
        detail = f", {sanitize_line(choice.detail)}" if choice.detail else ""
        lines.append(f"{number}. {sanitize_line(choice.label)}{detail}")
    if len(picker.shown) > PICKER_ROWS:
        lines.append(f"and {len(picker.shown) - PICKER_ROWS} more")
    if not picker.shown:
        lines.append("Nothing matches.")
    if picker.filters:
        present, following = (picker.filters[(picker.row_filter + step) % len(picker.filters)].name for step in (0, 1))
        lines.append(f"These are: {present}. {OTHER_ROWS} shows: {following}.")
    if picker.acts:
        examples = [f"1 {act} TITLE" if act == "rename" else f"1 {act}" for act in picker.acts]
        lines.append(f"To change one: {', '.join(examples)}.")
    return [*lines, "A number takes it, a word looks for it, an empty line closes:"]


PROMPT = "> "
TICK_SECONDS = 0.1
STATES = {"agent": "working", "shell": "running the command", "compaction": "compacting"}
PROMPT_SECONDS = 0.05
"""How long nothing must have happened before a line is asked for: what was typed may be answered at once."""
WELCOME = "Type a prompt and press Enter. ? lists what else there is."
HELP = """A line is a prompt. What is sent while something runs is queued, and /queue changes it.
A question is a numbered list: type the number.

/help           the commands
!COMMAND        runs in the shell
@PATH           names a file
\\               at the end of a line: it goes on in the next one
/mode, /model   another approval mode, another model
Ctrl+C          interrupts; twice it quits
/exit           quits; Ctrl+D twice does it, too

Backspace, Ctrl+W and Ctrl+U are the terminal's own. Other keys, and those of one's own, are for the other screens."""


class LineKeys(OwnKeys):
    """No key is ours here, so none can be the user's own."""

    def read(self, handle: Callable[[Intent], None]) -> tuple[str, ...]:
        """Name the keys that the terminal knows."""
        handle(intents.KeysLoaded(default_bindings()))
        return ()

    def describe(self, bindings: Bindings) -> str:
        """Return what works here."""
        return HELP


class PlainApp:
    """One session as lines. `opening` opens it; its error is kept in `failure`. `write` takes text for the terminal."""

    def __init__(
        self,
        runtime: LateRuntime,
        opening: Callable[[], Awaitable[None]],
        write: Callable[[str], None],
        *,
        ui: UiSettings,
        columns: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failure: BaseException | None = None
        self._opening = opening
        self._write = write
        self._columns = columns
        self._clock = clock
        self._options = RenderOptions(show_thinking=ui.show_thinking, ascii=True, spoken=True)
        self._prompted = self._continuing = self._sending = False
        self._said_state = ""
        self._said_setting: tuple[str, ...] = ()
        self._hint = ""
        self._queued: list[str] = []
        self._images = 0
        self._ticker: asyncio.TimerHandle | None = None
        self._asker: asyncio.TimerHandle | None = None
        self._ended = asyncio.Event()
        self._work: set[asyncio.Task[None]] = set()
        self.runner = Runner(runtime, self.apply, clock, columns=columns, own_keys=LineKeys(runtime.home))
        self.printer = Printer(lambda: self._options)
        self._menus = Menus(self.runner, columns, self._options)
        self._caller = self._reach_caller(ui)

    def _reach_caller(self, ui: UiSettings) -> Alerts:
        """Return what rings, or runs the user's own command, when an answer is waited for: nothing else of it."""
        wanted = "command" if ui.notifications is True and ui.notification_command else ui.notifications
        wanted = "bell" if wanted in (True, "terminal") else wanted
        return Alerts(
            lambda: self.runner.state,
            lambda sequence: None if os.environ.get("TERM", "") in IMMOVABLE else self._write(sequence),
            self._spawn,
            lambda text, _style: self._say([sanitize_line(text)]),
            lambda _spans: None,
            ui=replace(ui, notifications=wanted, title=False, progress=False, status_command="", status_items=()),
            environ=os.environ,
            clock=self._clock,
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    # --- life ---

    async def run(self) -> None:
        """Open the session and take lines until the user leaves."""
        self.runner.start()
        self._say([WELCOME])
        loop = asyncio.get_running_loop()
        before = signal.getsignal(signal.SIGINT)
        loop.add_signal_handler(signal.SIGINT, self._cancel)
        opening = loop.create_task(self._open(), name="open")
        try:
            with LineReader(self.take_line, self.take_paste, self.take_cut, self._end_input, self.leave):
                await self._ended.wait()
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, before)
            for task in (opening, *self._work):
                task.cancel()
            await asyncio.gather(opening, *self._work, return_exceptions=True)
            for timer in (self._ticker, self._asker):
                if timer is not None:
                    timer.cancel()
            self._print([line.text for line in self.printer.take_rest(self._columns)])
            self._write("\n" if self._prompted else "")
            await self.runner.close()

    async def _open(self) -> None:
        try:
            await self._opening()
        except Exception as error:  # noqa: BLE001 - it ends the app, and the caller says it
            self.failure = error
            self._ended.set()
        self._show()

    def leave(self) -> None:
        """Quit now, in order."""
        self.runner.handle(intents.Leave())

    # --- lines in ---

    def _cancel(self) -> None:
        """Ctrl+C: the terminal has shown it as `^C`, and what is said of it is a line of its own."""
        self._write("\n")
        self._prompted = False
        self.runner.handle(intents.Cancel())

    def _end_input(self) -> None:
        self.runner.handle(intents.EndOfInput())

    def take_line(self, line: str) -> None:
        """Take what the user has typed: an answer where something is asked, else a prompt."""
        self._prompted = False
        if not self._menus.take(line, self._clock(), self._say):
            self._send(line)
        self._show()

    def take_paste(self, lines: list[str]) -> None:
        """Take lines that came at once: one prompt, which is sent when the user presses Enter (R-099)."""
        if wanted_answer(self.runner.state):
            for line in lines:
                self.take_line(line)
            return
        text = self.runner.state.draft.text + "".join(f"{line}\n" for line in lines)
        self._keep(text, [f"{len(lines)} lines were pasted. Enter sends them; what you type before goes behind them."])
        self._continuing = True

    def take_cut(self, line: str) -> None:
        """Take a line that was longer than what the terminal keeps of one: not to be sent as if it were whole."""
        said = f"The terminal keeps {len(line.encode()):,} bytes of a line, and drops the rest. Nothing was sent."
        self._keep(line, [said, "A long text is best in a file: @PATH. An empty line sends what there is."])

    def _keep(self, text: str, said: list[str]) -> None:
        self._prompted = False
        self._sending = True  # it stands there already
        self.runner.handle(intents.DraftChanged(text, len(text)))
        self._sending = False
        self._say(said)

    def _send(self, line: str) -> None:
        if line.strip() == "?" and not self._continuing:
            self._say(HELP.split("\n"))
        elif self._continuing or not self.runner.take_images(line, self._send_text):
            self._send_text(line)

    def _send_text(self, line: str) -> None:
        state = self.runner.state
        self._sending = True
        if state.draft.text and not self._continuing and line.strip():
            self.runner.handle(intents.SendText(line))
        else:
            text = state.draft.text + line if line else state.draft.text.removesuffix("\n")
            self.runner.handle(intents.DraftChanged(text, len(text)))
            self.runner.handle(intents.SendDraft())
        self._sending = False
        self._continuing = line.endswith("\\")

    # --- effects ---

    def apply(self, effects: list[ScreenEffect]) -> None:
        """Carry out what the machine asks for, as lines."""
        state = self.runner.state
        for effect in effects:
            match effect:
                case screen_effects.ItemAdded(id=item_id):
                    item = state.transcript.get(item_id)
                    # What was typed stands there already.
                    if item is not None and not (self._sending and isinstance(item, UserItem)):
                        self.printer.add(item)
                case screen_effects.ItemRemoved(id=item_id):
                    self.printer.remove(item_id)
                case screen_effects.TranscriptReset():
                    title = sanitize_line(state.status.title) or state.session_id
                    self.printer.reset(state.transcript.ordered(), title, self._columns)
                case screen_effects.DraftSet(text=text) if text and not self._sending:
                    self._say([f"Not sent: {sanitize_for_terminal(text)}", "An empty line sends it."])
                case screen_effects.Toast(text=text):
                    self._say([sanitize_line(text)])
                case screen_effects.OpenEditor():
                    self._say(["There is no editor here; type the prompt as lines."])
                case outcomes.EditFile(path=path):
                    self._say([f"There is no editor here; the file is {path}"])
                case screen_effects.Quit():
                    self._ended.set()
                case _:
                    self._serve_reader(effect)
        self._show()

    def _serve_reader(self, effect: ScreenEffect) -> None:
        match effect:
            case outcomes.Copy(text=text):
                self._spawn(self._copy(text))
            case screen_effects.Bell():
                self._caller.call(effect)
            case outcomes.Page(path=path):
                self._say(read_page(Path(path)).split("\n"))
            case outcomes.SetMouse():
                self._say(["The mouse is the terminal's own here."])
            case _:
                pass

    async def _copy(self, text: str) -> None:
        result = await copy_text(text, os.environ)
        if os.environ.get("TERM", "") not in IMMOVABLE:
            self._write(result.sequence)
        self._say([result.message])

    def _show(self) -> None:
        """Print what is new: blocks, states, questions; and the prompt where a line is waited for."""
        state = self.runner.state
        self._print([line.text.rstrip() for line in self.printer.take(self._columns)])
        self._print(self._settings())
        top = state.spinner.top
        said = STATES[top.kind] if top is not None else ""
        if said != self._said_state:
            self._said_state = said
            self._print([f"({said})"] if said else [])
        hint = state.hint.text if state.hint is not None else ""
        if hint != self._hint:
            self._hint = hint
            self._print([sanitize_line(hint)] if hint else [])
        queued = [row.text for row in state.queue]
        self._print([f"queued: {sanitize_line(text)}" for text in queued[len(self._queued) :]])
        self._queued = queued
        images = [image_words(image, number) for number, image in enumerate(state.draft.images, 1)]
        self._print([f"{chip} goes along with the next prompt" for chip in images[self._images :]])
        self._images = len(images)
        self._print(self._menus.news())
        if self._asker is not None:
            self._asker.cancel()
        self._asker = asyncio.get_running_loop().call_later(PROMPT_SECONDS, self._ask)
        self._watch_time()

    def _settings(self) -> list[str]:
        """Return a line about model and mode where they are others than was said: nothing shows them here."""
        status = self.runner.state.status
        model = ":".join(filter(None, (sanitize_line(status.model), status.effort)))
        present = (f"model {model}", f"mode {status.mode}") if self.runner.state.session_id else ()
        changed = [part for part in present if part not in self._said_setting]
        self._said_setting = present or self._said_setting
        return [f"({', '.join(changed)})"] if changed else []

    def _ask(self) -> None:
        """Show that a line is waited for, if nothing goes on and nothing else is asked."""
        state = self.runner.state
        busy = state.running or state.echoes or not state.session_id
        if not busy and not self._prompted and not wanted_answer(state) and not self._ended.is_set():
            self._write(PROMPT)
            self._prompted = True

    def _say(self, lines: Sequence[str]) -> None:
        self._print(lines)
        self._show()

    def _print(self, lines: Sequence[str]) -> None:
        if lines:
            self._write(("\n" if self._prompted else "") + "\n".join(lines) + "\n")
            self._prompted = False

    # --- time ---

    def _watch_time(self) -> None:
        if self.runner.state.animating and self._ticker is None and not self._ended.is_set():
            self._ticker = asyncio.get_running_loop().call_later(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        self._ticker = None
        self.runner.handle(intents.Tick())
        self._show()


def run_plain(start: Start, prompt: str = "", *, choose: bool = False) -> int:
    """Run the front-end of plain lines and return the exit code."""
    settings, _ = load_settings(start.home, start.cwd, start.environ)
    noise = noise_file(start.home)
    with borrow_terminal(str(noise), restore="") as terminal:
        texts = opening_texts(prompt, choose=choose)
        ended = asyncio.run(_run(start, texts, settings.ui, terminal))
    return ended.report(noise)


async def _run(start: Start, texts: list[str], ui: UiSettings, terminal: Terminal) -> Ended:
    late = LateRuntime(start.home, temporary=start.temporary)
    opening = Opening(start, late, texts, greets=False)

    async def open_session() -> None:
        await opening.open(app.runner.submit_user_input)

    try:
        columns = os.get_terminal_size(terminal.output.fileno()).columns or 80
    except OSError:
        columns = 80
    app = PlainApp(late, open_session, terminal.writer.write, ui=ui, columns=columns)
    with leave_on_signals(asyncio.get_running_loop(), app.leave) as signals:
        await app.run()
        terminal.writer.close(WRITE_SECONDS)
        hint = await opening.close(app.runner.state)
    return Ended(SIGNAL + signals[0] if signals else 1 if app.failure else 0, hint, app.failure)
