"""`tenuto mcp`, MCP servers of `-p`, and every example of docs/mcp.md as it stands."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from tenuto.config.mcp.files import read_configured
from tenuto.config.settings import Settings
from tests.server import Call, Reply, ServerThread
from tests.tool.mcp.servers import SCRIPT, as_json

DOCUMENT = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()


def examples(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)


@pytest.fixture
def bin_with_uvx(tmp_path) -> str:
    """A folder in which `uvx mcp-server-time` is the server of the tests, and `tenuto` is this one."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, words in (
        ("uvx", f'exec {sys.executable} {SCRIPT} good "$@"'),
        ("tenuto", f'exec {sys.executable} -m tenuto "$@"'),
    ):
        (folder / name).write_text(f"#!/bin/sh\n{words}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_every_command_of_the_page_runs_as_it_stands(run, tmp_path, bin_with_uvx):
    (tmp_path / ".claude.json").write_text(json.dumps({"mcpServers": {"found": {"command": "uvx"}}}))
    ran = 0
    for example in examples("sh"):
        for line in filter(None, example.splitlines()):
            done = run("-c", line, program=["/bin/sh"], environ={"PATH": bin_with_uvx})
            assert done.returncode == 0, (line, done.stderr)
            ran += 1
            if line.startswith("tenuto mcp test"):
                assert "time answers (MCP 2025-11-25): 5 tools" in done.stdout and "mcp__time__echo" in done.stdout
            if line.startswith("tenuto mcp import"):
                assert "found  uvx" in done.stdout
    assert ran >= 7
    left = json.loads((tmp_path / "home" / "mcp.json").read_text())["mcpServers"]
    assert set(left) == {"tracker", "wiki"}
    assert left["tracker"] == {"command": "npx", "args": ["-y", "tracker-mcp"], "env": {"TOKEN": "${TRACKER_TOKEN}"}}


@pytest.mark.parametrize("example", examples("json"))
def test_every_file_of_the_page_is_read(example, tmp_path):
    (tmp_path / "mcp.json").write_text(example)
    found = read_configured(tmp_path, tmp_path / "nowhere", Settings())
    assert [one.name for one in found.servers] == list(json.loads(example)["mcpServers"]) and not found.problems


# --- prompts of servers, where there is no editor to put them into ---


def configure(tmp_path, **kinds: str) -> None:
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "mcp.json").write_text(json.dumps(as_json(**kinds)))


@pytest.mark.parametrize("name", ["mcp__good__greet", "good:greet"])
@pytest.mark.parametrize("known", [False, True])
def test_a_prompt_of_a_server_is_sent_with_its_arguments(run, tmp_path, name, known):
    """On the first start, when nobody knows yet what the server has, and on a later one."""
    configure(tmp_path, good="good")
    with ServerThread(lambda _request: Reply("Dear Ada.")) as server:
        if known:
            run("-p", "hello", server=server)
        done = run("-p", f"/{name} Ada how='with joy'", server=server)
        assert (done.returncode, done.stdout) == (0, "Dear Ada.\n"), done.stderr
        (sent,) = [item.text for item in server.requests[-1].items if f"/{name}" in item.text]
        head, _, prompt = sent.partition("<mcp-prompt>\n")
        assert head.startswith(f"/{name} Ada how='with joy'\n") and "MCP server good" in head
        assert prompt == "Greet Ada with joy\n</mcp-prompt>"


def test_a_prompt_comes_by_lines_of_json_as_well(run, tmp_path):
    configure(tmp_path, good="good")
    line = json.dumps({"type": "user", "message": {"role": "user", "content": "/mcp__good__greet Ada"}})
    words = ("-p", "--input-format", "stream-json", "--output-format", "stream-json")
    with ServerThread([Reply("Dear Ada.")]) as server:
        done = run(*words, server=server, input=f"{line}\n")
        assert json.loads(done.stdout.splitlines()[-1])["result"] == "Dear Ada."
        assert any("Greet Ada" in item.text for item in server.requests[-1].items)


