"""`tenuto doctor` (H 6): what it finds, what it says to do, and what it never says or asks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.cli.doctor import command, files
from tenuto.cli.doctor.command import CHECKS, examine
from tenuto.cli.doctor.files import take_stock, why_not_writable
from tenuto.cli.doctor.rows import STATES, Row, Streams, print_rows
from tenuto.cli.parsing import bare_url
from tenuto.guard.sandbox.machine import find_machine
from tenuto.guard.sandbox.network.namespace import why_no_network
from tenuto.tui.render.width import cell_width
from tests.guard.repositories import git
from tests.server import ServerThread

CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
DOCUMENT = Path(__file__).parents[2] / "docs" / "doctor.md"
SECRET = "sk-very-secret-0123456789"


def rows_of(done: subprocess.CompletedProcess[str]) -> list[dict]:
    return json.loads(done.stdout)["rows"]


def row(done: subprocess.CompletedProcess[str], name: str, state: str = "") -> dict:
    return next(one for one in rows_of(done) if one["name"] == name and state in ("", one["state"]))


def settings(tmp_path: Path, text: str) -> None:
    (tmp_path / "home").mkdir(mode=0o700, exist_ok=True)
    (tmp_path / "home" / "settings.toml").write_text(text)


def test_text_and_json_say_the_same_and_fit_80_columns(run, tmp_path):
    settings(tmp_path, '[ui]\ntheme = "light"\n')
    text, data = run("doctor"), run("doctor", "--json")
    assert text.returncode == data.returncode == 0, text.stdout
    lines = text.stdout.splitlines()
    assert all(len(line) <= 80 for line in lines)
    heads = [line.split()[:2] for line in lines if line[:1] not in (" ", "")]
    assert [[one["state"], one["name"].split()[0]] for one in rows_of(data)] == heads[:-1]
    counts = json.loads(data.stdout)["states"]
    assert counts["problem"] == 0
    assert lines[-1].startswith(f"{counts['note']} note")
    assert not CONTROL.search(text.stdout)


def test_the_page_names_every_row(run):
    """The rows that are there only sometimes are named as well."""
    named = re.findall(r"^\| `([\w. ]+?)(?: NAME)?` \|", DOCUMENT.read_text(), re.MULTILINE)
    rows = rows_of(run("doctor", "--json", environ={"ANTHROPIC_API_KEY": "x"}))
    found = list(dict.fromkeys(one["name"].split()[0] for one in rows))
    sometimes = {"tmux", "proxy", "theme", "keys.toml", "files", "summaries"}
    assert [name for name in named if name not in sometimes - set(found)] == found


@pytest.mark.parametrize("words", [("doctor",), ("doctor", "--json"), ("doctor", "--online")])
def test_no_key_is_ever_printed(run, tmp_path, words):
    settings(
        tmp_path,
        f'[providers.box]\nbase_url = "http://me:{SECRET}@127.0.0.1:9/v1?key={SECRET}"\n'
        f'headers = {{authorization = "{SECRET}"}}\n[catalogue]\nurl = "https://u:{SECRET}@host/?{SECRET}"\n',
    )
    (tmp_path / "home" / "auth.json").write_text(json.dumps({"openai": SECRET}))
    environ = {
        "ANTHROPIC_API_KEY": SECRET,
        "HTTPS_PROXY": f"http://u:{SECRET}@127.0.0.1:9",
        "TENUTO_PROVIDERS__TWO__HEADERS__X": SECRET,
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    }
    done = run(*words, environ=environ)
    assert SECRET not in done.stdout + done.stderr
    assert "ANTHROPIC_API_KEY" in done.stdout
    assert "auth.json" in done.stdout


def test_only_online_asks_a_server_which_then_names_no_key(run, tmp_path):
    with ServerThread([], models=("one", "two"), api_key=SECRET) as server:
        environ = {"HTTP_PROXY": server.base_url, "NO_PROXY": ""}
        quiet = run("doctor", "--json", server=server)
        run("doctor", "--json", environ=environ | {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "http://far.example/v1"})
        assert server.connections_made == 0
        asked = run("doctor", "--online", "--json", server=server)
        refused = run("doctor", "--online", "--json", server=server, environ={"OPENAI_API_KEY": "wrong-key-123"})
    assert "no list stored" in row(quiet, "server openai")["found"]
    assert "2 models, in " in row(asked, "server openai")["found"]
    assert (asked.returncode, refused.returncode) == (0, 1)
    assert row(refused, "server openai")["state"] == "problem"
    assert row(refused, "server openai")["do"]
    assert "wrong-key-123" not in refused.stdout


def test_a_server_that_is_not_there_is_a_problem_online(run):
    environ = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    found = row(run("doctor", "--online", "--json", environ=environ), "server openai")
    assert (found["state"], bool(found["do"])) == ("problem", True)


def test_the_model_has_its_numbers_and_where_each_comes_from(run, tmp_path):
    settings(
        tmp_path,
        'model = "anthropic/claude-opus-5-7:high"\n[models."anthropic/claude-opus-5-7"]\nmax_output_tokens = 99\n',
    )
    gateway = {"ANTHROPIC_API_KEY": "x", "ANTHROPIC_BASE_URL": "https://gateway.example"}
    found = row(run("doctor", "--json", environ=gateway), "model")
    assert found["found"].endswith("settings.toml:1)")
    window, output, price = found["details"]
    assert window == "window 1,000,000 tokens (nearest version: claude-opus-5-5)"
    assert output == "output 99 tokens (settings)"
    assert "(nearest version: claude-opus-5-5)" in price


@pytest.mark.parametrize(
    ("environ", "said", "do"),
    [
        ({"TENUTO_MODEL": "nonsense"}, "cannot be used", "provider/name"),
        ({"TENUTO_MODEL": "openai/gpt-6-sol"}, "there is no key", "set OPENAI_API_KEY"),
        ({"TENUTO_MODEL": "anthropc/x"}, "there is no provider", "did you mean anthropic?"),
    ],
)
def test_a_model_that_cannot_be_used_is_a_problem(run, environ, said, do):
    done = run("doctor", "--json", environ=environ)
    found = row(done, "model")
    assert (done.returncode, found["state"]) == (1, "problem")
    assert said in found["found"] and do in found["do"]


@pytest.mark.parametrize("key", ["'quoted'", "two words", "ключ"])
def test_a_key_that_is_none_at_first_sight_is_a_problem_and_not_shown(run, key):
    done = run("doctor", "--json", environ={"OPENAI_API_KEY": key})
    assert row(done, "keys", "problem")["do"] == "look at OPENAI_API_KEY"
    assert key not in done.stdout


def test_each_setting_has_its_place_and_each_fault_its_line(run, tmp_path):
    settings(tmp_path, '# mine\nmode = "edits"\n\n[ui]\nthme = "dark"\ntheme = "dark"\n')
    (run.work / ".tenuto").mkdir()
    (run.work / ".tenuto" / "settings.toml").write_text('[ui]\ntheme = "light"\nstatus_command = "x"\n')
    (tmp_path / "home" / "keys.toml").write_text('"nothing.there" = "ctrl+x"\n')
    done = run("doctor", "--json", environ={"TENUTO_MODE": "auto"})
    assert done.returncode == 1
    faults = {
        (one["state"], one["found"]) for one in rows_of(done) if one["name"] == "settings" and one["state"] != "ok"
    }
    own = [found for state, found in faults if state == "problem"]
    projects = [found for state, found in faults if state == "note"]
    assert len(own) == len(projects) == 1
    assert own[0].startswith("~/home/settings.toml:5: ui.thme is ignored")
    assert "ui.status_command is ignored: no project may set that" in projects[0]
    assert row(done, "settings", "ok")["details"] == [
        'mode = "edits" (~/home/settings.toml:2; overruled)',
        'ui.theme = "dark" (~/home/settings.toml:6; overruled)',
        'ui.theme = "light" (~/work/.tenuto/settings.toml:2)',
        'mode = "auto" (environment)',
    ]
    assert row(done, "keys.toml")["state"] == "problem"


def test_what_a_project_does_wrong_is_no_problem_of_the_user(run):
    (run.work / ".tenuto").mkdir()
    (run.work / ".tenuto" / "settings.toml").write_text("model = ")
    done = run("doctor", "--json")
    assert (done.returncode, row(done, "settings", "note")["state"]) == (0, "note")


def test_a_broken_file_is_named_with_line(run, tmp_path):
    settings(tmp_path, 'mode = "plan"\n[ui\n')
    done = run("doctor", "--json")
    assert done.returncode == 1
    assert "line 2" in row(done, "settings", "problem")["found"]


def test_hostile_names_do_nothing_to_a_terminal(run, tmp_path):
    settings(
        tmp_path, '[providers."evil\\u001b[2J\\u202e"]\nbase_url = "x\\u001b]0;title\\u0007"\n["\\u001b[31m"]\na = 1\n'
    )
    (run.work / "AGENTS.md").write_text("hello\n")
    git(run.work, "init", "-q", "-b", "main")
    (run.work / ".git" / "HEAD").write_text("ref: refs/heads/ma\u202ein\n")
    for words in ((), ("--json",)):
        done = run("doctor", *words)
        assert not CONTROL.search(done.stdout + done.stderr)
        assert "evil" in done.stdout


@pytest.mark.parametrize("kind", ["nowhere", "file"])
def test_a_home_that_cannot_be_written_is_a_problem(run, tmp_path, kind):
    (tmp_path / "file").write_text("")
    home = {"nowhere": "/proc/tenuto/home", "file": str(tmp_path / "file")}[kind]
    done = run("doctor", "--json", environ={"TENUTO_HOME": home})
    assert done.returncode == 1
    assert row(done, "home")["state"] == "problem"
    assert "TENUTO_HOME" in row(done, "home")["do"]


def test_it_makes_no_home_and_leaves_nothing(run, tmp_path):
    assert run("doctor").returncode == 0
    assert not (tmp_path / "home").exists()
    (tmp_path / "home").mkdir(mode=0o755)
    found = row(run("doctor", "--json"), "home")
    assert (found["state"], found["do"].split(";")[0]) == ("note", "chmod 700 ~/home")
    assert list((tmp_path / "home").iterdir()) == []


def test_files_that_cannot_be_written_are_found():
    """`sudo tenuto` leaves such behind."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        home.chmod(0o755)
        (home / "sessions").mkdir(mode=0o555)
        (home / "sessions" / "a").touch()
        (home / "sessions" / "a").chmod(0o444)
        (home / "link").symlink_to("/etc/passwd")
        user = os.geteuid()
        if user == 0:
            os.seteuid(65_534)
        try:
            found = take_stock(home)
            reason = why_not_writable(home / "sessions")
        finally:
            if user == 0:
                os.seteuid(0)
            (home / "sessions").chmod(0o755)
    assert sorted(found.locked) == [f"{name}/sessions", f"{name}/sessions/a"]
    assert reason == "Permission denied"


