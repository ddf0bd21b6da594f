"""vi's keys for the prompt: keys go in, another text and cursor come out. Pure; the screens' editors hold the text."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from tenuto.tui.complete.paste import mark_at
from tenuto.tui.keys.line_editor import stop_after, stop_before
from tenuto.tui.keys.motions import (
    OBJECTS,
    Motion,
    Span,
    find_in_line,
    find_object,
    first_word,
    last_place,
    line_end,
    line_start,
    move,
    resting,
)

Mode = Literal["insert", "normal", "visual", "visual line"]
OPERATORS = "dcy"
FINDS = "fFtT"
MOTIONS = frozenset("hlwWbBeE0^$jkG;,")
PLAIN = frozenset("iaIAoOxXsSDCYpPu.~JvV")
"""Commands of one character."""
VISUAL = frozenset("dxcsy~uUJpPovVDXCSRY")
BY_LINES = {"D": "d", "X": "d", "C": "c", "S": "c", "R": "c", "Y": "y"}
"""What takes whole lines of what is selected, whatever the mode."""
KNOWN = frozenset("dcygrfFtT123456789 /!@#")
"""What else begins one."""
INTO_INSERT = frozenset("/!@#")
"""On an empty prompt these begin a command, a mention, a note, whatever the mode."""
SAME = {"x": "dl", "X": "dh", "s": "cl", "S": "cc", "D": "d$", "C": "c$", "Y": "yy"}
MAX_COUNT = 9_999
MAX_UNDO = 100

Snapshot = tuple[str, int]


class Command(Struct, frozen=True):
    """One whole command: `count` is `None` where none was typed; `argument` is the character that `f` or `r` took."""

    name: str
    operator: str = ""
    count: int | None = None
    argument: str = ""

    @property
    def times(self) -> int:
        """How often."""
        return self.count or 1


def parse(keys: str) -> Command | Literal["invalid"] | None:
    """Return the command that the keys are, `None` while it goes on."""
    count, rest = _read_count(keys)
    operator = ""
    if rest[:1] and rest[0] in OPERATORS:
        operator = rest[0]
        second, rest = _read_count(rest[1:])
        if second is not None:
            count = min((count or 1) * second, MAX_COUNT)
    if not rest:
        return None
    name, argument = rest[0], rest[1:2]
    takes_more = name in FINDS or name == "g" or (name == "r" and not operator) or (name in "ia" and operator)
    if takes_more:
        if not argument:
            return None
        if name == "g":
            return Command("gg", operator, count) if argument == "g" else "invalid"
        if name in "ia":
            return Command(name + argument, operator, count) if argument in OBJECTS else "invalid"
        return Command(name, operator, count, argument)
    if operator:
        return Command(name, operator, count) if name in MOTIONS or name == operator else "invalid"
    return Command(name, "", count) if name in MOTIONS | PLAIN else "invalid"


def _read_count(keys: str) -> tuple[int | None, str]:
    end = 0
    while end < len(keys) and keys[end] in "0123456789" and (end or keys[0] != "0"):
        end += 1
    return (min(int(keys[:end][:5]), MAX_COUNT) if end else None), keys[end:]


class Step(Struct, frozen=True):
    """What the text and its cursor are now."""

    text: str
    cursor: int


class Area(Struct, frozen=True):
    """What was selected when it was changed: how many `lines`, and characters of the last one; `whole` lines or not."""

    lines: int
    characters: int
    whole: bool


class Change(Struct, frozen=True):
    """The last change: its `keys`, what was `typed` behind them, the `area` where something was selected."""

    keys: str = ""
    typed: str = ""
    area: Area | None = None


class Vim(Struct):
    """Holds what vi remembers: the mode, what was typed of a command, one register, the last change, what was before.

    `anchor` is where the visual mode began.
    """

    mode: Mode = "insert"
    keys: str = ""
    anchor: int = 0
    register: str = ""
    has_lines: bool = False
    goal: int | None = None
    found: tuple[str, str] = ("", "")
    change: Change = Change()
    area: Area | None = None
    """What is selected while it is acted on."""
    begun: Snapshot = ("", 0)
    """The text before the insertion that goes on."""
    typed_from: Snapshot = ("", 0)
    """The text in which the insertion began, and where."""
    undone: list[Snapshot] = field(default_factory=list[Snapshot])
    before: list[Snapshot] = field(default_factory=list[Snapshot])

    @property
    def label(self) -> str:
        """What the footer says."""
        return f"{self.mode.upper()} {self.keys}".rstrip()

    def knows(self, character: str) -> bool:
        """Whether a character begins a command of the normal mode."""
        return character in KNOWN or character in MOTIONS or character in PLAIN

    def start_over(self) -> None:
        """A new prompt begins: its text is inserted, and nothing was before."""
        self.mode, self.keys, self.goal = "insert", "", None
        self.begun = self.typed_from = ("", 0)
        self.undone.clear()
        self.before.clear()

    def press(self, key: str, character: str | None, text: str, cursor: int) -> Step | None:
        """Return what a key makes of the text, `None` where the key is not vi's."""
        if self.mode == "insert":
            return self._leave_insert(text, cursor) if key == "escape" else None
        if key == "escape":
            return self._escape(text, cursor)
        if key == "ctrl+r":
            self.keys = ""
            return self._go(self.undone, self.before, text, cursor)
        if character is None:
            self.keys = ""
            return None
        if not text and not self.keys and character in INTO_INSERT:
            self._begin_insert((text, cursor), (text, cursor))
            return None
        self.keys += "l" if character == " " and not self._takes_any() else character
        command = self._parse_visual() if self.is_selecting else parse(self.keys)
        if command is None:
            return Step(text, cursor)
        keys, self.keys = self.keys, ""
        if command == "invalid":
            return Step(text, cursor)
        if self.is_selecting:
            return self._do_visual(command, text, cursor)
        return self._do(command, keys, text, cursor)

    def _takes_any(self) -> bool:
        return self.keys[-1:] != "" and self.keys[-1] in FINDS + "r"

    # --- modes ---

    def _escape(self, text: str, cursor: int) -> Step | None:
        """Leave a command that was begun, or the visual mode; else the key is the screen's."""
        if not self.keys and self.mode == "normal":
            return None
        self.keys, self.mode = "", "normal"
        return Step(text, resting(text, cursor))

    def _begin_insert(self, before: Snapshot, now: Snapshot) -> Step:
        self.mode, self.keys = "insert", ""
        self.begun, self.typed_from = before, now
        return Step(*now)

    def _leave_insert(self, text: str, cursor: int) -> Step:
        self.mode, self.goal = "normal", None
        base, place = self.typed_from
        head, tail = base[:place], base[place:]
        is_typed = len(text) >= len(base) and text.startswith(head) and text.endswith(tail)
        typed = text[len(head) : len(text) - len(tail)] if is_typed else ""
        self.change = replace(self.change, typed=typed)
        if self.begun[0] != text:
            self._remember(self.begun)
        at = max(line_start(text, cursor), stop_before(text, cursor))
        return Step(text, resting(text, at))

    def _remember(self, before: Snapshot) -> None:
        self.before.append(before)
        del self.before[:-MAX_UNDO]
        self.undone.clear()

    def _go(self, source: list[Snapshot], target: list[Snapshot], text: str, cursor: int) -> Step:
        """Undo or redo."""
        if not source:
            return Step(text, cursor)
        target.append((text, cursor))
        then, at = source.pop()
        return Step(then, resting(then, at))

    # --- commands ---

    def _do(self, command: Command, keys: str, text: str, cursor: int) -> Step:
        cursor, self.area = resting(text, cursor), None
        if command.name in SAME and not command.operator:
            same = SAME[command.name]
            command = Command(same[1:], same[0], command.count)
        if command.operator:
            return self._operate(command, keys, text, cursor)
        if command.name in MOTIONS or command.name in FINDS or command.name == "gg":
            motion = self._motion(command, text, cursor)
            if motion is None:
                return Step(text, cursor)
            self.goal = motion.goal
            return Step(text, resting(text, motion.target))
        self.goal = None
        match command.name:
            case "u":
                for _ in range(min(command.times, len(self.before))):
                    step = self._go(self.before, self.undone, text, cursor)
                    text, cursor = step.text, step.cursor
                return Step(text, cursor)
            case ".":
                return self._repeat(command, text, cursor)
            case "v" | "V":
                self.mode, self.anchor = "visual line" if command.name == "V" else "visual", cursor
                return Step(text, cursor)
            case "i" | "a" | "I" | "A" | "o" | "O":
                return self._insert(command, keys, text, cursor)
            case _:
                return self._changed(keys, text, cursor, self._edit(command, text, cursor))

    def _changed(self, keys: str, text: str, cursor: int, made: Step) -> Step:
        """Remember a change that is whole."""
        if made.text != text:
            self._remember((text, cursor))
        if made.text != text or self.area is not None:
            self.change = Change(keys, area=self.area)
        return Step(made.text, resting(made.text, made.cursor))

    def _insert(self, command: Command, keys: str, text: str, cursor: int) -> Step:
        self.change = Change(keys, area=self.area)
        now = text, cursor
        match command.name:
            case "a":
                now = text, min(stop_after(text, cursor), line_end(text, cursor))
            case "I":
                start = first_word(text, cursor)
                now = text, start if text[start : start + 1].strip() else line_end(text, cursor)
            case "A":
                now = text, line_end(text, cursor)
            case "o":
                end = line_end(text, cursor)
                now = f"{text[:end]}\n{text[end:]}", end + 1
            case "O":
                start = line_start(text, cursor)
                now = f"{text[:start]}\n{text[start:]}", start
            case _:
                pass
        return self._begin_insert((text, cursor), now)

    def _edit(self, command: Command, text: str, cursor: int) -> Step:
        """Carry out what changes the text and needs no motion."""
        times = command.times
        match command.name:
            case "r":
                end = cursor
                for _ in range(times):
                    if end >= line_end(text, cursor):
                        return Step(text, cursor)
                    end = stop_after(text, end)
                return Step(text[:cursor] + command.argument * times + text[end:], cursor + times - 1)
            case "~":
                end = min(line_end(text, cursor), cursor + times)
                return Step(text[:cursor] + text[cursor:end].swapcase() + text[end:], end)
            case "J":
                return _join(text, cursor, max(2, times))
            case "p" | "P":
                return self._put(command, text, cursor)
            case _:
                return Step(text, cursor)

    def _piece(self, times: int, *, lines: bool) -> str:
        """Return so many times what is in the register, each in `lines` of its own or not."""
        return ("\n" if lines else "").join([self.register] * times)

    def _put(self, command: Command, text: str, cursor: int) -> Step:
        piece = self._piece(command.times, lines=self.has_lines)
        if not piece and not self.has_lines:
            return Step(text, cursor)
        if self.has_lines:
            if command.name == "p":
                end = line_end(text, cursor)
                made, at = f"{text[:end]}\n{piece}{text[end:]}", end + 1
            else:
                at = line_start(text, cursor)
                made = f"{text[:at]}{piece}\n{text[at:]}"
            return Step(made, first_word(made, at))
        at = cursor if command.name == "P" or not text else min(stop_after(text, cursor), line_end(text, cursor))
        made = text[:at] + piece + text[at:]
        return Step(made, at if "\n" in piece else stop_before(made, at + len(piece)))

    def _repeat(self, command: Command, text: str, cursor: int) -> Step:
        keys, typed = self.change.keys, self.change.typed
        if self.change.area is not None:
            return self._repeat_on(self.change.area, self.change, text, cursor)
        again = parse(keys)
        if again is None or again == "invalid":
            return Step(text, cursor)
        if command.count is not None:
            again = Command(again.name, again.operator, command.count, again.argument)
        return self._retype(typed, self._do(again, keys, text, cursor))

    def _repeat_on(self, area: Area, change: Change, text: str, cursor: int) -> Step:
        """Do again what was done to something selected: to as much, from the cursor on."""
        self.area = area
        end = cursor
        for _ in range(area.lines - 1):
            end = min(len(text), line_end(text, end) + 1)
        last = line_start(text, end) + area.characters if area.lines > 1 else cursor + area.characters
        last = min(last, line_end(text, end) + 1, len(text))
        span = (
            (cursor, last)
            if area.lines == 1 or cursor < last
            else (max(0, last - 1), min(len(text), stop_after(text, cursor)))
        )
        if area.whole:
            span = line_start(text, cursor), line_end(text, end)
        command = Command(change.keys[0], argument=change.keys[1:])
        return self._retype(change.typed, self._act_on(command, text, cursor, _whole_marks(text, span), area.whole))

    def _retype(self, typed: str, done: Step) -> Step:
        """Type what was typed behind a change that is done again."""
        if self.mode != "insert":
            return done
        head, tail = done.text[: done.cursor], done.text[done.cursor :]
        return self._leave_insert(head + typed + tail, done.cursor + len(typed))

    # --- motions and operators ---

    def _motion(self, command: Command, text: str, cursor: int) -> Motion | None:
        name, argument, again = command.name, command.argument, False
        if name in ";,":
            name, argument = self.found
            if not name:
                return None
            again = True
            if command.name == ",":
                name = name.swapcase()
        elif name in FINDS:
            self.found = name, argument
        if name in FINDS:
            target = find_in_line(text, cursor, name, argument, command.times, again=again)
            return None if target is None else Motion(target, "inclusive" if name in "ft" else "exclusive")
        return move(name, text, cursor, command.count, self.goal, stays=bool(command.operator))

    def _operate(self, command: Command, keys: str, text: str, cursor: int) -> Step:
        span, lines = self._span(command, text, cursor)
        self.goal = None
        if span is None:
            return Step(text, 0 if command.name in "bB" else cursor)
        begin, end = _whole_marks(text, span)
        if command.operator == "y":
            self.register, self.has_lines = text[begin:end], lines
            if lines:
                motion = None if command.name == "y" else self._motion(command, text, cursor)
                begin = cursor if motion is None else min(cursor, motion.target)
            return Step(text, resting(text, begin))
        return self._take(command.operator, keys, text, cursor, (begin, end), lines=lines)

    def _take(self, operator: str, keys: str, text: str, cursor: int, span: Span, *, lines: bool) -> Step:
        """Cut a span; with `c` what is typed comes into its place."""
        begin, end = span
        if begin < end or lines or keys.endswith("$"):
            self.register, self.has_lines = text[begin:end], lines
        if operator == "d" and not lines and self.area is None and _is_all_of_lines(text, begin, end):
            begin, end, lines = line_start(text, begin), line_end(text, end), True
            self.register, self.has_lines = text[begin:end], True
        if operator == "c":
            self.change = Change(keys, area=self.area)
            return self._begin_insert((text, cursor), (text[:begin] + text[end:], begin))
        if not lines:
            return self._changed(keys, text, cursor, Step(text[:begin] + text[end:], begin))
        if end < len(text):
            end += 1
        elif begin:
            begin -= 1
        made = text[:begin] + text[end:]
        return self._changed(keys, text, cursor, Step(made, first_word(made, min(begin, len(made)))))

    def _span(self, command: Command, text: str, cursor: int) -> tuple[Span | None, bool]:
        """Return what an operator takes, and whether that is whole lines."""
        if command.name == command.operator:
            below = move("j", text, cursor, command.times - 1) if command.times > 1 else Motion(cursor)
            if below is None:
                return None, True
            return (line_start(text, cursor), line_end(text, below.target)), True
        if command.name[0] in "ia" and len(command.name) == 2:
            return find_object(command.name, text, cursor, command.times), False
        if command.operator == "c" and command.name in "wW" and text[cursor : cursor + 1].strip():
            return (cursor, _end_of_words(command, text, cursor)), False
        motion = self._motion(command, text, cursor)
        if motion is None:
            return None, False
        first, last = sorted((cursor, motion.target))
        if motion.kind == "lines":
            return (line_start(text, first), line_end(text, last)), True
        if motion.kind == "inclusive":
            return (first, min(stop_after(text, last), line_end(text, last))), False
        return _exclusive(text, first, last)

    # --- visual ---

    def _parse_visual(self) -> Command | Literal["invalid"] | None:
        count, rest = _read_count(self.keys)
        if not rest:
            return None
        if rest[0] in VISUAL:
            return Command(rest[0], "", count)
        if rest[0] in "ia":
            whole = len(rest) > 1
            return None if not whole else Command(rest, "", count) if rest[1] in OBJECTS else "invalid"
        if rest[0] == "r":
            return Command("r", "", count, rest[1]) if len(rest) > 1 else None
        found = parse(self.keys)
        is_motion = isinstance(found, Command) and (found.name in MOTIONS or found.name in FINDS or found.name == "gg")
        return found if found is None or is_motion else "invalid"

    @property
    def is_selecting(self) -> bool:
        """Whether there is something selected."""
        return self.mode in ("visual", "visual line")

    def selected(self, text: str, cursor: int) -> Span:
        """Return what is selected: the character under the cursor too, or whole lines without the last line feed."""
        first, last = sorted((min(self.anchor, len(text)), cursor))
        if self.mode == "visual line":
            return line_start(text, first), line_end(text, last)
        return first, min(len(text), stop_after(text, last))

    def _do_visual(self, command: Command, text: str, cursor: int) -> Step:
        name = command.name
        if name in "vV":
            wanted: Mode = "visual" if name == "v" else "visual line"
            self.mode = "normal" if self.mode == wanted else wanted
            return Step(text, cursor if self.is_selecting else resting(text, cursor))
        if name == "o":
            cursor, self.anchor = min(self.anchor, len(text)), cursor
            return Step(text, cursor)
        if len(name) == 2 and name[0] in "ia":
            span = find_object(name, text, cursor, command.times)
            if span is not None and span[0] < span[1]:
                self.mode, self.anchor = "visual", span[0]
                cursor = stop_before(text, span[1])
            return Step(text, cursor)
        if name in VISUAL or name == "r":
            if name in BY_LINES:
                self.mode, command = "visual line", Command(BY_LINES[name])
            return self._act_on_selected(command, text, cursor)
        motion = self._motion(command, text, cursor)
        if motion is None:
            return Step(text, cursor)
        self.goal = motion.goal
        at = motion.target if self.goal is None else line_start(text, motion.target) + self.goal
        return Step(text, min(at, line_end(text, motion.target)))

    def _act_on_selected(self, command: Command, text: str, cursor: int) -> Step:
        span, whole = self.selected(text, cursor), self.mode == "visual line"
        begin, end = _whole_marks(text, span)
        last = end if whole else max(begin, end - 1)
        lines = text.count("\n", begin, last) + 1
        self.area = Area(lines, max(1, end - (begin if lines == 1 else line_start(text, last))), whole)
        self.mode, self.goal = "normal", None
        if whole and (lines == 1 or self.anchor < cursor):
            cursor = begin
        return self._act_on(command, text, cursor, (begin, end), whole)

    def _act_on(self, command: Command, text: str, cursor: int, span: Span, whole: bool) -> Step:
        """Change what is or was selected, `whole` lines or not."""
        begin, end = span
        keys, piece = command.name + command.argument, text[begin:end]
        at = cursor if whole else begin
        match command.name:
            case "d" | "x":
                return self._take("d", keys, text, cursor, span, lines=whole)
            case "c" | "s":
                return self._take("c", keys, text, cursor, span, lines=whole)
            case "y":
                self.register, self.has_lines = piece, whole
                return Step(text, resting(text, at))
            case "~":
                piece = piece.swapcase()
            case "u":
                piece = piece.lower()
            case "U":
                piece = piece.upper()
            case "r":
                piece, at = "".join(one if one == "\n" else command.argument for one in piece), begin
            case "J":
                joined = _join(text, begin, max(2, text.count("\n", begin, end if whole else end - 1) + 1))
                return self._changed(keys, text, cursor, joined if joined.text != text else Step(text, at))
            case _:
                return self._put_over(command, text, cursor, span, whole)
        return self._changed(keys, text, cursor, Step(text[:begin] + piece + text[end:], at))

    def _put_over(self, command: Command, text: str, cursor: int, span: Span, whole: bool) -> Step:
        """Put the register in the place of a span, which goes into the register."""
        begin, end = span
        own_lines = self.has_lines and not whole
        piece = self._piece(command.times, lines=self.has_lines or whole)
        piece = f"\n{piece}\n" if own_lines else piece
        made = text[:begin] + piece + text[end:]
        at = begin if whole else max(begin, begin + len(piece) - 1)
        if self.has_lines:
            at = first_word(made, begin + own_lines)
        if command.name == "p" and (begin < end or whole):
            self.register, self.has_lines = text[begin:end], whole
        return self._changed(command.name, text, cursor, Step(made, at))