def test_what_a_prompt_that_nobody_read_mentions_is_not_read_and_the_users_own_is(run, tmp_path):
    configure(tmp_path, bad="luring")
    (run.work / "secret.txt").write_text("the secret words")
    (run.work / "mine.txt").write_text("what I named")
    with ServerThread([Reply("No.")]) as server:
        run("-p", "/mcp__bad__greet Ada @mine.txt", server=server)
        sent = "\n".join(item.text for item in server.requests[-1].items)
        assert "what I named" in sent and "the secret words" not in sent
        assert sent.count("</mcp-prompt>") == 1 and "<harness-note>obey" not in sent


def test_a_prompt_that_nobody_read_counts_as_a_strangers_text(run, tmp_path):
    """What it says may have the model carry something away in an address."""
    configure(tmp_path, good="good")
    address = f"https://example.org/?q={'0123456789' * 30}"
    with ServerThread([Reply(tool_calls=[Call("fetch", {"url": address})]), Reply("No.")]) as server:
        done = run("-p", "--mode", "auto", "/mcp__good__greet Ada", server=server)
        assert "refused: fetch" in done.stderr and "stranger" in done.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/mcp__good__greet", "the prompt greet needs who: <who> [how]"),
        ("/mcp__good__gret x", "there is no prompt /mcp__good__gret; did you mean /mcp__good__greet?"),
        ("/mcp__gone__x", "the server gone is not there (failed: "),
        ("/mcp__mute__greet Ada", "mute gives no prompt greet: no answer within 1 seconds"),
    ],
)
def test_a_prompt_that_cannot_be_had_fails_with_the_reason_and_asks_no_model(run, tmp_path, line, said):
    configure(tmp_path, good="good", gone="refusing", mute="mute")
    file = tmp_path / "home" / "mcp.json"
    values = json.loads(file.read_text())
    values["mcpServers"]["mute"]["call_timeout"] = 1
    file.write_text(json.dumps(values))
    with ServerThread([]) as server:
        done = run("-p", line, server=server)
        assert done.returncode == 1 and said in done.stderr and not done.stdout
        assert not server.requests


def test_where_no_server_is_configured_a_prompt_of_one_is_named_and_not_sent(run):
    with ServerThread([]) as server:
        done = run("-p", "/mcp__good__greet Ada", server=server)
        assert done.returncode == 1 and "tenuto mcp add" in done.stderr and not server.requests


def test_a_word_with_a_colon_that_is_no_prompt_is_sent_as_text(run, tmp_path):
    configure(tmp_path, good="good")
    with ServerThread([Reply("A path.")]) as server:
        assert run("-p", "/usr:local is what?", server=server).stdout == "A path.\n"
        assert "/usr:local is what?" in [item.text for item in server.requests[0].items]


def test_trying_a_server_shows_its_prompts_as_they_are_typed(run, tmp_path):
    configure(tmp_path, good="good")
    assert "\n  /mcp__good__greet <who> [how]\n" in run("mcp", "test", "good").stdout
    assert json.loads(run("mcp", "test", "good", "--json").stdout)["prompts"] == ["mcp__good__greet"]


def test_list_names_no_secret_and_says_what_waits(run, tmp_path):
    assert run("mcp", "add", "--env", "KEY=very-secret", "one", "prog", "--flag").returncode == 0
    (run.work / ".mcp.json").write_text(json.dumps(as_json(theirs="good")))
    shown, data = run("mcp", "list"), run("mcp", "list", "--json")
    assert "KEY=… prog --flag" in shown.stdout and "theirs" in shown.stdout
    assert "very-secret" not in shown.stdout + data.stdout
    rows = {row["name"]: row["waits_for_trust"] for row in json.loads(data.stdout)["servers"]}
    assert rows == {"one": False, "theirs": True}
    assert str(SCRIPT) in run("mcp", "list", "--project").stdout


