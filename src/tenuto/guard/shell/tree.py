"""The second opinion on a line: tree-sitter's reading, from which only the places of commands and words are taken."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import msgspec

from tenuto.guard.shell.syntax import UnreadableError

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

Span = tuple[int, int]
_STATEMENTS = frozenset(
    {
        *(
            "case_item",
            "case_statement",
            "program",
            "command",
            "command_name",
            "command_substitution",
            "comment",
            "compound_statement",
            "do_group",
        ),
        *("declaration_command", "elif_clause", "else_clause", "file_descriptor", "file_redirect", "for_statement"),
        *("heredoc_body", "heredoc_content", "heredoc_end", "heredoc_redirect", "heredoc_start", "herestring_redirect"),
        *("if_statement", "list", "negated_command", "pipeline", "process_substitution", "redirected_statement"),
        *("subshell", "test_command", "unset_command", "variable_assignments", "while_statement"),
    }
)
_WORDS = frozenset(
    {
        *("ansi_c_string", "arithmetic_expansion", "brace_expression", "command_substitution", "concatenation"),
        *("expansion", "number", "process_substitution", "raw_string", "simple_expansion", "string"),
        *("variable_assignment", "word"),
    }
)
_INSIDE_WORDS = frozenset({"binary_expression", "parenthesized_expression", "special_variable_name", "string_content"})
_SUBSTITUTIONS = frozenset({"command_substitution", "process_substitution"})
_DECLARING = frozenset({"declaration_command", "unset_command"})


class Places(msgspec.Struct):
    """Offsets in bytes. `names` are where commands begin with a program; `tests` are conditions in `[ … ]` and
    `[[ … ]]`, and the patterns of a case: what stands in them is not among the `words`.
    """

    names: set[int]
    words: set[Span]
    tests: set[Span]


@cache
def _parser() -> Parser:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def read_tree(source: bytes) -> Places:
    """Return where commands and words stand. Raises `UnreadableError` for whatever the grammar has no place for."""
    root = _parser().parse(source).root_node
    if root.has_error:
        raise UnreadableError("the shell's grammar has no place for all of it")
    places = Places(set(), set(), set())
    pending: list[tuple[Node, bool, str]] = [(root, False, "")]
    while pending:
        node, in_word, above = pending.pop()
        kind = node.type
        if node.is_missing or kind == "ERROR":
            raise UnreadableError("the shell's grammar has no place for all of it")
        if not node.is_named:
            if above in _DECLARING:
                places.names.add(node.start_byte)
            if above in _DECLARING or (above == "command" and not in_word):
                places.words.add((node.start_byte, node.end_byte))
            continue
        if kind == "test_command" and not in_word:
            _note_test(node, places)
            pending += [(found, True, "") for found in _substitutions(node)]
            continue
        if kind == "case_item" and not in_word:
            pending += [(child, False, kind) for child in _behind_patterns(node, places)]
            continue
        if (not in_word and kind in _WORDS) or (kind == "variable_name" and above in _DECLARING):
            places.words.add((node.start_byte, node.end_byte))
            in_word = True
        elif kind == "command_name" and not in_word:
            places.names.add(node.start_byte)
        elif kind not in _STATEMENTS and kind not in _WORDS and kind not in _INSIDE_WORDS and kind != "variable_name":
            raise UnreadableError(f"it has a part of another kind ({kind.replace('_', ' ')})")
        is_inside = kind == "heredoc_body" or (in_word and kind not in _SUBSTITUTIONS)
        pending += [(child, is_inside, kind) for child in node.children]
    return places


def _note_test(node: Node, places: Places) -> None:
    if node.children[0].type not in ("[", "[["):
        raise UnreadableError("it has a condition of another kind")
    places.names.add(node.start_byte)
    places.tests.add((node.start_byte, node.end_byte))


def _behind_patterns(node: Node, places: Places) -> list[Node]:
    """Note the patterns of a branch of a case; return what comes behind them."""
    closing = next((at for at, child in enumerate(node.children) if child.type == ")"), -1)
    patterns = [child for child in node.children[:closing] if child.is_named]
    if closing < 0 or not patterns or any(map(_substitutions, patterns)):
        raise UnreadableError("a case has a pattern that is not plain")
    places.tests.add((patterns[0].start_byte, patterns[-1].end_byte))
    return node.children[closing + 1 :]


def _substitutions(node: Node) -> list[Node]:
    found: list[Node] = []
    pending = list(node.children)
    while pending:
        child = pending.pop()
        if child.type in _SUBSTITUTIONS:
            found.append(child)
        else:
            pending += child.children
    return found