def test_sessions_are_counted(run, tmp_path):
    for _ in range(2):
        assert run("-p", "list").returncode == 0
    assert row(run("doctor", "--json"), "sessions")["found"].startswith("2 sessions; ")


async def examined(tmp_path: Path, environ: dict[str, str] | None = None) -> dict[str, Row]:
    values = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TERM": "xterm-256color"} | (environ or {})
    rows = await examine(tmp_path / "home", tmp_path, values, Streams(True, True, True, (80, 24)))
    return {one.name: one for one in rows}


async def test_a_disk_that_is_nearly_full(monkeypatch, tmp_path):
    monkeypatch.setattr(files, "FULL", 10**18)
    assert (await examined(tmp_path))["disk"].state == "problem"
    monkeypatch.setattr(files, "FULL", 0)
    monkeypatch.setattr(files, "SCARCE", 10**18)
    assert (await examined(tmp_path))["disk"].state == "note"


def test_programs_that_are_missing_have_a_note(run, tmp_path):
    (tmp_path / "bin").mkdir()
    done = run("doctor", "--json", environ={"PATH": str(tmp_path / "bin"), "EDITOR": "nowhere-at-all"})
    assert [row(done, name)["state"] for name in ("ripgrep", "git", "editor", "pager")] == [
        "note", "note", "problem", "note",
    ]  # fmt: skip
    assert all(row(done, name)["do"] for name in ("ripgrep", "git", "editor", "pager"))


