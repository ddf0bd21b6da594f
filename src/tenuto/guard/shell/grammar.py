"""Commands of a line: lists, pipes, groups, conditions and loops, by the words that `lexer.py` reads."""

from __future__ import annotations

import re
from typing import cast

from tenuto.guard.shell.lexer import Lexer, check_characters
from tenuto.guard.shell.syntax import (
    AndOr,
    Assignment,
    Case,
    CaseBranch,
    For,
    Group,
    If,
    Node,
    Pipeline,
    Redirection,
    RedirectionKind,
    Sequence,
    Simple,
    Text,
    UnreadableError,
    While,
    Word,
)

MAX_DEPTH = 12
_OPERATOR = re.compile(r"\|\||\|&|\||&&|&(?!>)|;;&|;;|;&|;|\(|\)|\n")
_REDIRECTION = re.compile(r"<<<|<<-|<<|<&|<>|<|&>>|&>|>>|>\||>&|>")
_DIGITS = re.compile(r"[0-9]+(?=[<>])")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CLOSING = frozenset({"then", "else", "elif", "fi", "do", "done", "}", "esac", "in", "]]"})
_NOT_READ = {
    "select": "it has a select loop",
    "function": "it defines a function",
    "coproc": "it starts a coprocess",
    "time": "it measures time",
}
_RESERVED = _CLOSING | _NOT_READ.keys() | {"!", "{", "if", "while", "until", "for", "case", "[["}
_BRANCH_ENDS = (";;&", ";;", ";&")


def read_grammar(text: str) -> Sequence:
    """Return the commands of a line. Raises `UnreadableError`."""
    check_characters(text)
    reader = _Reader(text, 0, len(text), 0)
    body = reader.read_list(frozenset())
    if reader.at < reader.end:
        raise UnreadableError("it is not complete")
    return body


