"""`tenuto approvals`: the rules that hold, changing them, and what they would say to a shell line."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from tenuto.cli.arguments import MODES
from tenuto.cli.parsing import Parser, add_directory, complain, parse_here, say, say_json, settings_for
from tenuto.command.approval_commands import Row, rule_rows
from tenuto.config.saved_approvals import FILE, SavedApprovals, SavedApprovalsError, saved_in
from tenuto.config.settings import Settings
from tenuto.config.settings_writer import SettingNotKept, drop_rule, keep_rule
from tenuto.exit_codes import BAD_USAGE, FAILED, OK
from tenuto.guard.approval import judge, judge_unheld
from tenuto.guard.rules import Effect, Rule, RuleError, describe_idle, read_rule, read_rules, standing_rules
from tenuto.guard.secrets import command_environment
from tenuto.guard.subject import Allow, Ask, Refuse, Verdict
from tenuto.protocol.entry import ApprovalEntry
from tenuto.tool.bash import command_subject
from tenuto.tool.run.confining import make_sandbox

ASKS, DENIES = 3, 4
"""Exit codes of `check`, beside 0 for a line that runs."""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto approvals`."""
    parser = Parser(prog="tenuto approvals", description="The rules for calls of tools: list, add, remove, check.")
    acts = parser.add_subparsers(dest="act", required=True, metavar="{list,add,remove,check}", parser_class=Parser)
    listing = acts.add_parser("list", help="the rules of your settings, and those saved for directories")
    listing.add_argument("--json", action="store_true", help="as JSON")
    for name, help_text in (("add", "add a rule to your settings"), ("remove", "remove a rule")):
        change = acts.add_parser(name, help=help_text)
        change.add_argument("rule", metavar="RULE", help="as bash(pytest *), edit(src/**), fetch(domain:example.org)")
        effects = change.add_mutually_exclusive_group()
        for effect, does in (("allow", "runs (default)"), ("ask", "is asked about"), ("deny", "is refused")):
            effects.add_argument(
                f"--{effect}",
                dest="effect",
                action="store_const",
                const=effect,
                default="allow",
                help=f"what fits {does}",
            )
        change.add_argument("--project", action="store_true", help="of this directory, not of your settings")
    check = acts.add_parser(
        "check",
        help="what would happen to a shell line here, and why",
        description=f"Say whether a shell line would run here. Exit codes: 0 it runs, {ASKS} it asks, {DENIES} denied.",
    )
    check.add_argument("--mode", choices=MODES, help="in this mode (default: that of the settings)")
    check.add_argument("--json", action="store_true", help="as one JSON object: verdict, reason, rule")
    check.add_argument("line", nargs="+", metavar="LINE", help="the line, behind --")
    for each in acts.choices.values():
        add_directory(each, "in this directory")
    return parser


def run_approvals(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto approvals …`; returns the exit code."""
    asked = parse_here(build_parser(), arguments)
    if isinstance(asked, int):
        return asked
    parsed, cwd = asked
    settings = settings_for(home, cwd, environ)
    saved = SavedApprovals(home / FILE)
    match parsed.act:
        case "list":
            return _list(settings, saved, cwd, as_json=parsed.json)
        case "check":
            line = parsed.line[0] if len(parsed.line) == 1 else " ".join(parsed.line)
            rules = standing_rules(_given(settings), saved.of(cwd), cwd)
            judged = replace(settings, mode=parsed.mode or settings.mode)
            return _tell(_judge_line(line, rules, judged, _Here(home, cwd, environ)), as_json=parsed.json)
        case _:
            return _change(parsed, home, saved, cwd)


def _given(settings: Settings) -> list[Rule]:
    """Return the rules of the settings; what cannot be read is said."""
    own = settings.approvals
    rules, problems = read_rules({"allow": own.allow, "ask": own.ask, "deny": own.deny}, "settings")
    for problem in problems:
        complain(problem)
    return rules


def _list(settings: Settings, saved: SavedApprovals, cwd: Path, *, as_json: bool) -> int:
    rows = rule_rows(_given(settings), (), saved, str(cwd))
    if saved.problem:
        return complain(saved.problem, FAILED)
    if as_json:
        say_json([_plain(row) for row in rows])
        return OK
    for row in rows:
        say(f"{row.label}  ({row.where(str(cwd))})")
    if not rows:
        say("No rules. tenuto approvals add 'bash(pytest *)' adds one.")
    return OK


def _plain(row: Row) -> dict[str, object]:
    directory = row.saved.directory if row.saved else None
    holds = row.saved.holds if row.saved else True
    return {
        "effect": row.rule.effect,
        "rule": row.rule.text,
        "source": row.rule.source,
        "directory": directory,
        "holds": holds,
    }


def _change(parsed: argparse.Namespace, home: Path, saved: SavedApprovals, cwd: Path) -> int:
    effect: Effect = parsed.effect
    try:
        rule = read_rule(parsed.rule, effect)
        entry = ApprovalEntry(tool=rule.tool, pattern=rule.pattern, form="rule", effect=effect)
        where = str(cwd) if parsed.project else "your settings"
        if parsed.act == "add":
            if parsed.project:
                saved.add(saved_in(cwd, entry))
            else:
                keep_rule(home, effect, rule.text)
        elif not parsed.project:
            drop_rule(home, effect, rule.text)
        else:
            rows = [row for row in rule_rows((), (), saved, str(cwd)) if row.saved and row.saved.directory == str(cwd)]
            found = [row.saved for row in rows if row.saved and (row.rule.effect, row.rule.text) == (effect, rule.text)]
            if not found:
                return complain(f"there is no rule to {effect} {rule.text} in {cwd}", FAILED)
            for each in found:
                saved.remove(each)
    except RuleError as error:
        return complain(str(error), BAD_USAGE)
    except (SettingNotKept, SavedApprovalsError) as error:
        return complain(str(error), FAILED)
    say(f"{'Added' if parsed.act == 'add' else 'Removed'}: {effect} {rule.text} ({where})")
    if parsed.act == "add" and (idle := describe_idle(rule)):
        complain(idle)
    return OK


class _Here(Struct, frozen=True):
    """Where a line would run."""

    home: Path
    cwd: Path
    environ: Mapping[str, str]


def _judge_line(line: str, rules: list[Rule], settings: Settings, here: _Here) -> Verdict:
    """Judge a line as a call of the model would be in a session with these settings."""
    places = (str(here.cwd),)
    sandbox = make_sandbox(settings.sandbox, here.cwd, here.home, wanted=settings.sandbox.enabled)
    environ = command_environment(here.environ, settings.tools.pass_environment)
    subject = command_subject(line, here.cwd, places, environ)
    if settings.mode == "auto" and not sandbox.replaces_asking:
        return judge_unheld(subject, rules, places)
    return judge(settings.mode, replace(subject, confined=sandbox.holds), rules, places)


def _tell(found: Verdict, *, as_json: bool) -> int:
    """Say what would happen to a line; it was judged as a call of the model would be."""
    match found:
        case Allow(reason=reason, rule=rule):
            verdict, code = "run", OK
        case Ask(reason=reason, rule=rule):
            verdict, code = "ask", ASKS
        case Refuse(why=reason, rule=rule):
            verdict, code = "deny", DENIES
    if as_json:
        say_json({"verdict": verdict, "reason": reason, "rule": rule or None})
    else:
        say(f"{verdict}: {reason}")
    return code