@pytest.mark.parametrize(
    ("environ", "name", "state"),
    [
        ({"LC_ALL": "de_DE.ISO-8859-1"}, "letters", "note"),
        ({"LANG": "de_DE.UTF-8"}, "letters", "ok"),
        ({}, "letters", "ok"),
        ({"TMUX": "/nowhere,1,0"}, "tmux", "note"),
        ({"NO_COLOR": "1"}, "colours", "ok"),
        ({"TERM": "dumb"}, "clipboard", "note"),
    ],
)
async def test_what_the_environment_says_of_the_terminal(tmp_path, environ, name, state):
    """In process: Python takes a locale that is not installed for C.UTF-8, and says so in the environment."""
    assert (await examined(tmp_path, environ))[name].state == state


def test_in_tmux_the_options_that_are_missing_are_named(run, tmp_path):
    target = tmp_path / "found.json"
    socket = f"doctor-{os.getpid()}"
    program = (
        f"TENUTO_HOME={tmp_path}/home {sys.executable} -m tenuto doctor --json > {target}.new; mv {target}.new {target}"
    )
    tmux = ["tmux", "-L", socket, "-f", os.devnull]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    subprocess.run([*tmux, "new-session", "-d", "-x", "90", "-y", "30", program], check=True, env=environ)
    deadline = time.monotonic() + 120
    while not target.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    found = {one["name"]: one for one in json.loads(target.read_text())["rows"]}
    assert found["tmux"]["state"] == "note"
    assert "set -g focus-events on  # whether you look, for notifications" in found["tmux"]["details"]
    assert "90×30" in found["terminal"]["found"]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_a_check_that_fails_is_a_row(monkeypatch, tmp_path, check):
    async def ill(place):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(command, "CHECKS", (ill, check))
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    first, *others = await examine(tmp_path, tmp_path, environ, Streams(False, False, False, None))
    assert (first.name, first.state) == ("ill", "problem")
    assert "ZeroDivisionError: oh" in first.found
    assert not any("this check failed" in one.found for one in others)
    assert all(one.do for one in others if one.state != "ok"), "each says what to do"


