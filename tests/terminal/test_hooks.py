"""Hooks on both screens: a project's are trusted first, a slow one is named, a broken one loses no turn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.core.hooking import group, hook, write_hooks
from tests.server import Call, Reply, Request
from tests.terminal.conftest import Workplace, said
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.test_trust import DOWN, SCREENS, start

pytestmark = [pytest.mark.terminal]
FAULTS = {
    "dead": (hook("/no/such/program"), "exit code 127"),
    "hanging": (hook("sleep 600", timeout=0.4), "no answer within 0.4 seconds"),
    "flooding": (hook("head -c 100000000 /dev/zero"), "wrote more than 400 KB"),
    "crashing": (hook("kill -SEGV $$"), "exit code 139"),
    "lying": (hook('echo \'{"decision": "perhaps"}\''), "cannot be read"),
}


def commits() -> Callable[[Request], Reply]:
    """Commit when the user asks for it, then say what became of that."""
    has_called = False

    def answer(request: Request) -> Reply:
        nonlocal has_called
        has_called = said(request) == "commit" and not has_called
        if has_called:
            return Reply(tool_calls=[Call("bash", {"command": "git commit -m x"})])
        blocked = "A hook blocked this bash call" in request.items[-1].text
        return Reply("The hook is against it." if blocked else f"You said {said(request)}.")

    return answer


def bring(place: Workplace, word: str) -> Path:
    """Let the project bring a hook that blocks commits with this word."""
    script = place.work / ".claude" / "hooks" / "guard.py"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(
        "import json, sys\n"
        "if 'git commit' in json.load(sys.stdin)['tool_input']['command']:\n"
        f"    sys.stderr.write({word!r})\n"
        "    sys.exit(2)\n"
    )
    command = 'python3 "$CLAUDE_PROJECT_DIR/.claude/hooks/guard.py"'
    write_hooks(place.work / ".claude" / "settings.json", PreToolUse=[group(command, matcher="Bash")])
    return script


@pytest.mark.parametrize("options", SCREENS)
def test_r085_a_projects_hook_is_trusted_runs_and_is_asked_about_again(
    place: Workplace, options: tuple[str, ...]
) -> None:
    bring(place, "Friday")
    place.serve(commits())
    terminal = start(place, *options, "--mode", "auto")
    try:
        terminal.wait_for("This project brings 1 thing")
        terminal.write(DOWN * 3)
        terminal.wait_for("hook PreToolUse Bash in .claude/settings.json")
        terminal.wait_for("guard.py")
        terminal.write(b"\r")
        terminal.wait_for("✓")
        terminal.write(b"\x1b")
        terminal.wait_until_gone("This project brings")
        terminal.write(b"commit\r")
        terminal.wait_for("The hook is against it.")
        assert "Friday" in terminal.text()
        bring(place, "Monday")
        terminal.write(b"commit\r")
        terminal.wait_for("has changed since")
        assert "Monday" not in terminal.text()
    finally:
        terminal.close()
    again = start(place, *options)
    try:
        again.wait_for("changed since you decided")
    finally:
        again.close()


@pytest.mark.parametrize("options", SCREENS)
def test_a_slow_hook_is_named_on_the_status_line(place: Workplace, options: tuple[str, ...]) -> None:
    go = place.folder / "go"
    write_hooks(
        place.home / "hooks.json", UserPromptSubmit=[group(f"while ! test -e {go}; do sleep 0.1; done; echo checked")]
    )
    place.serve(commits())
    terminal = start(place, *options)
    try:
        terminal.write(b"hello\r")
        terminal.wait_for("Waiting for the UserPromptSubmit hook")
        go.touch()
        terminal.wait_for("You said hello.")
        terminal.wait_until_gone("Waiting for the UserPromptSubmit")
    finally:
        terminal.close()


@pytest.mark.parametrize("options", SCREENS)
def test_broken_hooks_lose_no_turn_and_each_is_one_line(place: Workplace, options: tuple[str, ...]) -> None:
    hooks = [group(command) for command, _ in FAULTS.values()]
    write_hooks(place.home / "hooks.json", UserPromptSubmit=hooks)
    place.serve(commits())
    terminal: PseudoTerminal = start(place, *options)
    try:
        terminal.write(b"hello\r")
        for _, words in FAULTS.values():
            terminal.wait_for(words)
        terminal.wait_for("You said hello.")
        terminal.write(b"again\r")
        terminal.wait_for("You said again.")
        assert [terminal.text().count(words) for _, words in FAULTS.values()] == [1] * len(FAULTS)
    finally:
        terminal.close()
