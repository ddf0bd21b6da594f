"""The line on a newer version: once a day, beside an interactive start, and never elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenuto.core import runtime as runtime_module
from tenuto.core.runtime import Runtime
from tenuto.core.updates import is_due, is_newer, upgrade_command
from tenuto.protocol.event import NoticeEvent
from tests.core.harness import make_start
from tests.model.test_catalogue_refresh import ok
from tests.model.tiny_server import TinyServer, always


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime_module, "UPDATE_DELAY", 0.0)


async def notices(tmp_path: Path, url: str, **changes) -> list[str]:
    environ = {"TENUTO_UPDATE__URL": url, "TENUTO_CATALOGUE__REFRESH": "false", **changes.pop("environ", {})}
    runtime = Runtime(make_start(tmp_path, environ, model="offline/tenuto", **changes))
    said: list[str] = []
    runtime.subscribe(lambda event: said.append(event.text) if isinstance(event, NoticeEvent) else None)
    await runtime.open()
    if runtime._updating is not None:
        await runtime._updating
    await runtime.close()
    return [text for text in said if "is there" in text]


def index(version: str) -> bytes:
    return json.dumps({"info": {"version": version}}).encode()


async def test_a_newer_version_is_told_once_a_day_and_nothing_is_sent_but_the_question(tmp_path: Path):
    async with TinyServer(always(ok(index("999.2.0")))) as server:
        (notice,) = await notices(tmp_path, server.base_url)
        assert notice.startswith("Tenuto 999.2.0 is there: ")
        assert await notices(tmp_path, server.base_url) == []
        assert len(server.requests) == 1
        line, body = server.requests[0][:2] if isinstance(server.requests[0], tuple) else (server.requests[0], b"")
        assert str(line).startswith("GET ")
        assert not body


@pytest.mark.parametrize(
    "body", [b"", b"no json", b"[]", index(""), index("0.0.1"), index("999.0.0rc1"), index("x\x1b[31m")]
)
async def test_what_is_no_newer_version_is_no_news(tmp_path: Path, body: bytes):
    async with TinyServer(always(ok(body))) as server:
        assert await notices(tmp_path, server.base_url) == []


@pytest.mark.parametrize(
    "changes",
    [{"interactive": False}, {"environ": {"TENUTO_UPDATE__CHECK": "false"}}, {"environ": {"CI": "true"}}],
)
async def test_no_run_without_a_user_and_no_switched_off_one_asks(tmp_path: Path, changes: dict):
    async with TinyServer(always(ok(index("999.2.0")))) as server:
        assert await notices(tmp_path, server.base_url, **changes) == []
        assert not server.requests


async def test_nobody_there_is_no_news(tmp_path: Path):
    assert await notices(tmp_path, "http://127.0.0.1:9/x") == []


def test_versions_are_compared_by_their_numbers():
    assert is_newer("0.10.0", "0.9.9")
    assert is_newer("1.0", "1.0.0.dev3") is False
    assert not is_newer("0.9", "0.10")
    assert not is_newer("1.0.0", "1.0")


def test_a_clock_that_went_back_asks_again(tmp_path: Path):
    (tmp_path / "told").mkdir()
    (tmp_path / "told" / "update").write_text("5000000.0")
    assert is_due(tmp_path, {}, 1_000_000.0)
    assert not is_due(tmp_path, {}, 5_000_001.0)


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/u/.local/share/uv/tools/tenuto", "uv tool upgrade tenuto"),
        ("/home/u/.local/pipx/venvs/tenuto", "pipx upgrade tenuto"),
        ("/opt/homebrew/Cellar/tenuto/0.1.0/libexec", "brew upgrade tenuto"),
        ("/home/u/my venv", "'/home/u/my venv/bin/python' -m pip install --upgrade tenuto"),
    ],
)
def test_k4_the_notice_names_what_upgrades_this_installation(tmp_path, prefix, command):
    package = tmp_path / "site-packages" / "tenuto"
    assert upgrade_command(Path(prefix), package) == command


def test_k4_a_checkout_is_brought_up_to_date_by_git(tmp_path):
    (tmp_path / "pyproject.toml").touch()
    assert upgrade_command(Path("/venv"), tmp_path / "src" / "tenuto") == f"git -C {tmp_path} pull"