@pytest.mark.parametrize("words", [("--jsn",), ("more",), ("--cwd", "/nowhere/at/all")])
def test_bad_usage(run, words):
    done = run("doctor", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


def test_a_sandbox_that_is_not_there_has_a_note(run):
    nothing = {"TENUTO_SANDBOX__ENABLED": "true", "TENUTO_SANDBOX__KIND": "seatbelt"}  # no Linux has that
    found = row(run("doctor", "--json", environ=nothing), "sandbox")
    assert found["state"] == "note" and "auto asks as edits does" in found["found"] and "sandbox.kind" in found["do"]
    off = row(run("doctor", "--json", environ={"TENUTO_SANDBOX__ENABLED": "false"}), "sandbox")
    assert off["state"] == "note" and "with your rights" in off["found"]
    machine = find_machine()
    found = row(run("doctor", "--json"), "sandbox")
    assert found["state"] == ("ok" if machine.kind else "note")
    assert machine.kind in found["found"] and (machine.kind or "apt install bubblewrap" in found["do"])


@pytest.mark.parametrize("kind", ["bubblewrap", "landlock"])
def test_the_network_of_commands_is_told_and_domains_that_nothing_holds_have_a_note(run, tmp_path, kind):
    machine = find_machine(kind)
    if not machine.kind:
        pytest.skip(f"this machine has no {kind}: {machine}")
    settings(tmp_path, f'[sandbox]\nkind = "{kind}"\ndomains = ["example.org"]\n')
    found = row(run("doctor", "--json"), "sandbox")
    status = run("sandbox", "--status").stdout
    if kind == "landlock":
        assert (found["state"], found["do"]) == ("note", "install bubblewrap (apt install bubblewrap)")
        assert "landlock cannot hold sandbox.domains" in found["found"] and "cannot hold sandbox.domains" in status
    elif why := why_no_network(machine.detail):
        assert found["state"] == "note" and why in found["found"]
    else:
        assert found["state"] == "ok" and found["found"].endswith(
            "commands of a session share a loopback, and reach example.org"
        )
        assert "share a loopback, and reach example.org" in status
    settings(tmp_path, f'[sandbox]\nkind = "{kind}"\nnetwork = true\n')
    assert "commands have the network (sandbox.network)" in row(run("doctor", "--json"), "sandbox")["found"]


def test_rules_that_cannot_be_read_are_problems(run, tmp_path):
    settings(tmp_path, '[approvals]\nallow = ["bash(ls *)", "nonsense(x)"]\n')
    saved = tmp_path / "home" / "approvals.toml"
    saved.write_text(f'[[allow]]\ntool = "nowhere"\npattern = "x"\nform = "rule"\ndirectory = "{run.work}"\n')
    saved.chmod(0o600)
    done = run("doctor", "--json")
    problems = [one for one in rows_of(done) if (one["name"], one["state"]) == ("approvals", "problem")]
    assert (done.returncode, len(problems)) == (1, 2)
    assert "nonsense" in problems[0]["found"] and "nowhere" in problems[1]["found"]
    assert row(done, "approvals", "ok")["found"].startswith("1 rule in your settings, 1 saved")
    saved.write_text("[[allow")
    assert any("approvals.toml cannot be read" in one["found"] for one in rows_of(run("doctor", "--json")))


def test_what_waits_for_trust_is_named_without_its_value(run, tmp_path):
    (run.work / ".tenuto").mkdir()
    assert row(run("doctor", "--json"), "trust")["state"] == "ok"
    (run.work / ".tenuto" / "settings.toml").write_text(f'model = "openai/{SECRET}"\n')
    done = run("doctor", "--json")
    found = row(done, "trust")
    assert (done.returncode, found["state"]) == (0, "note")
    assert found["details"] == ["setting model (.tenuto/settings.toml)"] and "tenuto trust" in found["do"]
    assert SECRET not in json.dumps(found)
    assert run("trust", "deny").returncode == 0
    assert row(run("doctor", "--json"), "trust")["state"] == "ok"
    (tmp_path / "home" / "trust.toml").chmod(0o666)
    assert "written by others" in row(run("doctor", "--json"), "trust", "problem")["found"]


TEXTS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)
ROWS = st.builds(
    Row,
    name=TEXTS,
    found=TEXTS,
    state=st.sampled_from(STATES),
    do=TEXTS,
    details=st.lists(TEXTS, max_size=3).map(tuple),
)


@given(st.lists(ROWS, min_size=1, max_size=5), st.integers(20, 120))
def test_property_rows_fit_and_are_safe(rows, columns):
    text = print_rows(rows, columns, {})
    assert not CONTROL.search(text)
    lines = text.split("\n")
    assert all(cell_width(line) <= max(columns, 32) for line in lines)
    heads = [line for line in lines if line[:1] not in ("", " ")]
    assert [head.split()[0] for head in heads[:-1]] == [one.state for one in rows]


@pytest.mark.parametrize(
    ("url", "bare"),
    [
        ("http://me:pw@host:1/v1?k=v#f", "http://host:1/v1"),
        ("me:pw@host:3128", "host:3128"),
        ("http://me:p@w@host", "http://host"),
        ("https://host/v1", "https://host/v1"),
        ("nonsense", "nonsense"),
    ],
)
def test_an_address_is_shown_without_secrets(url, bare):
    assert bare_url(url) == bare
