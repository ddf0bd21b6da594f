"""Words of a line as bash reads them: quotes, backslashes, expansions. Strict: what has two readings is refused."""

from __future__ import annotations

import re
import unicodedata
from abc import ABC, abstractmethod

from tenuto.guard.shell.syntax import (
    Piece,
    ProcessSubstitution,
    Sequence,
    Substitution,
    Sum,
    Text,
    UnreadableError,
    Variable,
    Word,
)

MAX_CHARS = 20_000
"""A longer line is not read: nobody would look at it either."""
_ENDS_WORD = frozenset(" \t\n|&;()<>")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PARAMETER = re.compile(r"[0-9@*#?$!-]")
_BRACED = re.compile(r"\$\{(#?)([A-Za-z_][A-Za-z0-9_]*)((?::?[-+?]|##?|%%?)[^$`\\'\"{}]*)?\}")
"""Expansions in braces that run nothing and assign nothing."""
_SUM = re.compile(r"\$\(\([0-9 +*/%()-]*\)\)")
_ANSI = {"n": "\n", "t": "\t", "\\": "\\", "'": "'", '"': '"'}
_FORBIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_BLANK_BYTES = (b"\x85", b"\xa0")
"""Bytes that some systems take for blanks, in whatever character they stand."""
_INVISIBLE = frozenset({"Zs", "Zl", "Zp", "Cf", "Cc", "Cs", "Co", "Cn"})