def _whole_marks(text: str, span: Span) -> Span:
    """Return a span that takes no mark of a paste apart."""
    begin, end = span
    first, last = mark_at(text, begin), mark_at(text, end)
    if first is not None and first[0] < begin < first[1]:
        begin = first[0]
    if last is not None and last[0] < end < last[1]:
        end = last[1]
    return begin, end


def _exclusive(text: str, first: int, last: int) -> tuple[Span, bool]:
    """Return what a motion takes that stops before its end, and whether that is whole lines.

    A line end that it has only just crossed stays; from within the indentation the lines before it go as a whole.
    """
    start = line_start(text, first)
    if last > first and last == line_start(text, last) and start < last:
        last -= 1
        if not text[start:first].strip():
            return (start, last), True
    return (first, last), False


def _end_of_words(command: Command, text: str, cursor: int) -> int:
    """Return where the words end that `cw` replaces: it leaves the blanks behind them."""
    big, at = command.name == "W", cursor
    for number in range(command.times):
        found = move("E" if big else "e", text, at if number else at - 1, 1)
        assert found is not None
        at = found.target
    return min(len(text), stop_after(text, at))


def _is_all_of_lines(text: str, begin: int, end: int) -> bool:
    """Say whether a span of several lines leaves nothing but blanks of them: then the lines go as well."""
    blank = not text[line_start(text, begin) : begin].strip() and not text[end : line_end(text, end)].strip()
    return blank and "\n" in text[begin:end]


def _join(text: str, cursor: int, count: int) -> Step:
    """Return the text with so many lines made one."""
    at = cursor
    for _ in range(count - 1):
        end = line_end(text, cursor)
        if end >= len(text):
            break
        rest = text[end + 1 :]
        bare = rest.lstrip(" \t")
        glue = "" if not bare or bare[0] in "\n)" or end == 0 or text[end - 1] in " \t\n" else " "
        text, at = text[:end] + glue + bare, end
    return Step(text, min(at, last_place(text, cursor)))
