"""`tenuto skills list | check`: the skills that a session here would have, and everything that is wrong with one."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tenuto.cli.parsing import Parser, add_directory, complain, parse_here, say, say_json
from tenuto.config.commands import CommandFile, find_commands
from tenuto.config.front_matter import Fault
from tenuto.config.places import Where, user_home
from tenuto.config.project import RefusedFileError, read_text
from tenuto.config.skills import FILE, Skill, SkillFile, check_skill, find_skills
from tenuto.exit_codes import FAILED, OK
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural

DESCRIPTION_CHARS = 100


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto skills`."""
    parser = Parser(
        prog="tenuto skills",
        description="List the skills of this directory and of yours, or check them: every fault with file and line. "
        "check without PATH checks all of them, and the command files. Exit code 1 where there is a fault.",
    )
    parser.add_argument("what", nargs="?", choices=("list", "check"), default="list", help="default: list")
    parser.add_argument("paths", nargs="*", metavar="PATH", help="with check: a SKILL.md, or its folder")
    add_directory(parser)
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    return parser


def run_skills(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto skills …`; returns the exit code: 0 done, 1 there are faults, 2 bad usage."""
    asked = parse_here(build_parser(), arguments)
    if isinstance(asked, int):
        return asked
    parsed, cwd = asked
    if parsed.paths and parsed.what == "list":
        return complain("list takes no path; tenuto skills check PATH checks one")
    where = Where(home, cwd, user_home(environ))
    if parsed.what == "list":
        return _list(where, as_json=parsed.json)
    return _check(where, [cwd / path for path in parsed.paths], as_json=parsed.json)


def _list(where: Where, *, as_json: bool) -> int:
    found = find_skills(where)
    if as_json:
        say_json({"skills": [_row(file) for file in found.files], "problems": found.problems})
        return OK
    for file in found.files:
        skill = file.skill
        if skill is None:
            say(f"- {file.path}: cannot be used; tenuto skills check says why")
            continue
        marks = [file.origin]
        marks += [f"not used: {file.shadowed_by} has the same name"] if file.shadowed_by else []
        marks += ["not trusted, so not used: tenuto trust"] if file.waits else []
        marks += ["what it asks for a turn waits for trust"] if skill.is_withheld and not file.waits else []
        marks += ["not told to the model"] if skill.is_hidden else []
        marks += [plural(len(skill.faults), "fault")] if skill.faults else []
        say(f"{skill.name} ({', '.join(marks)}): {shorten(skill.description, DESCRIPTION_CHARS)}")
        say(f"  {file.path}")
    for problem in found.problems:
        complain(problem)
    if not found.files:
        say("There are no skills. One is a folder with a SKILL.md, in .tenuto/skills here or skills in Tenuto's home.")
    return OK


def _row(file: SkillFile) -> dict[str, Any]:
    skill = file.skill
    return {
        "path": file.path,
        "origin": file.origin,
        "name": skill.name if skill is not None else None,
        "description": skill.description if skill is not None else "",
        "license": skill.license if skill is not None else "",
        "compatibility": skill.compatibility if skill is not None else "",
        "allowed_tools": skill.allowed_tools if skill is not None else (),
        "model": skill.model if skill is not None else "",
        "effort": skill.effort if skill is not None else "",
        "metadata": skill.metadata if skill is not None else {},
        "told_to_the_model": skill is not None and not skill.is_hidden and not file.shadowed_by and not file.waits,
        "waits_for_trust": file.waits,
        "shadowed_by": file.shadowed_by,
        "faults": file.faults,
    }


def _check(where: Where, paths: list[Path], *, as_json: bool) -> int:
    problems: tuple[str, ...] = ()
    checked: list[tuple[str, tuple[Fault, ...]]] = []
    if paths:
        checked = [_check_path(path) for path in paths]
    else:
        skills, commands = find_skills(where), find_commands(where)
        problems = (*skills.problems, *commands.problems)
        checked = [(one.path, (*one.faults, *_unknown(one.skill))) for one in skills.files]
        checked += [(file.path, (*file.faults, *_unknown(file))) for file in commands.files]
    count = sum(len(faults) for _, faults in checked) + len(problems)
    if as_json:
        say_json({"files": [{"path": path, "faults": faults} for path, faults in checked], "problems": problems})
        return FAILED if count else OK
    for line in (*problems, *_lines(checked)):
        say(line)
    say(f"{plural(len(checked), 'file')}, {plural(count, 'fault') if count else 'no fault'}")
    return FAILED if count else OK


def _unknown(file: Skill | CommandFile | None) -> Iterable[Fault]:
    """Yield the fault of a file that asks for what cannot be allowed."""
    from tenuto.core.state.terms import read_allowed

    left_out = read_allowed(file.allowed_tools, file.origin)[1] if file is not None else ()
    if left_out:
        yield Fault(1, f"allowed-tools has what cannot be allowed here: {', '.join(left_out)}")


def _lines(checked: Iterable[tuple[str, tuple[Fault, ...]]]) -> Iterable[str]:
    for path, faults in checked:
        for fault in faults:
            yield f"{path}:{fault.line}: {fault.text}{' (cannot be used)' if fault.fatal else ''}"


def _check_path(path: Path) -> tuple[str, tuple[Fault, ...]]:
    """Return a named file with its faults; a folder stands for the `SKILL.md` in it."""
    file = path / FILE if path.is_dir() else path
    try:
        text = read_text(file)
    except FileNotFoundError:
        return str(file), (Fault(1, "there is no such file", fatal=True),)
    except RefusedFileError as refused:
        return str(file), (Fault(1, str(refused), fatal=True),)
    found = check_skill(file, "user", text)
    return str(file), (*found.faults, *_unknown(found.skill))