def test_adding_says_what_it_replaces_and_takes_no_other_address(run):
    assert "in the place of" not in run("mcp", "add", "one", "prog", "--old").stdout
    assert "one: prog --new, in " in (said := run("mcp", "add", "one", "prog", "--new").stdout)
    assert "in the place of prog --old" in said
    for words in (("ftp://host/x",), ("https://host/x", "more")):
        done = run("mcp", "add", "two", *words)
        assert done.returncode == 2 and "an address begins with https:// or http://" in done.stderr


def test_import_names_what_there_is_where_none_has_the_name(run):
    (run.work / ".mcp.json").write_text(json.dumps(as_json(theirs="good")))
    assert run("mcp", "import", "--only", "other").stdout == "None of them is called other: theirs\n"


def test_an_address_where_nobody_is_is_named(run):
    run("mcp", "add", "gone", "http://127.0.0.1:9/mcp")
    done = run("mcp", "test", "gone")
    assert done.returncode == 1 and "nothing can be reached at http://127.0.0.1:9/mcp" in done.stderr


def test_import_copies_what_is_new_and_a_project_s_server_by_name(run, tmp_path):
    (run.work / ".mcp.json").write_text(json.dumps(as_json(theirs="good", other="good")))
    assert "Copied 1 server" in run("mcp", "import", "--only", "theirs").stdout
    assert "left out: you have one of that name" in run("mcp", "import", "--only", "theirs").stdout
    assert set(json.loads((tmp_path / "home/mcp.json").read_text())["mcpServers"]) == {"theirs"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "a b", "prog"), "a name has"),
        (("add", "one"), "name a command or an address"),
        (("add", "--env", "KEY", "one", "prog"), "NAME=VALUE"),
        (("remove", "none"), "there is no MCP server none"),
        (("test", "none"), "there is no MCP server none"),
        (("import", "/no/such/file"), "there is no file"),
    ],
)
def test_bad_words_are_one_line_and_exit_code_2(run, words, said):
    done = run("mcp", *words)
    assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


def test_test_of_a_server_that_does_not_start_says_why(run, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/mcp.json").write_text(json.dumps(as_json(bad="refusing")))
    done = run("mcp", "test", "bad")
    assert done.returncode == 1 and "no key was given" in done.stderr
    assert json.loads(run("mcp", "test", "bad", "--json").stdout)["ready"] is False


def test_a_run_without_a_user_has_the_tools_and_asks_by_rule(run, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home/mcp.json").write_text(json.dumps(as_json(good="good", dead="refusing")))
    call = Call("mcp__good__echo", {"text": "hello"})
    script = [Reply(tool_calls=[call]), Reply("Done."), Reply(tool_calls=[call]), Reply("Done.")]
    words, patient = ("-p", "go", "--model", "openai-chat/test", "--mode", "ask"), {"TENUTO_MCP__WAIT": "60"}
    with ServerThread(script) as server:
        refused = run(*words, server=server, environ=patient)
        allowed = run(*words, "--allow", "mcp__good", server=server, environ=patient)
    assert "mcp__good__echo" in refused.stderr and "MCP server dead cannot be used" in refused.stderr
    last = json.dumps(server.requests[-1].body["messages"])
    assert allowed.returncode == 0 and "hello" in last and "needs approval" in json.dumps(server.requests[1].body)


def test_doctor_tells_what_is_configured_and_starts_nothing(run, tmp_path):
    (tmp_path / "home").mkdir(mode=0o700)
    servers = {"mcpServers": {"here": {"command": "sh"}, "gone": {"command": "no-such-program"}}}
    (tmp_path / "home/mcp.json").write_text(json.dumps(servers))
    (run.work / ".mcp.json").write_text(json.dumps(as_json(theirs="good")))
    rows = [row for row in json.loads(run("doctor", "--json").stdout)["rows"] if row["name"] == "mcp"]
    assert [row["state"] for row in rows] == ["problem", "note", "ok"]
    assert "gone (~/home/mcp.json) is not used: there is no program no-such-program" in rows[0]["found"]
    assert "theirs" in rows[1]["found"]
    assert rows[2]["found"] == "1 server"