def check_characters(text: str) -> None:
    """Raises `UnreadableError` for a line with characters that no honest line has, or too many."""
    if len(text) > MAX_CHARS:
        raise UnreadableError("the line is very long")
    if _FORBIDDEN.search(text):
        raise UnreadableError("it has control characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnreadableError("it has characters that cannot be encoded") from None


class Lexer(ABC):
    """A place in a line. `end` is where reading stops: the line's, or that of backquotes."""

    def __init__(self, text: str, start: int, end: int) -> None:
        self.source = text
        self.at = start
        self.end = end

    @abstractmethod
    def read_substitution(self) -> Sequence:
        """Read commands up to a closing bracket, from behind the opening one, and go behind it."""

    @abstractmethod
    def read_backquoted(self, start: int, end: int) -> Sequence:
        """Read the commands of a part of the line."""

    def peek(self, count: int = 1) -> str:
        """Return the next characters, fewer at the end."""
        return self.source[self.at : min(self.at + count, self.end)]

    def skip_blanks(self) -> None:
        """Go to the next word or operator: over blanks, continued lines and a comment."""
        while True:
            if self.peek() in (" ", "\t"):
                self.at += 1
            elif self.peek(2) == "\\\n":
                self.at += 2
            elif self.peek() == "#":
                newline = self.source.find("\n", self.at, self.end)
                self.at = self.end if newline < 0 else newline
            else:
                return

    def read_word(self) -> Word | None:
        """Return the word that begins here, `None` where an operator or the end is."""
        start = self.at
        pieces: list[Piece] = []
        while self.at < self.end:
            char = self.source[self.at]
            if char in "<>" and self.peek(2) in ("<(", ">(") and not pieces:
                pieces.append(self._process_substitution())
            elif char in _ENDS_WORD:
                break
            elif char == "'":
                pieces.append(Text(self._single_quoted(), quoted=True))
            elif char == '"':
                pieces += self._double_quoted()
            elif char == "\\":
                if not self._escape(pieces):
                    continue
            elif char in "$`":
                pieces.append(self._expansion(quoted=False))
            else:
                pieces.append(Text(self._plain_run(), quoted=False))
        if self.at == start:
            return None
        return self._finish(pieces, start)

    def _finish(self, pieces: list[Piece], start: int) -> Word:
        word = Word(tuple(joined(pieces)), start, self.at)
        if re.match(r"![^=]", word.bare):
            raise UnreadableError("a word begins with !")
        if not word.bare.isascii():
            _check_visible(word)
        return word

    def _plain_run(self) -> str:
        start = self.at
        while self.at < self.end and self.source[self.at] not in "'\"\\$`" and self.source[self.at] not in _ENDS_WORD:
            self.at += 1
        return self.source[start : self.at]

    def _escape(self, pieces: list[Piece]) -> bool:
        following = self.source[self.at + 1 : self.end][:1]
        if not following:
            raise UnreadableError("it ends with a backslash")
        self.at += 2
        if following == "\n":
            return False
        pieces.append(Text(following, quoted=True))
        return True

    def _single_quoted(self) -> str:
        close = self.source.find("'", self.at + 1, self.end)
        if close < 0:
            raise UnreadableError("a quote is not closed")
        text = self.source[self.at + 1 : close]
        self.at = close + 1
        return text

    def _double_quoted(self) -> list[Piece]:
        self.at += 1
        pieces = self.read_quoted_text('"')
        if self.peek() != '"':
            raise UnreadableError("a quote is not closed")
        self.at += 1
        return pieces or [Text("", quoted=True)]

    def read_quoted_text(self, closing: str) -> list[Piece]:
        """Read text as in double quotes, up to `closing` or, without one, to the end (a here-document)."""
        pieces: list[Piece] = []
        while self.at < self.end:
            char = self.source[self.at]
            if char == closing:
                break
            if char == "\\":
                following = self.source[self.at + 1 : self.end][:1]
                if not following:
                    raise UnreadableError("it ends with a backslash")
                self.at += 2
                if following == "\n":
                    continue
                is_escape = following in "$`\\" or following == closing
                pieces.append(Text(following if is_escape else f"\\{following}", quoted=True))
            elif char in "$`":
                pieces.append(self._expansion(quoted=True))
            else:
                start = self.at
                while self.at < self.end and self.source[self.at] not in ("\\", "$", "`", closing):
                    self.at += 1
                pieces.append(Text(self.source[start : self.at], quoted=True))
        return pieces

    def _expansion(self, *, quoted: bool) -> Piece:
        if self.peek() == "`":
            return self._backquotes(quoted=quoted)
        after = self.peek(2)[1:]
        if after == "(":
            return self._bracketed(quoted=quoted)
        if after == "{":
            return self._braced(quoted=quoted)
        if after == "[":
            raise UnreadableError("it calculates")
        if after == "'" and not quoted:
            return Text(self._ansi_quoted(), quoted=True)
        if after == '"' and not quoted:
            raise UnreadableError("it has translated text")
        self.at += 1
        match = _NAME.match(self.source, self.at, self.end) or _PARAMETER.match(self.source, self.at, self.end)
        if match is None:
            return Text("$", quoted=True)
        self.at = match.end()
        return Variable(match[0], quoted=quoted)

    def _bracketed(self, *, quoted: bool) -> Piece:
        if self.peek(3) == "$((":
            match = _SUM.match(self.source, self.at, self.end)
            if match is None:
                raise UnreadableError("it calculates")
            self.at = match.end()
            return Sum(quoted=quoted)
        self.at += 2
        return Substitution(self.read_substitution(), quoted=quoted)

    def _braced(self, *, quoted: bool) -> Piece:
        match = _BRACED.match(self.source, self.at, self.end)
        if match is None:
            raise UnreadableError("an expansion in braces does more than look up a name")
        self.at = match.end()
        return Variable(match[2], quoted=quoted, changed=bool(match[1] or match[3]))

    def _ansi_quoted(self) -> str:
        self.at += 2
        chars: list[str] = []
        while True:
            char = self.peek()
            if not char:
                raise UnreadableError("a quote is not closed")
            self.at += 1
            if char == "'":
                return "".join(chars)
            if char == "\\":
                char = _ANSI.get(self.peek(), "")
                if not char:
                    raise UnreadableError("it has characters in codes")
                self.at += 1
            chars.append(char)

    def _backquotes(self, *, quoted: bool) -> Piece:
        close = self.source.find("`", self.at + 1, self.end)
        inside = self.source[self.at + 1 : close]
        if close < 0 or "\\" in inside or (quoted and '"' in inside):
            raise UnreadableError("backquotes have more than one reading")
        body = self.read_backquoted(self.at + 1, close)
        self.at = close + 1
        return Substitution(body, quoted=quoted)

    def _process_substitution(self) -> Piece:
        reads = self.peek() == "<"
        self.at += 2
        return ProcessSubstitution(self.read_substitution(), reads=reads)


def joined(pieces: list[Piece]) -> list[Piece]:
    """Return the pieces with neighbouring texts of one kind put together."""
    found: list[Piece] = []
    for piece in pieces:
        last = found[-1] if found else None
        if isinstance(piece, Text) and isinstance(last, Text) and piece.quoted == last.quoted:
            found[-1] = Text(last.text + piece.text, piece.quoted)
        else:
            found.append(piece)
    return found


def _check_visible(word: Word) -> None:
    """Outside of quotes, no character that looks like a blank or like nothing, to a user or to some system's shell."""
    for piece in word.pieces:
        if isinstance(piece, Text) and not piece.quoted:
            if any(unicodedata.category(char) in _INVISIBLE for char in piece.text):
                raise UnreadableError("it has blanks or invisible characters that are not ASCII")
            if any(byte in piece.text.encode() for byte in _BLANK_BYTES):
                raise UnreadableError("it has a character outside of quotes that some systems take for a blank")
