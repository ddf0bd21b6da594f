"""`tenuto trust`: what a project brings, what was decided about it, and deciding it without a screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tenuto.cli.arguments import working_directory
from tenuto.cli.parsing import Parser, complain, parse, say, say_json
from tenuto.config.consent import Consent, Decision, TrustError, TrustItem
from tenuto.core.state.trust import Look, Stand, describe, look_at_project
from tenuto.exit_codes import FAILED, OK

ACTS = ("list", "show", "allow", "deny", "forget")
WORDS = {"trusted": "trusted", "refused": "refused", "waiting": "undecided", "changed": "changed"}


def run_trust(arguments: tuple[str, ...], home: Path, _environ: Mapping[str, str]) -> int:
    """Run `tenuto trust [ACT] [DIR]`; returns the exit code: 0 done, 1 it cannot be written, 2 bad usage."""
    words = (
        arguments if arguments[:1] and (arguments[0] in ACTS or arguments[0].startswith("-")) else ("list", *arguments)
    )
    parser = Parser(
        prog="tenuto trust",
        description="What a project brings counts only once you trust it: settings beyond looks, extensions, hooks, "
        "MCP servers, skills and commands that run something, and git configuration that does. list and show what "
        "there is; allow, deny or forget all of it, or items.",
    )
    parser.add_argument("act", nargs="?", choices=ACTS, default="list", help="default: list")
    parser.add_argument(
        "directory", nargs="?", default="", metavar="DIR", help="a directory of the project (default .)"
    )
    parser.add_argument("--item", action="append", default=[], metavar="ID", help="only this item, as list names it")
    parser.add_argument("--all", action="store_true", help="with list: every decision, of all projects")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    if parsed.all:
        return _list_all(home, as_json=parsed.json)
    cwd = working_directory(parsed.directory)
    if isinstance(cwd, str):
        return complain(cwd)
    look = look_at_project(cwd, home)
    items = [item for word in parsed.item for item in look.find(word)] if parsed.item else look.find("all")
    if parsed.item and not items:
        return complain(
            f"{look.project.root} brings nothing with the id {', '.join(parsed.item)}; tenuto trust lists it"
        )
    if parsed.act in ("allow", "deny", "forget"):
        try:
            _change(Consent(home), look, items, parsed.act, parsed.item)
        except TrustError as error:
            return complain(f"nothing was changed: {error}", FAILED)
        look = look_at_project(cwd, home)
    wanted = {item.id for item in items}
    _tell(
        look,
        [stand for stand in look.stands if stand.item.id in wanted],
        whole=parsed.act == "show",
        as_json=parsed.json,
    )
    lost = [item for item in items if parsed.act == "allow" and not item.digest]
    return complain("; ".join(map(describe, lost)), FAILED) if lost else OK


def _change(consent: Consent, look: Look, items: Sequence[TrustItem], act: str, ids: Sequence[str]) -> None:
    """Raises `TrustError`."""
    if act == "forget":
        consent.forget(look.project, [item.id for item in items] if ids else ())
    elif items:
        consent.decide(look.project, items, trusted=act == "allow")


def _tell(look: Look, stands: Sequence[Stand], *, whole: bool, as_json: bool) -> None:
    if as_json:
        rows = [{"id": one.item.id, "verdict": one.verdict, **msgspec.to_builtins(one.item)} for one in stands]
        say_json({"project": str(look.project.root), "items": rows, "problem": look.problem})
        return
    if look.problem:
        complain(look.problem)
    if not stands:
        say(f"{look.project.root} brings nothing that needs your trust.")
    for stand in stands:
        say(f"{stand.item.id}  {WORDS[stand.verdict]:<9}  {describe(stand.item)}")
        for line in stand.item.content.split("\n") if whole else ():
            say(f"    {line}")


def _list_all(home: Path, *, as_json: bool) -> int:
    consent = Consent(home)
    decisions = consent.all()
    if as_json:
        say_json({"decisions": msgspec.to_builtins(decisions), "problem": consent.problem})
    elif consent.problem:
        return complain(consent.problem, FAILED)
    else:
        for one in decisions or ():
            say(_line(one))
        if not decisions:
            say("Nothing is decided about any project.")
    return OK


def _line(one: Decision) -> str:
    return f"{'trusted' if one.trusted else 'refused'}  {one.project}  {one.kind} {one.name} ({one.file})"
