"""What scripts get from a headless run: formats, limits, rules, schemas, and an exit code for each end (B4)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from tests.program import TENUTO
from tests.server import Call, Hang, Reply, Search, ServerThread
from tests.server.scripts import fix_tests, steps

MODEL = ("--model", "openai-chat/test")
PROTOCOLS = ("anthropic", "openai", "openai-chat")
EDIT = Call("write", {"path": "new.txt", "content": "hello\n"})
TESTS = Call("bash", {"command": "python -c 'print(42)'"})


def once(*calls: Call, end: str = "Done."):
    """Ask for the calls, then end."""
    return lambda request: Reply(end) if request.turn else Reply("On it.", tool_calls=calls)


def result_of(done) -> dict:
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_b4_json_is_one_object_with_what_the_run_came_to(run, protocol):
    with ServerThread(once(EDIT)) as server:
        model = f"{protocol}/test"
        done = run("-p", "go", "--model", model, "--mode", "edits", "--output-format", "json", server=server)
    found = result_of(done)
    assert done.stdout.count("\n") == 1
    assert (found["type"], found["subtype"], found["is_error"], found["exit_code"]) == ("result", "success", False, 0)
    assert (found["result"], found["num_turns"]) == ("Done.", 2)
    assert found["changed_files"] == [str(run.work / "new.txt")]
    assert found["usage"]["output_tokens"] > 0
    assert found["session_id"]
    assert found["permission_denials"] == []


def test_b4_stream_json_has_a_line_for_each_message_and_ends_with_the_result(run):
    with ServerThread(once(EDIT)) as server:
        done = run("-p", "go", *MODEL, "--mode", "edits", "--output-format", "stream-json", server=server)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [line["type"] for line in lines if line.get("subtype") not in {"notice"}]
    assert kinds == ["system", "user", "assistant", "user", "assistant", "result"]
    assert lines[0]["subtype"] == "init"
    calls = [block for line in lines if line["type"] == "assistant" for block in line["message"]["content"]]
    assert {"type": "tool_use", "name": "write", "input": EDIT.args, "id": calls[1]["id"]} == calls[1]
    assert len({line["session_id"] for line in lines}) == 1


def test_b4_refused_calls_are_named_in_the_result_and_on_standard_error(run):
    with ServerThread(once(EDIT, TESTS)) as server:
        done = run("-p", "go", *MODEL, "--output-format", "json", server=server)
    found = result_of(done)
    assert (done.returncode, found["subtype"], found["is_error"]) == (5, "error_calls_refused", True)
    assert [call["tool_name"] for call in found["permission_denials"]] == ["write", "bash"]
    assert done.stderr.count("refused: ") == 2


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_b4_the_model_is_told_that_nobody_answers_and_what_its_mode_allows(run, protocol):
    with ServerThread(once()) as server:
        run("-p", "go", "--model", f"{protocol}/test", "--mode", "edits", server=server)
    text = "\n".join(item.text for item in server.requests[0].items)
    assert "nobody answers" in text
    assert "edits inside the working directory run; commands that do more than look are refused" in text
    assert "The user is asked" not in text


@pytest.mark.parametrize(("turns", "said"), [(1, "1 turn"), (3, "3 turns")])
def test_b4_a_limit_of_turns_ends_the_run(run, turns, said):
    with ServerThread(steps(9)) as server:
        done = run("-p", "go", *MODEL, "--mode", "auto", "--max-turns", str(turns), "-o", "json", server=server)
    found = result_of(done)
    assert (done.returncode, found["subtype"], found["num_turns"]) == (4, "error_limit_reached", turns)
    assert len(server.requests) == turns
    assert found["error"] == f"stopped after {said} (--max-turns)"


def test_b4_a_limit_of_cost_needs_a_price(run):
    with ServerThread(steps(3)) as server:
        done = run("-p", "go", *MODEL, "--max-cost", "1", server=server)
    assert (done.returncode, server.requests) == (2, [])
    assert "the price of openai-chat/test is not known" in done.stderr


def test_b4_a_limit_of_time_ends_a_run_that_waits(run):
    with ServerThread(lambda _request: Hang()) as server:
        done = run("-p", "go", *MODEL, "--timeout", "0.5", "--output-format", "json", server=server)
    assert (done.returncode, result_of(done)["subtype"]) == (4, "error_limit_reached")
    assert "--timeout" in done.stderr


def test_b4_a_limit_of_time_ends_what_a_command_does(run):
    slow = Call("bash", {"command": "sleep 600; echo never > never.txt"})
    with ServerThread(once(slow)) as server:
        done = run("-p", "go", *MODEL, "--mode", "auto", "--timeout", "1.5", server=server)
    assert done.returncode == 4
    assert not (run.work / "never.txt").exists()


def test_b4_a_run_that_is_ended_while_it_waits_for_a_job_has_a_result(run):
    job = Call("bash", {"command": "sleep 300", "background": True})
    with ServerThread(once(job)) as server:
        options = ("--mode", "auto", "--timeout", "8", "--output-format", "json")
        done = run("-p", "go", *MODEL, *options, server=server)
    found = result_of(done)
    assert (done.returncode, found["subtype"], found["result"]) == (4, "error_limit_reached", "Done.")
    assert done.stderr.count("stopped after 8 s") == 1


@pytest.mark.parametrize(
    ("rules", "command", "runs"),
    [
        (("bash(touch *)",), "touch 'out 1.txt'", True),
        (("Bash(touch:*)",), "touch a", True),
        (("bash(touch -c *)",), "touch -c out.txt", True),
        (("bash",), "touch x > out.txt && cat out.txt", True),
        (("bash",), "python -c 'print(42)' > out.txt && cat out.txt", True),
        (("bash(touch -m *)",), "touch -c out.txt", False),
        (("bash(touch *)",), "touch x; echo more", True),
        (("bash(touch *)",), "touch x; mkdir more", False),
        (("bash(touch *)",), "touch x $(mkdir more)", False),
        (("bash(touch *)",), 'touch "$(mkdir more)"', False),
        (("bash(touch *)",), "touch 'it'\"'; mkdir more '\"", True),
        (("bash(touch *)",), 'touch "it\'s"; mkdir "more\'"', False),
        (("bash(touch *)", "bash(mkdir *)"), "touch x && mkdir more", True),
        (("bash(touch *)",), "touchx --version", False),
        (("bash(python *)",), "python -c 'print(42)'", False),
        (("bash(python -c *)",), "python -c 'print(42)'", False),
        (("bash(python -c 'print(42)')",), "python -c 'print(42)'", True),
        (("bash(python -m pytest *)",), "python -c 'print(42)'", False),
        (("bash(python *)",), "python a.py; touch more", False),
        (("bash(python *)",), "pythonx --version", False),
        (("bash(python -m json.tool *)",), "python -m json.tool --help", True),
        (("edit", "bash(pip *)"), "touch x", False),
    ],
)
def test_b4_a_rule_allows_what_it_names_and_nothing_else(run, rules, command, runs):
    allow = [word for rule in rules for word in ("--allow", rule)]
    with ServerThread(once(Call("bash", {"command": command}))) as server:
        done = run("-p", "go", *MODEL, *allow, server=server)
    assert done.returncode == (0 if runs else 5), done.stderr


@pytest.mark.parametrize(
    ("rule", "path", "runs"),
    [("edit", "a/b.txt", True), ("edit(a/**)", "a/b.txt", True), ("edit(a/**)", "b.txt", False),
     ("write(b.txt)", "b.txt", True), ("edit(b.txt)", "c.txt", False), ("edit", "../out.txt", False)],
)  # fmt: skip
def test_b4_a_rule_for_edits_names_files(run, rule, path, runs):
    with ServerThread(once(Call("write", {"path": path, "content": "x"}))) as server:
        done = run("-p", "go", *MODEL, "--allow", rule, server=server)
    assert done.returncode == (0 if runs else 5), done.stderr
    assert (run.work / path).exists() == runs


@pytest.mark.parametrize(
    ("command", "code"), [("rm x", 5), ("ls && rm x", 5), ("bash -c 'rm x'", 5), ("touch a", 0), ("ls", 0)]
)
def test_a_rule_that_denies_wins_over_mode_and_allowed_rules(run, command, code):
    (run.work / "x").write_text("x")
    options = ("--mode", "auto", "--allow", "bash", "--deny", "bash(rm *)")
    with ServerThread(once(Call("bash", {"command": command}))) as server:
        done = run("-p", "go", *MODEL, *options, server=server)
    assert (run.work / "x").exists()
    assert ("your rule denies it: bash(rm *) (the command line)" in done.stderr) == bool(code)
    assert done.returncode == code, done.stderr


def test_added_directories_count_as_workspace(run, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    write = Call("write", {"path": str(other / "a.txt"), "content": "x"})
    with ServerThread(once(write)) as server:
        assert run("-p", "go", *MODEL, "--mode", "edits", server=server).returncode == 5
    with ServerThread(once(write)) as server:
        done = run("-p", "go", *MODEL, "--mode", "edits", "--add-dir", "../other", server=server)
    assert done.returncode == 0, done.stderr
    assert (other / "a.txt").exists()
    (other / "a.txt").unlink()
    with ServerThread(once(write)) as server:
        done = run("-p", "go", *MODEL, "-c", server=server)
    assert (done.returncode, (other / "a.txt").exists()) == (0, True), "it survives resuming"
    done = run("-p", "go", *MODEL, "--add-dir", "missing", server=None)
    assert done.returncode == 2
    assert "--add-dir missing" in done.stderr and "--cwd" not in done.stderr


SCHEMA = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}


def with_schema(run, *answers: str):
    (run.work / "schema.json").write_text(json.dumps(SCHEMA))
    left = list(answers)
    with ServerThread(lambda _request: Reply(left.pop(0))) as server:
        options = ("--output-schema", "schema.json", "--output-format", "json")
        return run("-p", "add", *MODEL, *options, server=server), server


def test_b4_an_answer_that_does_not_fit_the_schema_is_asked_for_again(run):
    done, server = with_schema(run, "It is 42.", '{"sum": "42"}', 'Here:\n```json\n{"sum": 42}\n```')
    assert (done.returncode, result_of(done)["structured_output"]) == (0, {"sum": 42}), done.stderr
    assert '"required": ["sum"]' in "\n".join(item.text for item in server.requests[0].items)
    assert "not one JSON value" in server.requests[1].items[-1].text
    assert "$.sum" in server.requests[2].items[-1].text


def test_b4_after_two_retries_the_run_has_failed(run):
    done, server = with_schema(run, "no", "no", "no", "no")
    assert (done.returncode, len(server.requests)) == (1, 3)
    assert "does not fit the schema" in result_of(done)["error"]


def test_b4_prompts_come_as_lines_and_each_has_a_result(run):
    messages = [
        {"type": "user", "message": {"role": "user", "content": "one"}},
        {"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "two"}]}},
    ]
    options = ("-p", *MODEL, "--input-format", "stream-json", "--output-format", "stream-json")
    with ServerThread(lambda request: Reply(f"You said {request.last_user.split()[0]}.")) as server:
        done = run(*options, server=server, input="\n".join(map(json.dumps, messages)) + "\n")
        bad = run(*options, server=server, input='{"type": "user"}\n' + json.dumps(messages[0]) + "\n")
    results = [json.loads(line) for line in done.stdout.splitlines() if '"result"' in line[:20]]
    assert [found["result"] for found in results] == ["You said one.", "You said two."]
    assert len({found["session_id"] for found in results}) == 1
    assert done.returncode == 0
    assert (bad.returncode, result_of(bad)["result"]) == (2, "You said one.")
    assert "left out" in bad.stderr


@dataclass
class Held:
    """A session that is held: `send` gives it lines, `line` waits for one of a type."""

    process: subprocess.Popen[str]
    seen: list[dict] = field(default_factory=list)

    def send(self, *messages: str | dict) -> None:
        for message in messages:
            prompt = {"type": "user", "message": {"role": "user", "content": message}}
            self.process.stdin.write(json.dumps(prompt if isinstance(message, str) else message) + "\n")
        self.process.stdin.flush()

    def line(self, kind: str) -> dict:
        while True:
            text = self.process.stdout.readline()
            assert text, "it has ended"
            self.seen.append(json.loads(text))
            if self.seen[-1]["type"] == kind:
                return self.seen[-1]

    def end(self) -> tuple[list[dict], str]:
        """End its input, and read it to its end: `communicate` would leave out what came along with the last line."""
        self.process.stdin.close()
        self.seen += map(json.loads, self.process.stdout)
        errors = self.process.stderr.read()
        self.process.wait(120)
        return [line for line in self.seen if line["type"] == "result"], errors


@contextmanager
def held(run, tmp_path, server, *options: str) -> Iterator[Held]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    formats = ("--input-format", "stream-json", "--output-format", "stream-json")
    process = subprocess.Popen(
        [*TENUTO, "-p", *MODEL, *formats, *options],
        cwd=run.work,
        env=environ | server.environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield Held(process)
    finally:
        process.kill()
        process.wait()


INTERRUPT = {"type": "control_request", "request_id": "r-1", "request": {"subtype": "interrupt"}}


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_b4_prompts_that_come_while_a_turn_runs_have_results_of_their_own(run, tmp_path):
    left = [Hang(), Reply("Second."), Reply("Third.")]
    with ServerThread(lambda _request: left.pop(0)) as server, held(run, tmp_path, server) as session:
        session.send("one")
        until(lambda: server.requests)
        session.send("two", "three", INTERRUPT)
        answered = session.line("control_response")
        assert answered["response"] == {"subtype": "success", "request_id": "r-1"}
        results, _ = session.end()
    assert [found["subtype"] for found in results] == ["error_interrupted", "success", "success"]
    assert [found["result"] for found in results] == ["", "Second.", "Third."]
    assert [found["num_turns"] for found in results] == [1, 1, 1]
    asked = [line["message"]["content"][0]["text"] for line in session.seen if line["type"] == "user"]
    assert asked == ["one", "two", "three"]
    assert session.process.returncode == 0


def test_b4_an_interrupt_ends_the_wait_for_jobs_which_go_on(run, tmp_path):
    job = Call("bash", {"command": "while [ ! -e go ]; do sleep 0.05; done; touch gone", "background": True})
    replies = [Reply(tool_calls=[job]), Reply("It is built."), Reply("It runs."), Reply("Next."), Reply("Ended.")]
    with ServerThread(lambda _request: replies.pop(0)) as server:
        with held(run, tmp_path, server, "--mode", "auto") as session:
            session.send("build")
            until(lambda: "Waiting for job-1" in session.line("system").get("text", ""))
            session.send(INTERRUPT)
            first = session.line("result")
            assert (first["subtype"], first["result"]) == ("error_interrupted", "It runs.")
            (run.work / "go").touch()
            until((run.work / "gone").exists)
            session.send("and now?")
            assert session.line("result")["subtype"] == "success"
            session.end()


def test_b4_a_signal_ends_a_held_session_and_what_was_not_sent_is_said(run, tmp_path):
    with ServerThread(lambda _request: Hang()) as server, held(run, tmp_path, server) as session:
        session.send("one", "two", "three")
        until(lambda: server.requests)
        time.sleep(0.2)
        session.process.send_signal(signal.SIGTERM)
        session.line("result")
        results, errors = session.end()
    assert [found["subtype"] for found in results] == ["error_interrupted"]
    assert "2 prompts of standard input were not sent" in errors
    assert session.process.returncode == 130
    assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["json", "stream-json"])
def test_b4_a_run_that_a_signal_ends_while_it_waits_for_a_job_has_a_result(run, tmp_path, kind):
    job = Call("bash", {"command": "sleep 300", "background": True})
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    with ServerThread(once(job)) as server:
        command = [*TENUTO, "-p", "go", *MODEL, "--mode", "auto", "--output-format", kind]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen(command, cwd=run.work, env=environ | server.environ(), **streams)
        until(lambda: b"Waiting for job-1" in process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=120)
    found = json.loads(output.splitlines()[-1])
    assert (process.returncode, found["subtype"], found["result"]) == (130, "error_interrupted", "Done.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--output-format", "jsonl"), "did you mean json?"),
        (("--input-format", "stream-json"), "goes with --output-format stream-json"),
        (("--json", "--output-format", "json"), "exclude each other"),
        (("--max-turns", "none"), "a whole number from 1"),
        (("--max-cost", "-1"), "a number over 0"),
        (("--timeout", "nan"), "a number over 0"),
        (("--allow", "bsh(ls)"), "did you mean bash?"),
        (("--allow", "bash(ls"), "tool(pattern)"),
        (("--output-schema", "nowhere.json"), "cannot be read"),
    ],
)
def test_b4_bad_usage_says_what_to_do(run, arguments, words):
    done = run("-p", "hello", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr


def test_b4_a_schema_that_is_none_is_refused(run):
    (run.work / "schema.json").write_text('{"type": "objct"}')
    done = run("-p", "hello", "--output-schema", "schema.json")
    assert done.returncode == 2
    assert "no JSON schema" in done.stderr


def test_b4_sigterm_ends_a_run_in_each_format(run, tmp_path):
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    with ServerThread(lambda _request: Hang()) as server:
        command = [*TENUTO, "-p", "go", *MODEL, "--output-format", "json"]
        process = subprocess.Popen(
            command, cwd=run.work, env=environ | server.environ(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        while not server.requests:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert json.loads(output)["subtype"] == "error_interrupted"


def test_b4_a_reader_that_leaves_ends_the_run_at_once(run):
    with ServerThread(fix_tests) as server:
        command = 'exec "$0" -m tenuto -p go --model openai-chat/test --output-format stream-json | head -1'
        done = run(command, sys.executable, server=server, program=["/bin/sh", "-c"])
    assert json.loads(done.stdout)["subtype"] == "init"
    assert len(server.requests) <= 1


@pytest.mark.parametrize("protocol", ["anthropic", "openai"])
def test_b15_stream_json_has_searches_with_their_pages_and_texts_with_what_they_cite(run, protocol):
    pages = [("A page", "https://a.example/1"), ("Another", "https://b.example/2")]
    reply = Reply("It is so.", searches=[Search("what is so", pages)])
    with ServerThread([reply]) as server:
        options = ("--model", f"{protocol}/test", "--output-format", "stream-json")
        done = run("-p", "go", *options, server=server, environ={"TENUTO_TOOLS__WEB_SEARCH": "true"})
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    blocks = [block for line in lines if line["type"] == "assistant" for block in line["message"]["content"]]
    search, said = blocks
    assert (search["type"], search["action"], search["query"]) == ("web_search", "search", "what is so")
    assert [page["url"] for page in search["results"]] == [url for _title, url in pages]
    assert said["citations"] == [{"url": url, "title": title} for title, url in pages]
    assert result_of(done)["usage"]["server_tool_use"] == {"web_search_requests": 1}
    assert result_of(done)["sources"] == [{"title": title, "url": url} for title, url in pages]


@pytest.mark.parametrize("protocol", ["anthropic", "openai"])
def test_b15_the_result_has_the_pages_that_its_text_cites_and_text_output_has_none(run, protocol):
    """Pages of an answer that a later one replaces are left out; those of a text in two parts are told together."""
    first, second, third = [(f"Page {name}", f"https://{name}.example/") for name in "abc"]
    options = ("--model", f"{protocol}/test", "--output-format")
    environ = {"TENUTO_TOOLS__WEB_SEARCH": "true"}

    def script():
        return [
            Reply("I look.", searches=[Search("a", [first])], tool_calls=[Call("glob", {"pattern": "*"})]),
            Reply("One and ", searches=[Search("b", [second])], stop="max_tokens"),
            Reply("two.", searches=[Search("c", [third, second])]),
        ]

    with ServerThread(script()) as server:
        found = result_of(run("-p", "go", *options, "json", server=server, environ=environ))
    assert found["result"] == "One and two."
    assert found["sources"] == [{"title": title, "url": url} for title, url in (second, third)]
    with ServerThread(script()) as server:
        done = run("-p", "go", *options, "text", server=server, environ=environ)
    assert done.stdout == "One and two.\n"
    with ServerThread([Reply("No search.")]) as server:
        assert result_of(run("-p", "go", *options, "json", server=server))["sources"] == []