class _Reader(Lexer):
    def __init__(self, text: str, start: int, end: int, depth: int) -> None:
        super().__init__(text, start, end)
        self.depth = depth
        self._documents: list[Redirection] = []
        if depth > MAX_DEPTH:
            raise UnreadableError("it is nested too deep")

    def read_substitution(self) -> Sequence:
        inner = _Reader(self.source, self.at, self.end, self.depth + 1)
        body = inner.read_list(frozenset({")"}))
        if inner.peek() != ")":
            raise UnreadableError("a substitution is not closed")
        self.at = inner.at + 1
        return body

    def read_backquoted(self, start: int, end: int) -> Sequence:
        inner = _Reader(self.source, start, end, self.depth + 1)
        body = inner.read_list(frozenset())
        if inner.at < end:
            raise UnreadableError("backquotes have more than one reading")
        return body

    def _operator(self) -> str:
        self.skip_blanks()
        match = _OPERATOR.match(self.source, self.at, self.end)
        return match[0] if match else ""

    def _take(self, *wanted: str) -> str:
        found = self._operator()
        if found not in wanted or not found:
            return ""
        self.at += len(found)
        if found == "\n":
            self._read_documents()
        return found

    def _skip_newlines(self) -> None:
        while self._take("\n"):
            pass

    def _keyword(self) -> str:
        """Return the unquoted word that comes next, without going behind it."""
        self.skip_blanks()
        start = self.at
        match = re.compile(r"[a-z{}!\[\]]+").match(self.source, start, self.end)
        if match is None or (match.end() < self.end and self.source[match.end()] not in " \t\n;|&()<>"):
            return ""
        return match[0]

    def _expect(self, word: str) -> None:
        if self._keyword() != word:
            raise UnreadableError(f"it lacks a “{word}”")
        self.at += len(word)

    def read_list(self, until: frozenset[str]) -> Sequence:
        """Read commands up to one of the words or a bracket in `until`, or to the end."""
        items: list[Node] = []
        background: set[int] = set()
        self._skip_newlines()
        while self.at < self.end and self._operator() not in (")", *_BRANCH_ENDS) and self._keyword() not in until:
            items.append(self._and_or())
            separator = self._take(";", "&", "\n")
            if separator == "&":
                background.add(len(items) - 1)
            self._skip_newlines()
            if not separator and self.at < self.end:
                break
        if self._documents:
            raise UnreadableError("a here-document is not closed")
        return Sequence(tuple(items), frozenset(background))

    def _body(self, *until: str) -> Sequence:
        body = self.read_list(frozenset(until))
        if not body.items:
            raise UnreadableError("a command is missing")
        return body

    def _and_or(self) -> Node:
        first = self._pipeline()
        rest: list[Node] = []
        while self._take("&&", "||"):
            self._skip_newlines()
            rest.append(self._pipeline())
        return AndOr(first, tuple(rest)) if rest else first

    def _pipeline(self) -> Node:
        is_negated = False
        while self._keyword() == "!":
            self.at += 1
            is_negated = True
        items = [self._command()]
        loud: set[int] = set()
        while operator := self._take("|", "|&"):
            if operator == "|&":
                loud.add(len(items) - 1)
            self._skip_newlines()
            items.append(self._command())
        return Pipeline(tuple(items), is_negated, frozenset(loud)) if is_negated or len(items) > 1 else items[0]

    def _command(self) -> Node:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise UnreadableError("it is nested too deep")
        try:
            return self._compound() or self._simple()
        finally:
            self.depth -= 1

    def _compound(self) -> Node | None:
        self.skip_blanks()
        keyword = self._keyword()
        if self.peek(2) == "((":
            raise UnreadableError("it calculates")
        if self._take("("):
            body = self._body()
            if not self._take(")"):
                raise UnreadableError("a bracket is not closed")
            return Group(body, is_subshell=True, redirections=self._redirections())
        if keyword == "{":
            self.at += 1
            body = self._body("}")
            self._expect("}")
            return Group(body, is_subshell=False, redirections=self._redirections())
        if keyword == "if":
            return self._if()
        if keyword in ("while", "until"):
            self.at += len(keyword)
            condition = self._body("do")
            return While(keyword == "until", condition, self._do(), self._redirections())
        if keyword == "for":
            return self._for()
        if keyword == "case":
            return self._case()
        if keyword == "[[":
            return self._condition()
        if keyword in _NOT_READ:
            raise UnreadableError(_NOT_READ[keyword])
        if keyword in _CLOSING:
            raise UnreadableError(f"“{keyword}” stands where a command should")
        return None

    def _do(self) -> Sequence:
        self._expect("do")
        body = self._body("done")
        self._expect("done")
        return body

    def _if(self) -> If:
        branches: list[tuple[Sequence | None, Sequence]] = []
        keyword = "if"
        while keyword in ("if", "elif"):
            self._expect(keyword)
            condition = self._body("then")
            self._expect("then")
            branches.append((condition, self._body("elif", "else", "fi")))
            keyword = self._keyword()
        if keyword == "else":
            self._expect("else")
            branches.append((None, self._body("fi")))
        self._expect("fi")
        return If(tuple(branches), self._redirections())

    def _for(self) -> For:
        self._expect("for")
        self.skip_blanks()
        match = _NAME.match(self.source, self.at, self.end)
        if match is None:
            raise UnreadableError("it has a loop that calculates")
        self.at = match.end()
        self._skip_newlines()
        words: list[Word] | None = None
        if self._keyword() == "in":
            self.at += 2
            words = []
            self.skip_blanks()
            while (word := self.read_word()) is not None:
                words.append(word)
                self.skip_blanks()
            if not self._take(";", "\n"):
                raise UnreadableError("a loop is not complete")
        else:
            self._take(";")
        self._skip_newlines()
        return For(match[0], None if words is None else tuple(words), self._do(), self._redirections())

    def _case(self) -> Case:
        self._expect("case")
        self.skip_blanks()
        word = self.read_word()
        if word is None:
            raise UnreadableError("a case has no word")
        self._skip_newlines()
        self._expect("in")
        self._skip_newlines()
        branches: list[CaseBranch] = []
        while self._keyword() != "esac":
            branches.append(self._branch())
            self._skip_newlines()
        self._expect("esac")
        return Case(word, tuple(branches), self._redirections())

    def _branch(self) -> CaseBranch:
        self._take("(")
        patterns: list[Word] = []
        while True:
            self.skip_blanks()
            pattern = self.read_word()
            if pattern is None or not pattern.is_text or pattern.keyword == "esac":
                raise UnreadableError("a case has a pattern that is not plain")
            patterns.append(pattern)
            if not self._take("|"):
                break
        if not self._take(")"):
            raise UnreadableError("a case has a pattern that is not plain")
        body = self.read_list(frozenset({"esac"}))
        if not self._take(*_BRANCH_ENDS) and self._keyword() != "esac":
            raise UnreadableError("a branch of a case is not complete")
        return CaseBranch(tuple(patterns), body)

    def _condition(self) -> Simple:
        """Read `[[ … ]]` on one line, without brackets and comparisons of order inside: as the words of a command."""
        start = self.at
        words: list[Word] = []
        while not words or words[-1].keyword != "]]":
            self.skip_blanks()
            joint = self.peek(2) if words and self.peek(2) in ("&&", "||") else ""
            if joint:
                self.at += 2
                words.append(Word((Text(joint, quoted=False),), self.at - 2, self.at))
            elif (word := self.read_word()) is not None:
                words.append(word)
            else:
                raise UnreadableError("it has a condition in [[ ]] that is not plain")
        return Simple((), tuple(words), self._redirections(), start)

    def _redirections(self) -> tuple[Redirection, ...]:
        found: list[Redirection] = []
        while self._read_redirection(found):
            pass
        return tuple(found)

    def _read_redirection(self, found: list[Redirection]) -> bool:
        """Add the redirection that comes next, if one does."""
        self.skip_blanks()
        start = self.at
        digits = _DIGITS.match(self.source, self.at, self.end)
        fd = digits[0] if digits else ""
        at = self.at + len(fd)
        match = _REDIRECTION.match(self.source, at, self.end)
        if match is None or self.source[at : at + 2] in ("<(", ">("):
            if fd:
                raise UnreadableError("a redirection has more than one reading")
            self.at = start
            return False
        self.at = match.end()
        self.skip_blanks()
        target = self.read_word()
        if target is None:
            raise UnreadableError("a redirection leads nowhere")
        kind = cast("RedirectionKind", match[0])
        found.append(Redirection(kind, fd, target))
        if kind in ("<<", "<<-"):
            self._documents.append(found[-1])
        return True

    def _read_documents(self) -> None:
        """Behind a newline come the here-documents that its line has opened."""
        pending, self._documents = self._documents, []
        for opened in pending:
            if not opened.target.is_text or not re.fullmatch(r"\w[\w.!-]*", opened.target.text):
                raise UnreadableError("a here-document has a strange end")
            opened.body = self._read_document(opened.target, strips=opened.kind == "<<-")

    def _read_document(self, end: Word, *, strips: bool) -> Word:
        start = self.at
        while self.at < self.end:
            newline = self.source.find("\n", self.at, self.end)
            stop = self.end if newline < 0 else newline
            line = self.source[self.at : stop]
            if (line.lstrip("\t") if strips else line) == end.text:
                close, self.at = self.at, stop
                return self._document(start, close, end)
            self.at = min(stop + 1, self.end)
        raise UnreadableError("a here-document is not closed")

    def _document(self, start: int, close: int, end: Word) -> Word:
        """Return the text of a here-document, with its expansions unless its end was quoted."""
        text = self.source[start:close]
        if self.depth and _closes_too_early(text):
            raise UnreadableError("a here-document in a substitution has more than one reading")
        if any(isinstance(piece, Text) and piece.quoted for piece in end.pieces):
            return Word((Text(text, quoted=True),), start, close)
        if "\\\n" in text:
            raise UnreadableError("a here-document has continued lines")
        inner = _Reader(self.source, start, close, self.depth + 1)
        return Word(tuple(inner.read_quoted_text("")), start, close)

    def _simple(self) -> Simple:
        assignments: list[Assignment] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        self.skip_blanks()
        start = self.at
        while True:
            if self._read_redirection(redirections):
                continue
            word = self.read_word()
            if word is None:
                break
            if self.peek() in ("<", ">") and re.fullmatch(r"\{\w+\}", word.bare):
                raise UnreadableError("it names a file descriptor")
            if not (words or assignments or redirections) and word.bare in _RESERVED:
                raise UnreadableError(f"“{word.bare}” is taken apart")  # by a continued line, or `_keyword` had seen it
            assignment = None if words else _assignment(word)
            if assignment is None:
                words.append(word)
            else:
                assignments.append(assignment)
        if self._operator() == "(":
            raise UnreadableError("it defines a function, an array or an extended pattern")
        if not assignments and not words and not redirections:
            raise UnreadableError("a command is missing")
        return Simple(tuple(assignments), tuple(words), tuple(redirections), start)


def _closes_too_early(text: str) -> bool:
    """Whether a bracket closes that was not opened: older shells end the substitution there."""
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return True
    return False


def _assignment(word: Word) -> Assignment | None:
    first = word.pieces[0]
    match = _ASSIGNMENT.match(first.text) if isinstance(first, Text) and not first.quoted else None
    if match is None or not isinstance(first, Text):
        return None
    rest = (Text(first.text[match.end() :], quoted=False), *word.pieces[1:])
    value = Word(tuple(piece for piece in rest if piece != Text("", quoted=False)), word.start + match.end(), word.end)
    return Assignment(match[1], value, bool(match[2]))
