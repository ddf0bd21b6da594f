"""`tenuto plugins`: the page's examples as they stand, three published plugins, and what cannot be added."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import FIXTURES
from tests.core.test_children import task
from tests.server import Call, Reply, ServerThread
from tests.terminal.pseudo import CommandTerminal
from tests.tool.mcp.servers import SCRIPT

PAGE = (Path(__file__).parents[2] / "docs" / "plugins.md").read_text(encoding="utf-8")
PUBLISHED = FIXTURES / "plugins"
FILE = re.compile(r"^```(\w+)\n(?:<!-- |// |# )(\S+)(?: -->)?\n(.*?)^```", re.MULTILINE | re.DOTALL)
MODEL = ("--model", "openai-chat/test")


def write_example(work: Path) -> Path:
    """Write the page's plugin where the page says that its files belong."""
    for _, name, text in FILE.findall(PAGE):
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return work / "house-rules"


def git(folder: Path, *words: str) -> str:
    own = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *own, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def commit(folder: Path) -> str:
    if not (folder / ".git").exists():
        git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")
    return git(folder, "rev-parse", "HEAD").strip()


def plugin(folder: Path, name: str = "small", skill: str = "one") -> Path:
    """Write a plugin with one skill."""
    for path, text in (
        (".claude-plugin/plugin.json", json.dumps({"name": name, "version": "1"})),
        (f"skills/{skill}/SKILL.md", f"---\nname: {skill}\ndescription: Does {skill}.\n---\nDo {skill}."),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def market(folder: Path, *entries: dict[str, object]) -> Path:
    (folder / ".claude-plugin").mkdir(parents=True, exist_ok=True)
    (folder / ".claude-plugin/marketplace.json").write_text(json.dumps({"name": "shop", "plugins": list(entries)}))
    return folder


def added(run) -> dict[str, dict]:
    return {one["name"]: one for one in json.loads(run("plugins", "list", "--json").stdout)["plugins"]}


def left_behind(home: Path) -> list[str]:
    """What a home holds of plugins."""
    found = [str(path.relative_to(home)) for name in ("plugins", "plugin-data") for path in (home / name).glob("*")]
    return found + (
        [] if not (home / "plugins.json").exists() else list(json.loads((home / "plugins.json").read_text()))
    )


def answer(parent: list[Reply], agent: str, says: str):
    """Answer these to the session, and `says` to the sub-agent that has `agent` in its prompt."""

    def script(request) -> Reply:
        return Reply(says) if agent in json.dumps(request.body) and "TASK" in request.last_user else parent.pop(0)

    return script


@pytest.fixture
def programs(tmp_path) -> str:
    """A PATH on which `uvx` is the MCP server of the tests, and `tenuto` is this one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, words in (
        ("uvx", f'exec {sys.executable} {SCRIPT} good "$@"'),
        ("tenuto", f'exec {sys.executable} -m tenuto "$@"'),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{words}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def test_j7_every_command_of_the_page_runs_as_it_stands(run, tmp_path, programs):
    write_example(run.work)
    commit(plugin(tmp_path / "superpowers", "superpowers"))
    agents = market(tmp_path / "agents", {"name": "documentation-standards", "source": "./plugins/docs"})
    plugin(agents / "plugins/docs", "documentation-standards")
    commit(agents)
    instead = tmp_path / "instead.cfg"
    instead.write_text(
        f'[url "file://{tmp_path}/superpowers"]\ninsteadOf = https://github.com/obra/superpowers\n'
        f'[url "file://{tmp_path}/agents"]\ninsteadOf = https://github.com/wshobson/agents\n'
    )
    (block,) = (text for text in re.findall(r"^```sh\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL) if "tenuto" in text)
    said = ""
    for line in block.splitlines():
        environ = {"PATH": programs, "GIT_CONFIG_GLOBAL": str(instead)}
        done = run("-c", line, program=["/bin/sh"], environ=environ)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        said += done.stdout
    for piece in (
        "skill house-rules:naming: How things are named here.",
        "command /house-rules:words: Explain the words of the house; runs cat",
        "agent house-rules:editor: Reads a text",
        "hook PreToolUse Bash: sh '${CLAUDE_PLUGIN_ROOT}/hooks/no-force.sh'",
        "server plugin_house-rules_clock: ",
        "house-rules is up to date.",
        "Removed house-rules",
    ):
        assert piece in said, piece
    assert set(added(run)) == {"superpowers", "documentation-standards"}


def test_j7_every_part_of_a_plugin_works_and_nothing_is_left_of_a_removed_one(run, tmp_path, programs):
    write_example(run.work)
    path = {"PATH": programs}
    assert run("plugins", "add", "house-rules", "--yes", environ=path).returncode == 0
    folder = tmp_path / "home/plugins/house-rules"
    shutil.rmtree(run.work / "house-rules")  # a copy is used, not the source

    calls = [
        Reply(tool_calls=[Call("skill", {"name": "house-rules:naming"})]),
        Reply(tool_calls=[Call("bash", {"command": "echo git push --force"})]),
        Reply(tool_calls=[Call("mcp__plugin_house-rules_clock__echo", {"text": "ECHOED"})]),
        Reply(tool_calls=[task("TASK", "house-rules:editor")]),
        Reply("All done."),
    ]
    with ServerThread(answer(calls, "You look for words", "CHILD-SAYS")) as server:
        line = "/house-rules:words tenuto"
        done = run(
            "-p",
            line,
            "--mode",
            "auto",
            "--allow",
            "mcp__plugin_house-rules_clock",
            *MODEL,
            server=server,
            environ=path,
        )
        sent = json.dumps([request.body for request in server.requests], ensure_ascii=False)
    assert done.stdout == "All done.\n", done.stderr
    assert "Explain what tenuto means here" in sent and "tenuto: held for its full value" in sent
    assert f"Take the word from `{folder}/words.txt`" in sent
    assert "Nobody forces a push here." in sent
    assert "ECHOED" in sent
    assert "CHILD-SAYS" in sent

    assert run("plugins", "remove", "house-rules").returncode == 0
    assert left_behind(tmp_path / "home") == []
    with ServerThread(
        [Reply(tool_calls=[Call("bash", {"command": "echo git push --force"})]), Reply("Over.")]
    ) as server:
        done = run("-p", "go", "--mode", "auto", *MODEL, server=server, environ=path)
        sent = json.dumps([request.body for request in server.requests])
    assert "house-rules" not in sent and "Nobody forces" not in sent


def test_j7_three_published_plugins_work_as_they_stand(run, tmp_path):
    for name in ("example-plugin", "code-simplifier", "explanatory-output-style"):
        done = run("plugins", "add", str(PUBLISHED / name), "--yes")
        assert done.returncode == 0, done.stderr
    kinds = {name: {(part["kind"], part["name"]) for part in one["parts"]} for name, one in added(run).items()}
    assert kinds == {
        "example-plugin": {
            ("skills", "example-plugin:example-command"),
            ("skills", "example-plugin:example-skill"),
            ("commands", "/example-plugin:example-command"),
            ("servers", "plugin_example-plugin_example-server"),
        },
        "code-simplifier": {("agents", "code-simplifier:code-simplifier")},
        "explanatory-output-style": {("hooks", "SessionStart")},
    }
    assert run("mcp", "list").returncode == 0

    parent = [Reply(tool_calls=[task("TASK", "code-simplifier")]), Reply("Done.")]
    environ = {"TENUTO_MCP__ENABLED": "false"}  # its server is an address on the net
    with ServerThread(answer(parent, "expert code simplification", "SIMPLER")) as server:
        done = run("-p", "/example-plugin:example-skill", *MODEL, server=server, environ=environ)
        sent = json.dumps([request.body for request in server.requests], ensure_ascii=False)
    assert done.stdout == "Done.\n", done.stderr
    skill = (PUBLISHED / "example-plugin/skills/example-skill/SKILL.md").read_text().split("---\n")[2].strip()
    assert json.dumps(skill, ensure_ascii=False)[1:-1] in sent
    assert "explanatory' output style mode" in sent
    assert "SIMPLER" in sent
    for name in kinds:
        assert run("plugins", "remove", name).returncode == 0
    assert left_behind(tmp_path / "home") == []


def test_j7_nothing_is_added_where_nobody_can_be_asked(run, tmp_path):
    plugin(run.work / "small")
    done = run("plugins", "add", "small")
    assert done.returncode == 1 and "skill small:one: Does one." in done.stdout
    assert done.stderr == "tenuto: nothing was changed: nobody can be asked here; --yes agrees to what is shown\n"
    assert left_behind(tmp_path / "home") == []


@pytest.mark.parametrize(("typed", "code"), [(b"y\r", 0), (b"n\r", 1), (b"\r", 1), (b"\x04", 1), (b"\x03", 130)])
def test_j7_on_a_terminal_it_is_shown_and_asked_once(run, tmp_path, typed, code):
    plugin(run.work / "small")
    values = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home"), "TERM": "xterm"}
    terminal = CommandTerminal(run.work, values, [sys.executable, "-m", "tenuto", "plugins", "add", "small"])
    try:
        assert "skill small:one: Does one." in terminal.wait_for("[y/N]")
        terminal.write(typed)
        if typed == b"\x03":
            terminal.read_until_quiet()
            if not terminal.has_ended():  # pressed between Python's question and its waiting it is not seen
                terminal.write(typed)
        assert terminal.wait_end() == code
    finally:
        terminal.close()
    assert left_behind(tmp_path / "home") == ([] if code else ["plugins/small", "plugin-data/small", "small"])


def test_j7_a_plugin_that_changed_is_not_used_until_it_is_agreed_to_again(run, tmp_path):
    plugin(run.work / "small")
    run("plugins", "add", "small", "--yes")
    skill = tmp_path / "home/plugins/small/skills/one/SKILL.md"
    skill.write_text(skill.read_text() + "\nAnd more.")
    assert added(run)["small"]["state"] == "changed"
    assert "small:one" not in run("skills", "list").stdout
    assert run("plugins", "enable", "small").returncode == 1  # nobody can be asked
    assert run("plugins", "enable", "small", "--yes").returncode == 0
    assert "small:one" in run("skills", "list").stdout
    cache = tmp_path / "home/plugins/small/skills/__pycache__"
    cache.mkdir()
    (cache / "x.cpython-311.pyc").write_bytes(b"x")  # what running its programs leaves is no change
    assert added(run)["small"]["state"] == "used"
    run("plugins", "disable", "small")
    assert "small:one" not in run("skills", "list").stdout
    assert added(run)["small"]["state"] == "off"


def test_j7_update_fetches_again_and_marks_what_is_new_and_what_is_gone(run, tmp_path):
    source = plugin(tmp_path / "source")
    first = commit(source)
    assert run("plugins", "add", f"file://{source}", "--yes").returncode == 0
    assert added(run)["small"]["commit"] == first
    assert run("plugins", "update", "small", "--yes").stdout == "small is up to date.\n"
    data = tmp_path / "home/plugin-data/small/kept"
    data.write_text("kept")
    plugin(source, skill="two")
    shutil.rmtree(source / "skills/one")
    second = commit(source)
    done = run("plugins", "update", "small", "--yes")
    assert "+ skill small:two" in done.stdout and "- skill small:one" in done.stdout
    assert added(run)["small"]["commit"] == second and data.read_text() == "kept"
    assert [part["name"] for part in added(run)["small"]["parts"]] == ["small:two"]
    run("plugins", "remove", "small")
    assert run("plugins", "add", f"file://{source}", "--ref", first, "--yes").returncode == 0
    assert [part["name"] for part in added(run)["small"]["parts"]] == ["small:one"]


def test_j7_what_is_shown_names_no_staging_folder_and_what_a_server_is(run, tmp_path):
    """A part is new where its words are: the folder that it was fetched to says nothing."""
    folder = plugin(run.work / "small")
    (folder / "commands").mkdir(exist_ok=True)
    (folder / "commands/words.md").write_text("Ours: !`cat ${CLAUDE_PLUGIN_ROOT}/words.txt`")
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"s": {"command": "sh", "args": ["serve"]}}}))
    shown = run("plugins", "add", "./small", "--yes").stdout
    assert "runs cat ${CLAUDE_PLUGIN_ROOT}/words.txt" in shown and ".new-" not in shown
    assert "server plugin_small_s: sh serve (" in shown
    plugin(folder, skill="two")
    shown = run("plugins", "update", "small", "--yes").stdout
    assert [line for line in shown.splitlines() if line.startswith(("+", "-"))] == [
        next(line for line in shown.splitlines() if line.startswith("+ skill small:two"))
    ]
    done = run("plugins", "add", "./small/nothing", "--yes")
    assert done.returncode == 1 and "there is no folder ./small/nothing" in done.stderr


def test_j7_a_marketplace_lists_its_plugins_and_one_is_added_by_name(run, tmp_path):
    shop = market(
        tmp_path / "shop",
        {"name": "near", "source": "./near", "description": "Near by."},
        {"name": "far", "source": {"source": "url", "url": f"file://{tmp_path}/far"}},
        {"name": "part", "source": {"source": "git-subdir", "url": f"file://{tmp_path}/far", "path": "inner"}},
        {"name": "some", "source": "./", "strict": False, "skills": ["./skills/b"]},
        {"name": "npm", "source": {"source": "npm", "package": "x"}},
        {"name": "out", "source": "../far"},
    )
    plugin(shop / "near", "near")
    for name in ("a", "b"):
        plugin(shop, skill=name)
    (shop / ".claude-plugin/plugin.json").unlink()
    plugin(tmp_path / "far/inner", "part")
    commit(plugin(tmp_path / "far", "far"))
    listed = run("plugins", "add", str(shop))
    assert listed.returncode == 2 and listed.stderr == f"tenuto: which one? tenuto plugins add {shop}#NAME\n"
    assert "near: Near by." in listed.stdout and "npm: cannot be added" in listed.stdout
    for name in ("near", "far", "part", "some"):
        done = run("plugins", "add", f"{shop}#{name}", "--yes")
        assert done.returncode == 0, (name, done.stderr)
    assert [part["name"] for part in added(run)["some"]["parts"]] == ["some:b"]
    assert run("plugins", "update", "some", "--yes").stdout == "some is up to date.\n"
    for name, why in (("npm", "only folders and git are"), ("out", "leads out of"), ("neer", "did you mean near?")):
        done = run("plugins", "add", f"{shop}#{name}", "--yes")
        assert done.returncode == 1 and why in done.stderr and done.stderr.count("\n") == 1, (name, done.stderr)


FAULTS = {
    "nothing in it": (lambda folder: folder.mkdir(), "it is no plugin: there is neither"),
    "broken JSON": (
        lambda folder: (plugin(folder) / ".claude-plugin/plugin.json").write_text('{\n "name": "x",\n oh}'),
        ".claude-plugin/plugin.json:3 is no JSON",
    ),
    "a list": (
        lambda folder: (plugin(folder) / ".claude-plugin/plugin.json").write_text("[]"),
        "is not one JSON object",
    ),
    "a bad name": (lambda folder: plugin(folder, "../up"), "its name '../up' cannot be used"),
    "an escaping name": (lambda folder: plugin(folder, "\x1b[2Jx"), "cannot be used"),
    "a link out": (lambda folder: (plugin(folder) / "skills/out").symlink_to("/etc"), "leads out of"),
    "a link to a file": (lambda folder: (plugin(folder) / "key").symlink_to("/etc/passwd"), "key: it leads out of"),
    "a link to nothing": (lambda folder: (plugin(folder) / "key").symlink_to("gone"), "key leads to nothing"),
    "a circle": (lambda folder: (plugin(folder) / "again").symlink_to("."), "circle"),
    "a pipe": (lambda folder: os.mkfifo(plugin(folder) / "pipe"), "pipe: it is a pipe"),
    "huge": (lambda folder: os.truncate(_sparse(plugin(folder) / "huge"), 60_000_000), "more than 50,000,000 bytes"),
}


def _sparse(path: Path) -> Path:
    path.touch()
    return path


@pytest.mark.parametrize("fault", FAULTS)
def test_j7_what_is_no_plugin_is_refused_with_one_line(run, tmp_path, fault):
    make, why = FAULTS[fault]
    make(run.work / "bad")
    done = run("plugins", "add", "bad", "--yes")
    assert done.returncode == 1, done.stdout
    assert why in done.stderr and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr
    assert left_behind(tmp_path / "home") == []


@pytest.mark.parametrize(
    ("source", "ref"),
    [
        ("ext::sh -c 'touch canary'", ""),
        ("--upload-pack=touch canary", ""),
        ("-oProxyCommand=touch", ""),
        ("ssh://-oProxyCommand=touch/x", ""),
        ("git@-oProxyCommand=touch:x", ""),
        ("http://127.0.0.1/x", ""),
        ("git://127.0.0.1/x", ""),
        ("https://me:secret@127.0.0.1/x", ""),
        ("file://127.0.0.1/x", ""),
        ("no-such-folder", ""),
        ("./no-such-folder", ""),
        ("../no/such", ""),
        ("https://127.0.0.1:1/x", "--upload-pack=touch"),
        ("https://127.0.0.1:1/x", "a:b"),
        ("https://127.0.0.1:1/x#../y", ""),
        ("https://127.0.0.1:1/x.git", "main"),
    ],
)
def test_j7_no_address_runs_anything_and_each_gets_one_line(run, tmp_path, source, ref):
    done = run("plugins", "add", "--yes", *(["--ref=" + ref] if ref else []), "--", source)
    assert done.returncode in (1, 2) and done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert not (run.work / "canary").exists() and left_behind(tmp_path / "home") == []


def test_j7_a_second_plugin_of_a_name_and_unknown_ones_are_named(run, tmp_path):
    plugin(run.work / "one")
    plugin(run.work / "two")
    assert run("plugins", "add", "one", "--yes").returncode == 0
    done = run("plugins", "add", "two", "--yes")
    assert done.returncode == 1 and "there is a plugin small already" in done.stderr
    assert added(run)["small"]["source"] == str(run.work / "one")
    done = run("plugins", "remove", "smal")
    assert done.returncode == 2 and "there is no plugin smal; did you mean small?" in done.stderr
    for words in (("add",), ("list", "x"), ("steal", "x")):
        assert run("plugins", *words).returncode == 2


def test_j7_a_broken_list_of_plugins_is_named_and_not_written_over(run, tmp_path):
    plugin(run.work / "small")
    run("plugins", "add", "small", "--yes")
    file = tmp_path / "home/plugins.json"
    file.write_text("{")
    for words in (("list",), ("add", "small", "--yes"), ("remove", "small")):
        done = run("plugins", *words)
        assert done.returncode == 1 and "plugins.json cannot be read, so no plugin counts" in done.stderr, words
    assert file.read_text() == "{"
    assert "small:one" not in run("skills", "list").stdout
    file.write_text("{}")
    file.chmod(0o666)
    assert "can be written by others" in run("plugins", "list").stderr


def test_j7_a_plugin_removed_meanwhile_blocks_nothing(run, tmp_path):
    """Python ends with 2 for a script that is gone, which would block every call."""
    folder = plugin(run.work / "small")
    (folder / "hooks").mkdir()
    hook = {"type": "command", "command": f"{sys.executable} ${{CLAUDE_PLUGIN_ROOT}}/hooks/look.py"}
    (folder / "hooks/hooks.json").write_text(json.dumps({"hooks": {"PreToolUse": [{"hooks": [hook]}]}}))
    (folder / "hooks/look.py").write_text("import sys; print('SEEN-BY-HOOK', file=sys.stderr); sys.exit(2)")
    run("plugins", "add", "small", "--yes")

    def script(request):
        if len(server.requests) == 1:
            return Reply(tool_calls=[Call("bash", {"command": "echo first"})])
        if len(server.requests) == 2:
            run("plugins", "remove", "small")
            return Reply(tool_calls=[Call("bash", {"command": "echo sec''ond"})])
        return Reply("Over.")

    with ServerThread(script) as server:
        done = run("-p", "go", "--mode", "auto", *MODEL, server=server)
        results = [[item.text for item in request.items if item.kind == "result"] for request in server.requests]
    assert done.stdout == "Over.\n", done.stderr
    assert "SEEN-BY-HOOK" in results[1][0]
    assert "second" in results[2][1] and "SEEN-BY-HOOK" not in results[2][1]
