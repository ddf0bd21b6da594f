"""Print mode as a script sees it: a real process, real pipes, exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.examples import in_turn, one_of
from tests.program import TENUTO
from tests.server import Call, Hang, HttpError, Reply, ServerThread
from tests.server.clouds import cloud_environ
from tests.server.scripts import fix_tests


def in_shell(run, command, server):
    return run(command, sys.executable, server=server, program=["/bin/sh", "-c"])


def test_the_answer_goes_to_standard_output(run):
    with ServerThread([Reply("Forty-two.")]) as server:
        done = run("-p", "what is it?", "--model", "openai-chat/test", server=server)
    assert (done.returncode, done.stdout) == (0, "Forty-two.\n"), done.stderr


@pytest.mark.parametrize("protocol", ["anthropic", "openai", "openai-chat"])
def test_b11_an_effort_that_is_none_is_bad_usage_and_nothing_is_sent(run, protocol):
    name = "claude-opus-5-5" if protocol == "anthropic" else "gpt-6.1-sol"
    with ServerThread([Reply("Forty-two.")]) as server:
        lacking = run("-p", "hi", "--model", f"{protocol}/{name}:ultra", server=server)
        mistyped = run("-p", "hi", "--model", f"{protocol}/{name}:hihg", server=server)
        assert server.requests == []
    assert (lacking.returncode, lacking.stdout, mistyped.returncode, mistyped.stdout) == (2, "", 2, "")
    assert "it has low, medium, high, xhigh, max" in lacking.stderr
    assert f"did you mean {protocol}/{name}:high?" in mistyped.stderr


def test_json_gives_every_event_as_a_line(run):
    with ServerThread([Reply("Forty-two.")]) as server:
        done = run("-p", "what is it?", "--json", "--model", "openai-chat/test", server=server)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [events[0]["event"], events[-1]["event"]] == ["session_opened", "task_settled"]
    assert all(event["session_id"] == events[0]["session_id"] for event in events)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that takes nothing")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_output_that_takes_no_more_is_said_in_one_line(run, options):
    with ServerThread([Reply("Forty-two.")]) as server:
        command = f'exec "$0" -m tenuto -p hello --model openai-chat/test {" ".join(options)} > /dev/full'
        done = in_shell(run, command, server)
    assert (done.returncode, done.stderr) == (1, "tenuto: standard output: No space left on device\n")


def test_without_a_descriptor_for_errors_the_answer_comes_all_the_same(run):
    with ServerThread([Reply("Forty-two.")]) as server:
        done = in_shell(run, 'exec "$0" -m tenuto -p hello --model openai-chat/test 2>&-', server)
    assert (done.returncode, done.stdout) == (0, "Forty-two.\n")


def test_without_a_descriptor_for_output_nothing_is_asked(run):
    with ServerThread([Reply("Forty-two.")]) as server:
        done = in_shell(run, 'exec "$0" -m tenuto -p hello --model openai-chat/test >&-', server)
    assert (done.returncode, done.stderr) == (2, "tenuto: standard output is closed\n")
    assert server.requests == []


def test_standard_input_is_joined_to_the_prompt(run):
    with ServerThread([Reply("ok")]) as server:
        done = run("-p", "explain", "--model", "openai-chat/test", server=server, input="a stack trace")
    assert done.returncode == 0, done.stderr
    text = server.requests[0].items[-1].text
    assert "explain" in text
    assert "a stack trace" in text


def test_standard_input_alone_is_the_prompt(run):
    with ServerThread([Reply("ok")]) as server:
        done = run("-p", "--model", "openai-chat/test", server=server, input="just this")
    assert done.returncode == 0, done.stderr
    assert "just this" in server.requests[0].items[-1].text


def test_r081_an_open_silent_pipe_is_not_waited_for(run):
    """T-35"""
    read_end, write_end = os.pipe()
    try:
        with ServerThread([Reply("ok")]) as server:
            done = run("-p", "hello", "--model", "openai-chat/test", server=server, stdin=read_end)
    finally:
        os.close(read_end)
        os.close(write_end)
    assert done.returncode == 0, done.stderr


def test_r081_without_a_terminal_a_prompt_is_answered(run):
    with ServerThread([Reply("ok")]) as server:
        done = run("hello", "--model", "openai-chat/test", server=server)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stderr


def test_r082_a_failure_has_a_reason_and_an_exit_code(run):
    with ServerThread(lambda request: HttpError(400, "that is not possible")) as server:
        done = run("-p", "x" * 100_000, "--model", "openai-chat/test", server=server)
    assert done.returncode == 1
    assert "that is not possible" in done.stderr


def test_a_prompt_that_does_not_fit_comes_back_with_the_sizes_said_once(run):
    with ServerThread([Reply("ok")], window=8_000) as server:
        environ = {"TENUTO_COMPACTION__ENABLED": "false"}
        # The first run learns the window, the second one knows it.
        run("-p", "hello", "--model", "openai-chat/test", server=server, environ=environ)
        done = run("-p", "word " * 20_000, "--model", "openai-chat/test", server=server, environ=environ)
    assert done.returncode == 1
    assert done.stderr.count("does not fit") == 1
    assert "8,000" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "environ", "code", "words"),
    [
        (["-p", "x", "--model", "nonsense"], {}, 2, ["provider/name"]),
        (["-p", "x", "--model", "nobody/test"], {}, 2, ["nobody"]),
        (["-p", "x", "--model", "anthropic/test"], {"ANTHROPIC_API_KEY": ""}, 2, ["ANTHROPIC_API_KEY"]),
        (["-p", "x", "--model", "openai/test"], {"OPENAI_API_KEY": ""}, 2, ["OPENAI_API_KEY"]),
        (["-p", "x", "--cwd", "/nowhere"], {}, 2, ["/nowhere"]),
        (["-p", "x", "--resume", "nothing"], {}, 2, ["nothing"]),
        (["-p", "x", "--continue"], {}, 2, ["--continue"]),
        (["--frobnicate"], {}, 2, ["--frobnicate", "--help"]),
        (["-p"], {}, 2, ["prompt"]),
        (["-p", " \n"], {}, 2, ["prompt"]),
        (["-p", "-"], {}, 2, ["prompt"]),
        ([], {}, 2, ["terminal", "-p"]),
    ],
)
def test_bad_input_gives_one_clear_line(run, arguments, environ, code, words):
    done = run(*arguments, environ=environ)
    assert done.returncode == code
    assert len(done.stderr.strip().splitlines()) == 1
    assert all(word in done.stderr for word in words), done.stderr


def test_a_bad_key_names_the_variable(run):
    with ServerThread([Reply("ok")], api_key="the-right-one") as server:
        done = run("-p", "x", "--model", "anthropic/test", server=server, environ={"ANTHROPIC_API_KEY": "wrong"})
    assert done.returncode == 1
    assert "ANTHROPIC_API_KEY" in done.stderr


def test_an_unknown_model_is_named_and_not_tried_again(run):
    with ServerThread([HttpError(404, "The model `no-such` does not exist")]) as server:
        done = run("-p", "x", "--model", "openai-chat/no-such", server=server)
    assert done.returncode == 1
    assert "no-such" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert len(server.requests) == 1


def test_an_unreachable_server_is_named(run):
    environ = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "x", "TENUTO_REQUEST__RETRIES": "0"}
    done = run("-p", "x", "--model", "openai-chat/test", environ=environ)
    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stderr


def test_a_broken_settings_file_does_not_stop_the_start(run, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text("this is = = not toml")
    done = run("-p", "hello", "--model", "offline/tenuto")
    assert done.returncode == 0
    assert "settings.toml" in done.stderr


@pytest.mark.parametrize(
    ("words", "environ", "code"),
    [
        (["hello"], {}, 1),
        (["hello", "-o", "json"], {"ANTHROPIC_API_KEY": ""}, 1),
        (["hello", "--output-schema", "schema.json"], {}, 1),
        (["hello", "--model", "offline/tenuto"], {}, 0),
        (["hello"], {"TENUTO_MODEL": "offline/tenuto"}, 0),
        (["list"], {}, 0),
        (["/status"], {}, 0),
    ],
)
def test_without_a_key_only_what_the_offline_model_knows_is_no_failure(run, words, environ, code):
    """A script goes by the exit code: nobody is to commit what no model has looked at."""
    (run.work / "schema.json").write_text('{"type": "object"}')
    done = run("-p", *words, environ=environ)
    assert done.returncode == code, done.stderr
    assert "offline" in done.stdout.lower() or words != ["hello"]
    assert ("no model was asked" in done.stderr and "ANTHROPIC_API_KEY" in done.stderr) == (code == 1)


def test_a_key_that_is_missing_for_a_named_model_is_bad_usage(run):
    for done in (run("-p", "x", "-m", "anthropic/m"), run("-p", "x", environ={"TENUTO_MODEL": "anthropic/m"})):
        assert done.returncode == 2 and "ANTHROPIC_API_KEY" in done.stderr and not done.stdout


WRITE = Call("write", {"path": "made.txt", "content": "x"})
TOUCH = Call("bash", {"command": "touch made"})
OUTSIDE = Call("write", {"path": "/made-outside", "content": "x"})
EDIT, RUN_TOUCH, OUT = "--allow 'edit(**)'", "--allow 'bash(touch *)'", "--allow 'edit(/made-outside)'"
REFUSALS = [
    ("ask", [WRITE], f"1 call was refused (mode: ask); --mode edits or auto allow it, or {EDIT}", 5),
    (
        "ask",
        [WRITE, TOUCH],
        f"2 calls were refused (mode: ask); --mode auto allows them, or {EDIT} {RUN_TOUCH}",
        5,
    ),
    ("edits", [WRITE, TOUCH], f"1 call was refused (mode: edits); --mode auto allows it, or {RUN_TOUCH}", 5),
    (
        "ask",
        [TOUCH, OUTSIDE],
        f"2 calls were refused (mode: ask); --mode auto allows 1 of them, or {RUN_TOUCH} {OUT}",
        5,
    ),
    (
        "auto",
        [OUTSIDE],
        f"1 call was refused (mode: auto); no mode allows it without a user, the rule does: {OUT}",
        5,
    ),
    ("plan", [WRITE], "1 call was refused (mode: plan); --mode edits or auto lets the work begin", 0),
    ("auto", [WRITE, TOUCH], "", 0),
]


@pytest.mark.parametrize(("refusal", "options"), in_turn(REFUSALS, [(), ("--json",)]))
def test_f3_each_refused_call_is_said_and_the_exit_code_tells(run, refusal, options):
    """daily-user.md F3: refused calls were silent, and the exit code was 0."""
    mode, calls, said, code = refusal
    with ServerThread([Reply(tool_calls=calls), Reply("Done.")]) as server:
        done = run("-p", "go", "--mode", mode, *options, "--model", "openai-chat/test", server=server)
    assert done.returncode == code, done.stderr
    lines = done.stderr.splitlines()
    assert (lines[-1] if lines else "") == (f"tenuto: {said}" if said else "")
    refused = [line for line in lines if line.startswith("tenuto: refused: ")]
    assert len(refused) == int(said.partition(" ")[0] or 0)
    if options:
        events = [json.loads(line) for line in done.stdout.splitlines()]
        assert sum(event["event"] == "call_refused" for event in events) == len(refused)
        assert events[-1]["event"] == "task_settled"
        assert events[-1].get("refused", 0) == (len(refused) if code else 0)
    else:
        assert done.stdout == "Done.\n"


def test_headless_refuses_what_needs_asking_and_names_the_mode(run):
    with ServerThread([Reply(tool_calls=[TOUCH]), Reply("I may not.")]) as server:
        done = run("-p", "go", "--mode", "ask", "--model", "openai-chat/test", server=server)
    assert done.returncode == 5, done.stderr
    assert "tenuto: refused: bash touch made (" in done.stderr
    assert not (run.work / "made").exists()
    assert "auto" in server.requests[1].items[-1].text


def wait_until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120  # a hang guard, not a measure
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_sigint_ends_with_130(run, tmp_path):
    with ServerThread([Hang()]) as server:
        environ = {"PATH": os.environ["PATH"], "TENUTO_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
        process = subprocess.Popen(
            [*TENUTO, "-p", "go", "--model", "openai-chat/test"],
            env=environ | server.environ(),
            cwd=run.work,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        wait_until(lambda: server.all_requests)
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
        process.stderr.close()


def test_no_session_leaves_nothing_behind(run, tmp_path):
    with ServerThread([Reply("ok")]) as server:
        done = run("-p", "hello", "--no-session", "--model", "openai-chat/test", server=server)
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "home").glob("sessions/**/events.jsonl"))


@pytest.mark.parametrize("protocol", one_of(["anthropic", "openai", "openai-chat"], 1))
def test_main_job_from_the_command_line(run, protocol):
    from tests.core.harness import copy_sample

    repo = copy_sample(run.work / "repo")
    with ServerThread(fix_tests) as server:
        model = ["--mode", "auto", "--model", f"{protocol}/test"]
        done = run("-p", "make the tests pass", *model, server=server, cwd=repo)
    assert done.returncode == 0, done.stderr
    check = subprocess.run([sys.executable, "-m", "pytest", "-q"], cwd=repo, capture_output=True, check=False)
    assert check.returncode == 0


@pytest.mark.parametrize(
    ("protocol", "name"),
    [
        *((protocol, "test") for protocol in ("anthropic", "openai", "openai-chat")),
        ("gemini", "gemini-3.8-flash"),
        # What a cloud adds is who asks and where: the conversation is that of one of these.
        pytest.param("gemini", "gemini-2.5-flash", marks=pytest.mark.full),
        *(pytest.param(cloud, "test", marks=pytest.mark.full) for cloud in ("bedrock", "vertex", "azure")),
        pytest.param("azure over responses", "test", marks=pytest.mark.full),
    ],
)
def test_t26_r068_kill_in_mid_tool_call_then_continue(run, tmp_path, protocol, name):
    script = [
        Reply(thinking="hm", tool_calls=[Call("bash", {"command": "touch begun; sleep 300"})]),
        Reply("I will check."),
    ]
    with ServerThread(script, check_thinking=True) as server:
        environ = {"PATH": os.environ["PATH"], "TENUTO_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
        clouds = cloud_environ(server.base_url, tmp_path)
        if protocol == "azure over responses":
            clouds["TENUTO_PROVIDERS__AZURE__KIND"] = "openai"
        model = f"{protocol.partition(' ')[0]}/{name}"
        process = subprocess.Popen(
            [*TENUTO, "-p", "go", "--mode", "auto", "--model", model],
            env=environ | server.environ() | clouds,
            cwd=run.work,
            stdin=subprocess.DEVNULL,
        )
        wait_until((run.work / "begun").exists)
        process.kill()
        process.wait(120)
        done = run("-p", "go on", "--continue", "--model", model, server=server, environ=clouds)
        assert done.returncode == 0, done.stderr
        request = server.requests[-1]
        assert not request.refused
        assert len(server.requests) == 2
        assert any("may have taken effect" in item.text for item in request.items)


def test_a_slash_command_is_run_and_not_sent(run):
    done = run("-p", "/help", "--model", "offline/tenuto")
    assert done.returncode == 0, done.stderr
    assert "/compact" in done.stdout
    done = run("-p", "/compact the names", "--model", "offline/tenuto")
    assert done.returncode == 0
    assert "nothing to compact" in done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("/export /nowhere/at/all.md", "/nowhere/at/all.md"),
        ("/model nobody/test", "“nobody”"),
        ("/mode fast", "fast"),
        ("/rewind 9999", "9999"),
        ("/approvals add bash(", "bash("),
    ],
)
def test_a_slash_command_that_could_not_be_done_fails_the_run(run, line, words):
    done = run("-p", line, "--model", "offline/tenuto")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count(words) == 1, done.stderr
    result = run("-p", line, "--model", "offline/tenuto", "--output-format", "json")
    told = json.loads(result.stdout)
    assert (result.returncode, told["is_error"], told["result"]) == (1, True, "")
    assert words in told["error"]


def test_a_path_is_no_slash_command(run):
    with ServerThread([Reply("a directory")]) as server:
        done = run("-p", "/usr/bin is what?", "--model", "openai-chat/test", server=server)
    assert done.stdout == "a directory\n", done.stderr


@pytest.mark.parametrize("name", ["no-such-theme", "../auth", "Dark"])
def test_a_theme_that_does_not_exist_is_said_once_and_the_run_goes_on(run, name):
    """daily-user.md: the screens say it, and a run without one does too."""
    with ServerThread([Reply("Forty-two.")]) as server:
        environ = {"TENUTO_UI__THEME": name}
        done = run("-p", "what is it?", "--model", "openai-chat/test", server=server, environ=environ)
    assert (done.returncode, done.stdout) == (0, "Forty-two.\n")
    assert done.stderr.count("There is no theme") == 1 and name in done.stderr


def test_what_the_settings_name_for_compaction_and_cannot_be_used_is_said_and_the_run_goes_on(run):
    with ServerThread([Reply("Forty-two.")]) as server:
        environ = {"TENUTO_COMPACTION__STRATEGY": "no.such:Thing", "TENUTO_COMPACTION__MODEL": "nobody/at-all"}
        done = run("-p", "what is it?", "--model", "openai-chat/test", server=server, environ=environ)
    assert (done.returncode, done.stdout) == (0, "Forty-two.\n")
    assert done.stderr.count("no.such:Thing") == 1 and done.stderr.count("nobody/at-all") == 1


PLAN = "# Make it quick\n\n1. measure\n2. import later"
FORMATS = [(), ("--output-format", "json"), ("--output-format", "stream-json"), ("--json",)]


@pytest.mark.parametrize(("protocol", "options"), in_turn(["anthropic", "openai", "openai-chat"], FORMATS))
def test_b15_a_plan_is_the_result_without_its_tags(run, protocol, options):
    answer = Reply(f"I looked.\n\n<proposed_plan>\n{PLAN}\n</proposed_plan>\n", chunk_size=5)
    with ServerThread([answer, Reply("never asked for")]) as server:
        done = run("-p", "go", "--mode", "plan", *options, "--model", f"{protocol}/test", server=server)
        assert len(server.requests) == 1
    assert done.returncode == 0, done.stderr
    assert "proposed_plan" not in done.stdout.replace(json.dumps(PLAN), "")
    if not options:
        assert done.stdout == f"{PLAN}\n"
    elif options != ("--json",):
        assert json.loads(done.stdout.splitlines()[-1])["result"] == PLAN
