"""What a project's settings may set: security.md S1."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import tomlkit

from tenuto.config.consent import Consent, project_of
from tenuto.config.fitting import name_key
from tenuto.config.settings import Settings
from tenuto.config.sources import load_settings, project_items
from tenuto.config.trust import NEVER_KEYS, PROJECT_KEYS, STRICTEST_FIRST
from tests.config.support import NAMED, leaves, nested

WITH_TRUST = frozenset(
    {
        "model",
        "max_output_tokens",
        *(
            f"models.*.{key}"
            for key in (
                *("context_window", "max_output_tokens", "effort", "thinking", "reserve_tokens", "keep_recent_tokens"),
                *("max_summary_tokens", "remote_compaction", "clear_tool_uses", "fallback"),
                *("parallel_tools", "system_role", "output_limit_field", "temperature", "top_p", "body", "headers"),
            )
        ),
        *(
            f"compaction.{key}"
            for key in (
                *("enabled", "reserve_tokens", "keep_recent_tokens", "max_summary_tokens", "user_message_tokens"),
                *("model", "remote", "idle", "ahead", "background", "same_prefix", "check", "tool"),
            )
        ),
        *(
            f"compaction.prompts.{key}"
            for key in ("system", "first", "update", "turn_prefix", "same_prefix", "check", "summary_prefix", "branch")
        ),
        "agent.final_check",
        "agent.job_wait",
        "agent.wake",
        *(f"agents.{key}" for key in ("enabled", "models", "depth", "side_by_side", "max_steps")),
        "branch_summary.reserve_tokens",
        *(
            f"tools.{key}"
            for key in (
                *("max_output_chars", "max_output_lines", "bash_timeout", "bash_max_timeout", "fetch_timeout"),
                *("max_processes", "max_memory_mb", "max_outputs_mb"),
                "web_search",
            )
        ),
        *("session.durability", "session.titles", "session.title_model"),
        "instructions.also",
        *(
            f"ui.{key}"
            for key in (
                *("editing", "tips", "interrupt", "notifications", "notification_seconds", "status_interval"),
                *("copy_on_select", "mouse", "leave_transcript"),
            )
        ),
        *(f"catalogue.{key}" for key in ("refresh", "url")),
        *(
            f"request.{key}"
            for key in ("retries", "connect_timeout", "stream_timeout", "max_request_bytes", "fallback")
        ),
    }
)
ONLY_THE_USER = frozenset(
    {
        *(
            f"providers.*.{key}"
            for key in (
                *("kind", "base_url", "api_key_env", "api_key_cmd", "api_key_seconds", "headers"),
                *("region", "aws_profile", "project", "deployment", "api_version"),
            )
        ),
        *(f"extensions.{key}" for key in ("enabled", "paths", "disabled", "hook_timeout", "load_timeout")),
        *("compaction.strategy", "ui.notification_command", "ui.status_command"),
        *(
            "hooks.enabled",
            "hooks.shared",
            "session.recall_project",
            "update.check",
            "update.url",
            "telemetry.otel",
            "telemetry.content",
        ),
        *(f"mcp.{key}" for key in ("enabled", "wait", "defer_over")),
        *(
            f"mcp.servers.*.{key}"
            for key in (
                *("command", "args", "env", "cwd", "url", "headers"),
                *("enabled", "startup_timeout", "call_timeout"),
            )
        ),
        *("approvals.allow", "approvals.ask", "approvals.deny"),
        *("tools.pass_environment", "tools.mask_sent", "ui.mask_secrets"),
        *(f"sandbox.{key}" for key in ("enabled", "kind", "network", "domains", "writable", "readable", "hidden")),
    }
)
"""Whoever adds a setting decides here, or in `PROJECT_KEYS`, who may set it."""
TO_COME = {"keys"}
"""Settings that other work brings; they are the user's alone from their first day on."""
NUMBERS = (2, 600, 6_000, 7.5, 0.5)
WORDS = (
    "split",
    "esc-esc",
    "off",
    "light",
    "edits",
    "plan",
    "request",
    "anthropic",
    "wait",
    "landlock",
    "user",
    "none",
    "vim",
)
VALUES = (True, False, *NUMBERS, *WORDS)
ALL = dict(leaves(Settings))


def dotted(path: tuple[str, ...]) -> str:
    return ".".join("*" if key == NAMED else key for key in path)


def other_value(path: tuple[str, ...]) -> Any:
    """A value that fits and is not the default."""
    for value in VALUES:
        for tried in (value, [value], {"k": value}):
            made = nested(path, tried)
            try:
                if msgspec.convert(made, Settings) != msgspec.convert(only_tables(made), Settings):
                    return tried
            except msgspec.ValidationError:
                continue
    raise AssertionError(path)


def only_tables(values: dict[str, Any]) -> dict[str, Any]:
    (key, inner), *_ = values.items()
    return {key: only_tables(inner)} if isinstance(inner, dict) and "k" not in inner else {}


def write(place: Path, text: str) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)
    return place


