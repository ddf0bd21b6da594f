"""`tenuto login` and `tenuto logout`, and keys by command: real processes, a real server, a real keyring backend."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.file_keyring import BACKEND
from tests.examples import one_of
from tests.server import HttpError, Reply, ScriptedServer, ServerThread
from tests.terminal.pseudo import CommandTerminal
from tests.terminal.screen import BIN

Run = Callable[..., "subprocess.CompletedProcess[str]"]
SECRET = "tnt-7Qx9-stored-0452"
ROOT = Path(__file__).parents[2]
NO_KEYS = {"ANTHROPIC_API_KEY": "", "OPENAI_API_KEY": "", "GEMINI_API_KEY": ""}
NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring", **NO_KEYS}
PROVIDERS = ["anthropic", "openai", "openai-chat", "gemini"]


def with_keyring(file: Path) -> dict[str, str]:
    return {
        "PYTHON_KEYRING_BACKEND": BACKEND,
        "PYTHONPATH": str(ROOT),
        "KEYRING_FILE": str(file),
        **NO_KEYS,
    }


def stored(tmp_path: Path) -> dict[str, object]:
    file = tmp_path / "home" / "auth.json"
    return json.loads(file.read_text()) if file.exists() else {}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_key_is_checked_stored_privately_used_and_forgotten(run: Run, tmp_path: Path, provider: str):
    with ServerThread([Reply("Hello.")], api_key=SECRET) as server:
        done = run("login", provider, server=server, environ=NO_KEYRING, input=f"{SECRET}\n")
        assert (done.returncode, "accepts the key: 2 models" in done.stdout) == (0, True), done.stderr
        assert SECRET not in done.stdout + done.stderr
        assert stat.S_IMODE((tmp_path / "home" / "auth.json").stat().st_mode) == 0o600
        answered = run("-p", "hi", "-m", f"{provider}/test", server=server, environ=NO_KEYRING)
        assert (answered.returncode, answered.stdout.strip()) == (0, "Hello.")
        gone = run("logout", provider, server=server, environ=NO_KEYRING)
    assert gone.returncode == 0
    assert stored(tmp_path) == {}
    refused = run("-p", "hi", "-m", f"{provider}/test", environ=NO_KEYRING)
    assert refused.returncode != 0
    assert f"tenuto login {provider}" in refused.stderr


@pytest.mark.parametrize("provider", one_of(PROVIDERS, 0))
def test_a_refused_key_is_not_stored_and_takes_no_other_ones_place(run: Run, tmp_path: Path, provider: str):
    with ServerThread([], api_key=SECRET) as server:
        assert run("login", provider, server=server, environ=NO_KEYRING, input=SECRET).returncode == 0
        wrong = run("login", provider, server=server, environ=NO_KEYRING, input="tnt-wrong-key-0453\n")
    assert wrong.returncode == 1
    assert "nothing was stored" in wrong.stderr and "refuses the key" in wrong.stderr
    assert "tnt-wrong-key-0453" not in wrong.stdout + wrong.stderr
    assert stored(tmp_path) == {provider: SECRET}


def test_a_server_that_is_down_or_has_no_list_keeps_nobody_from_storing(run: Run, tmp_path: Path):
    dead = {**NO_KEYRING, "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    done = run("login", "openai", environ=dead, input=SECRET)
    assert (done.returncode, "was not checked" in done.stderr) == (0, True)
    assert stored(tmp_path) == {"openai": SECRET}


def test_offline_asks_no_server(run: Run, tmp_path: Path):
    with ServerThread([], api_key="another") as server:
        done = run("login", "openai", "--offline", server=server, environ=NO_KEYRING, input=SECRET)
        assert server.all_requests == []
    assert (done.returncode, stored(tmp_path)) == (0, {"openai": SECRET})


@pytest.mark.parametrize("typed", ["", "\n", "two words\n", '"quoted-key-1234"\n', "schlüssel-1234\n"])
def test_what_is_no_key_is_not_stored(run: Run, tmp_path: Path, typed: str):
    done = run("login", "openai", "--offline", environ=NO_KEYRING, input=typed)
    assert (done.returncode, stored(tmp_path)) == (2, {})
    assert "nothing was stored" in done.stderr


def test_an_unknown_provider_names_the_nearest(run: Run, tmp_path: Path):
    done = run("login", "antropic", environ=NO_KEYRING, input=SECRET)
    assert (done.returncode, "did you mean anthropic" in done.stderr) == (2, True)
    gone = run("logout", "openai", environ=NO_KEYRING)
    assert (gone.returncode, "no key of openai is stored" in gone.stderr) == (2, True)


def test_a_damaged_file_of_keys_is_not_overwritten(run: Run, tmp_path: Path):
    file = tmp_path / "home" / "auth.json"
    file.parent.mkdir()
    file.write_text('{"openai": "tnt-7Qx9', encoding="utf-8")
    done = run("login", "anthropic", "--offline", environ=NO_KEYRING, input=SECRET)
    assert (done.returncode, "cannot be read" in done.stderr) == (1, True)
    assert file.read_text() == '{"openai": "tnt-7Qx9'


@pytest.mark.parametrize("provider", one_of(PROVIDERS, 1))
def test_the_keyring_is_used_where_there_is_one(run: Run, tmp_path: Path, provider: str):
    environ = with_keyring(tmp_path / "ring.json")
    with ServerThread([Reply("From the ring.")], api_key=SECRET) as server:
        done = run("login", provider, server=server, environ=environ, input=SECRET)
        assert "Stored in the keyring" in done.stdout, done.stderr
        assert SECRET not in (tmp_path / "home" / "auth.json").read_text()
        answered = run("-p", "hi", "-m", f"{provider}/test", server=server, environ=environ)
        assert answered.stdout.strip() == "From the ring.", answered.stderr
        assert run("logout", server=server, environ=environ).returncode == 0
    assert json.loads((tmp_path / "ring.json").read_text()) == {}
    assert stored(tmp_path) == {}


def test_a_keyring_that_is_locked_or_gone_says_so(run: Run, tmp_path: Path):
    environ = with_keyring(tmp_path / "ring.json")
    with ServerThread([Reply("Hello.")], api_key=SECRET) as server:
        run("login", "openai", server=server, environ=environ, input=SECRET)
        locked = run(
            "-p", "hi", "-m", "openai/test", server=server, environ=environ | {"KEYRING_FILE": str(tmp_path / "locked")}
        )
        gone = run("-p", "hi", "-m", "openai/test", server=server, environ=NO_KEYRING)
        assert server.requests == []
    assert (locked.returncode, "the user said no" in locked.stderr) == (1, True)
    assert (gone.returncode, "there is none here" in gone.stderr) == (1, True)
    assert "tenuto login openai" in gone.stderr


def test_what_has_a_key_is_listed_without_it(run: Run, tmp_path: Path):
    run("login", "openai", "--offline", environ=NO_KEYRING, input=SECRET)
    variable = {**NO_KEYRING, "ANTHROPIC_API_KEY": "tnt-in-the-environment"}
    done = run("login", "--json", environ=variable)
    rows = {row["provider"]: row["key"] for row in json.loads(done.stdout)["providers"]}
    assert rows == rows | {"openai": "auth.json", "anthropic": "ANTHROPIC_API_KEY", "openai-chat": ""} | {
        "openai-chat": "no key"
    }
    assert SECRET not in done.stdout


@pytest.mark.terminal
def test_what_is_typed_is_not_shown_and_ctrl_c_gives_the_echo_back(tmp_path: Path):
    environ = {"HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", **NO_KEYRING}
    first = CommandTerminal(tmp_path, environ, [BIN / "tenuto", "login", "openai", "--offline"])
    try:
        first.wait_for("it is not shown")
        first.write(f"{SECRET}\r".encode())
        first.wait_for("Stored in")
        assert first.wait_end() == 0
        assert SECRET.encode() not in first.output
    finally:
        first.close()
    line = f"trap : INT; '{sys.executable}' -m tenuto login openai --offline; stty -a"
    second = CommandTerminal(tmp_path, environ, ["/bin/sh", "-c", line])
    try:
        second.wait_for("it is not shown")
        second.write(b"\x03")
        second.wait_for("nothing was stored")
        second.wait_for(" echo ")
    finally:
        second.close()
    assert stored(tmp_path) == {"openai": SECRET}


# --- a key from a page ---


def browser(tmp_path: Path, then: str = "") -> str:
    """A browser for `$BROWSER`: it opens a page, follows where it is sent, and does not wait for anybody."""
    file = tmp_path / "browser.py"
    file.write_text(
        "import sys, urllib.error, urllib.request\n"
        f"opened = sys.argv[1]; {then}\n"
        "page = urllib.request.urlopen(opened, timeout=20).read().decode()\n"
        f"open({str(tmp_path / 'page')!r}, 'w').write(page)\n"
    )
    return f"{sys.executable} {file} %s &"


def openrouter(server: ScriptedServer) -> dict[str, str]:
    return {"OPENROUTER_BASE_URL": server.openai_url, "OPENROUTER_API_KEY": ""}


def test_a_login_on_openrouters_page_stores_its_key(run: Run, tmp_path: Path):
    with ServerThread([Reply("Hello.")], api_key=SECRET) as server:
        environ = {**NO_KEYRING, **openrouter(server), "BROWSER": browser(tmp_path)}
        done = run("login", "openrouter", "--browser", server=server, environ=environ)
        assert done.returncode == 0, done.stderr
        assert server.openrouter.codes == {}
        assert SECRET not in done.stdout + done.stderr
        answered = run("-p", "hi", "-m", "openrouter/test", server=server, environ=environ)
    assert (answered.stdout.strip(), stored(tmp_path)) == ("Hello.", {"openrouter": SECRET}), answered.stderr
    assert "You can close this page" in (tmp_path / "page").read_text()


def test_a_request_that_is_not_the_pages_brings_no_code(run: Run, tmp_path: Path):
    """The page gives nothing back by which its answer is known, so another page of the browser could send a code."""
    then = (
        "from urllib.parse import parse_qs, urlsplit\n"
        "at = urlsplit(parse_qs(urlsplit(opened).query)['callback_url'][0])\n"
        "for path in ('/callback?code=bad', '/?code=bad', at.path + 'x?code=bad', at.path):\n"
        "    try: urllib.request.urlopen(f'http://{at.netloc}{path}', timeout=20); sys.exit(1)\n"
        "    except urllib.error.HTTPError as error: assert error.code == 404\n"
    )
    with ServerThread([], api_key=SECRET) as server:
        environ = {**NO_KEYRING, **openrouter(server), "BROWSER": browser(tmp_path, then)}
        done = run("login", "openrouter", "--browser", server=server, environ=environ)
        exchanges = [request for request in server.all_requests if request.path == "/auth/keys"]
    assert (done.returncode, len(exchanges), stored(tmp_path)) == (0, 1, {"openrouter": SECRET}), done.stderr


def test_a_code_of_another_machines_browser_is_typed_in(run: Run, tmp_path: Path):
    with ServerThread([], api_key=SECRET) as server:
        environ = {**NO_KEYRING, **openrouter(server)}
        wrong = run("login", "openrouter", "--code", server=server, environ=environ, input="auth_code_0009\n")
        server.openrouter.is_expired = True
        late = run("login", "openrouter", "--code", server=server, environ=environ, input="auth_code_0001\n")
    assert (wrong.returncode, late.returncode, stored(tmp_path)) == (1, 1, {})
    assert "gave no key: Invalid code or code_verifier" in wrong.stderr, wrong.stderr
    assert "Authorization code expired" in late.stderr
    (page,) = (word for word in wrong.stdout.split() if "/auth?" in word)
    assert "callback_url" not in page and "code_challenge_method=S256" in page


def test_who_documents_no_login_on_a_page_has_none(run: Run, tmp_path: Path):
    done = run("login", "anthropic", "--browser", environ=NO_KEYRING)
    assert (done.returncode, "documents no login on a page" in done.stderr) == (2, True)


@pytest.mark.terminal
def test_a_login_that_is_given_up_stores_nothing(tmp_path: Path):
    with ServerThread([], api_key=SECRET) as server:
        environ = {"HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home"), "PATH": "/usr/bin:/bin", **NO_KEYRING}
        environ |= {**openrouter(server), "BROWSER": "true %s"}
        terminal = CommandTerminal(tmp_path, environ, [BIN / "tenuto", "login", "openrouter", "--browser"])
        try:
            terminal.wait_for("Ctrl+C gives up")
            terminal.write(b"\x03")
            terminal.wait_for("nothing was stored")
            assert terminal.wait_end() == 130
        finally:
            terminal.close()


# --- keys by command ---


def settings_with(tmp_path: Path, command: str, **more: object) -> None:
    home = tmp_path / "home"
    home.mkdir(exist_ok=True)
    lines = [f"api_key_cmd = {json.dumps(command)}", *(f"{name} = {json.dumps(value)}" for name, value in more.items())]
    text = "\n".join(line for name in PROVIDERS for line in (f"[providers.{name}]", *lines))
    (home / "settings.toml").write_text(text.replace("[providers.openai]", '[providers.openai]\nkind = "openai"'))


@pytest.mark.parametrize("provider", one_of(PROVIDERS, 2))
def test_a_command_is_run_once_for_many_requests(run: Run, tmp_path: Path, provider: str):
    settings_with(tmp_path, f"echo ran >> '{tmp_path}/runs'; echo {SECRET}")
    from tests.server import Call

    script = [Reply("", tool_calls=[Call("bash", {"command": "ls"})]), Reply("Done.")]
    with ServerThread(script, api_key=SECRET) as server:
        done = run("-p", "hi", "-m", f"{provider}/test", "--mode", "auto", server=server, environ=NO_KEYRING)
        assert len(server.requests) == 2
    assert (done.returncode, done.stdout.strip()) == (0, "Done."), done.stderr
    assert (tmp_path / "runs").read_text() == "ran\n"
    everything = "".join(file.read_text(errors="replace") for file in (tmp_path / "home").rglob("*.jsonl"))
    assert SECRET not in everything + done.stdout + done.stderr


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_401_runs_the_command_again_once(run: Run, tmp_path: Path, provider: str):
    """The first key has expired; whoever prints ever new ones that are all refused is not asked without an end."""
    count = f"echo x >> '{tmp_path}/runs'; "
    settings_with(tmp_path, f"{count}test $(wc -l < '{tmp_path}/runs') -gt 1 && echo {SECRET} || echo tnt-expired-77")
    with ServerThread([Reply("Hello.")] * 4, api_key=SECRET) as server:
        done = run("-p", "hi", "-m", f"{provider}/test", server=server, environ=NO_KEYRING)
    assert (done.returncode, done.stdout.strip()) == (0, "Hello."), done.stderr
    settings_with(tmp_path, f"{count}echo tnt-other-$(wc -l < '{tmp_path}/runs')-xyz")
    (tmp_path / "runs").unlink()
    with ServerThread([HttpError(401, "no")] * 9) as server:
        refused = run("-p", "hi", "-m", f"{provider}/test", server=server, environ=NO_KEYRING)
        assert len(server.requests) == 2
    assert refused.returncode == 1
    assert "api_key_cmd" in refused.stderr


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_command_that_prints_the_same_key_again_is_believed(run: Run, tmp_path: Path, provider: str):
    """The key is known by then, and known secrets are masked in what commands of the model print."""
    from tests.server import Call

    settings_with(tmp_path, f"echo ran >> '{tmp_path}/runs'; echo {SECRET}", api_key_seconds=0.01)
    script = [Reply("", tool_calls=[Call("bash", {"command": "ls"})]), Reply("Done.")]
    with ServerThread(script, api_key=SECRET) as server:
        done = run("-p", "hi", "-m", f"{provider}/test", "--mode", "auto", server=server, environ=NO_KEYRING)
    assert (done.returncode, done.stdout.strip()) == (0, "Done."), done.stderr
    assert len((tmp_path / "runs").read_text().splitlines()) > 1
    assert SECRET not in "".join(file.read_text(errors="replace") for file in (tmp_path / "home").rglob("*.jsonl"))


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("exit 3", "exit code 3"),
        ("echo 'the vault is sealed' >&2; exit 1", "the vault is sealed"),
        ("true", "printed nothing"),
        ("echo one; echo two", "line break"),
        ("no-such-program-at-all", "not found"),
    ],
)
def test_a_command_that_gives_no_key_is_named_and_nothing_is_sent(run: Run, tmp_path: Path, command: str, said: str):
    settings_with(tmp_path, command)
    with ServerThread([Reply("Hello.")]) as server:
        done = run("-p", "hi", "-m", "openai/test", server=server, environ=NO_KEYRING)
        assert server.requests == []
    assert done.returncode == 1
    assert "api_key_cmd of openai" in done.stderr and said in done.stderr


def test_the_variable_comes_before_the_command(run: Run, tmp_path: Path):
    settings_with(tmp_path, f"touch '{tmp_path}/ran'; echo other-key-1234")
    with ServerThread([Reply("Hello.")], api_key=SECRET) as server:
        done = run("-p", "hi", "-m", "openai/test", server=server, environ=NO_KEYRING | {"OPENAI_API_KEY": SECRET})
    assert done.returncode == 0
    assert not (tmp_path / "ran").exists()


def test_s7_a_projects_command_never_runs(run: Run, tmp_path: Path):
    (run.work / ".tenuto").mkdir()  # pyright: ignore
    (run.work / ".tenuto" / "settings.toml").write_text(  # pyright: ignore
        f"[providers.openai]\napi_key_cmd = \"touch '{tmp_path}/ran'; echo {SECRET}\"\n"
    )
    with ServerThread([Reply("Hello.")]) as server:
        done = run("-p", "hi", "-m", "openai/test", server=server, environ=NO_KEYRING)
    assert "no project may set that" in done.stderr
    assert not (tmp_path / "ran").exists()