def test_s1_each_setting_stands_in_exactly_one_list() -> None:
    keys = {dotted(path) for path in ALL}
    alone = {key for key in keys if any(key == never or key.startswith(f"{never}.") for never in NEVER_KEYS)}
    assert keys == PROJECT_KEYS | WITH_TRUST | alone
    assert alone == ONLY_THE_USER | {key for key in keys if key.partition(".")[0] in TO_COME or key in TO_COME}
    assert not PROJECT_KEYS & WITH_TRUST


@pytest.mark.parametrize("path", ALL, ids=dotted)
def test_s1_a_project_sets_what_it_may_and_the_rest_waits_for_trust(path: tuple[str, ...], tmp_path: Path) -> None:
    home, value = tmp_path / "home", other_value(path)
    if path == ("mode",):
        value = "plan"
    project = tmp_path / "project"
    file = write(project / ".tenuto/settings.toml", tomlkit.dumps(nested(path, value)))
    wanted = msgspec.convert(nested(path, value), Settings)
    found, problems = load_settings(home, project, {})
    if dotted(path) in PROJECT_KEYS:
        assert found == wanted != Settings() and not problems
        return
    assert found == Settings()
    name = name_key((*path, "k")) if isinstance(value, dict) else name_key(path)
    items = project_items(project_of(project, home))
    if dotted(path) in WITH_TRUST:
        assert not problems and [item.name for item in items] == [name]
        Consent(home).decide(project_of(project, home), items, trusted=True)
        assert load_settings(home, project, {}) == (wanted, [])
    else:
        way = f"no project may set that; put it into {home / 'settings.toml'} if you want it"
        assert problems == [f"{file}: {name} is ignored: {way}"] and not items


@pytest.mark.parametrize("own", [None, *STRICTEST_FIRST])
@pytest.mark.parametrize("wanted", STRICTEST_FIRST)
def test_s1_a_project_makes_the_mode_stricter_and_with_trust_looser_but_never_auto(
    own: str | None, wanted: str, tmp_path: Path
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    if own:
        write(home / "settings.toml", f'mode = "{own}"')
    write(project / ".tenuto/settings.toml", f'mode = "{wanted}"')
    found, problems = load_settings(home, project, {})
    users = own or "ask"
    assert found.mode == min(users, wanted, key=STRICTEST_FIRST.index)
    looser = STRICTEST_FIRST.index(wanted) > STRICTEST_FIRST.index(users)
    items = project_items(project_of(project, home))
    assert len(items) == (looser and wanted != "auto")
    assert len(problems) == (looser and wanted == "auto")
    assert all("mode = auto is ignored: no project may set that" in problem for problem in problems)
    Consent(home).decide(project_of(project, home), items, trusted=True)
    assert load_settings(home, project, {})[0].mode == (users if wanted == "auto" else wanted)
    assert load_settings(home, project, {"TENUTO_MODE": "auto"})[0].mode == "auto"


def test_s1_many_keys_are_one_line_and_what_is_no_setting_is_named_as_such(tmp_path: Path) -> None:
    text = "boats = 1\n" + "\n".join(f'[providers."k{{{number}}}"]\nbase_url = "x"' for number in range(20))
    write(tmp_path / "project/.tenuto/settings.toml", f"{text}\n[ui]\nthem = 'dark'\n")
    found, problems = load_settings(tmp_path / "home", tmp_path / "project", {})
    assert found == Settings()
    assert len(problems) == 3
    assert "boats is ignored: there is no such setting" in problems[0]
    assert "ui.them is ignored: there is no such setting; did you mean ui.theme?" in problems[1]
    assert 'providers."k{0}".base_url, ' in problems[2] and " and 12 more are ignored" in problems[2]


def pipe(file: Path, _outside: Path) -> None:
    os.mkfifo(file)


def link_out(file: Path, outside: Path) -> None:
    file.symlink_to(outside)


def device(file: Path, _outside: Path) -> None:
    file.symlink_to("/dev/zero")


def directory(file: Path, _outside: Path) -> None:
    file.mkdir()


def huge(file: Path, _outside: Path) -> None:
    with file.open("wb") as opened:
        opened.truncate(5_000_000_000)


def folder_that_leads_out(file: Path, outside: Path) -> None:
    file.parent.rmdir()
    file.parent.symlink_to(outside.parent)


@pytest.mark.parametrize("vector", [pipe, link_out, device, directory, huge, folder_that_leads_out])
def test_s3_a_projects_settings_are_a_regular_file_of_the_project(vector: Any, tmp_path: Path) -> None:
    """The same class as security.md S3."""
    outside = write(tmp_path / "other/settings.toml", 'ui.theme = "dark"')
    file = tmp_path / "project/.tenuto/settings.toml"
    file.parent.mkdir(parents=True)
    vector(file, outside)
    found, problems = load_settings(tmp_path / "home", tmp_path / "project", {})
    assert found == Settings()
    assert len(problems) == 1 and re.match(f"{file} cannot be read and is ignored: it ", problems[0])
