"""Bedrock, Vertex and Azure (K 3): signatures, tokens, addresses, frames, before a server as strict as the clouds."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tenuto.config.settings import Settings
from tenuto.model.access import cloud
from tenuto.model.registry import ModelRegistry
from tenuto.protocol.model import ModelError
from tenuto.protocol.part import text_of
from tests.model.clouds import CLOUDS, NAMES, Talk
from tests.program import TENUTO
from tests.server import Call, Cut, HttpError, Reply, ScriptedServer, ServerThread, StreamError
from tests.server.cloud_keys import AZURE_KEY, PROJECT, SECRET_KEY, TOKEN
from tests.server.clouds import cloud_environ, frame_of


@pytest.mark.parametrize("provider", CLOUDS)
async def test_a_conversation_that_the_cloud_takes(tmp_path: Path, environ, provider: str):
    steps = [
        Reply("Look.", thinking="hm", tool_calls=[Call("read", {"path": "a"})]),
        Reply("Done — ✓.", thinking="so"),
        Reply("Again."),
    ]
    async with ScriptedServer(steps, check_thinking=True) as server:
        talk = Talk(environ(server, tmp_path), tmp_path, provider)
        answers = [await talk.ask() for _ in steps]
        await talk.models.close()
        assert server.refusals == []
        assert [text_of(answer.parts) for answer in answers] == [step.text for step in steps]
        assert [request.cloud for request in server.requests] == [provider] * 3
        assert server.prefix_breaks() == []
        asked = {request.target for request in server.requests}
        wanted = {
            "bedrock": "/model/eu.anthropic.claude-opus-5-5-v1:0/invoke-with-response-stream",
            "vertex": f"/projects/{PROJECT}/locations/europe-west1/publishers/anthropic/models/"
            "claude-opus-5-5@20261012:streamRawPredict",
            "azure": "/openai/deployments/my-deployment/chat/completions?api-version=2025-04-01-preview",
        }
        assert {target.replace("%3A", ":").replace("%40", "@") for target in asked} == {wanted[provider]}


@pytest.mark.parametrize("provider", CLOUDS)
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (HttpError(429, "Too many requests, please wait before trying again."), "rate_limit"),
        (HttpError(503, "The service is overloaded"), "overloaded"),
        (HttpError(404, "there is no such model"), "not_found"),
        (Cut(Reply("A long text that is never finished.", chunk_size=4), after_events=4), "broken_stream"),
        (Cut(Reply("A long text.", chunk_size=4), after_events=4, how="clean"), "broken_stream"),
        (StreamError(), "overloaded"),
    ],
)
async def test_failures_are_what_they_are_elsewhere(tmp_path: Path, environ, provider: str, reply: object, kind: str):
    async with ScriptedServer([reply] * 3) as server:  # pyright: ignore
        talk = Talk(environ(server, tmp_path), tmp_path, provider)
        with pytest.raises(ModelError) as caught:
            await talk.parts()
        await talk.models.close()
        assert caught.value.kind == kind
        assert len(server.requests) == 1, "the SDK repeats nothing"


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("bedrock", "AWS_SECRET_ACCESS_KEY"),
        ("azure", "AZURE_OPENAI_API_KEY"),
        ("vertex", "GOOGLE_APPLICATION_CREDENTIALS"),
    ],
)
def test_wrong_credentials_are_an_error_of_the_key_and_right_ones_are_not_shown(
    tmp_path: Path, provider: str, variable: str
):
    with ServerThread([Reply("Hello.")]) as server:
        values = cloud_environ(server.base_url, tmp_path)
        base = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}

        def run(**more: str) -> subprocess.CompletedProcess[str]:
            command = [*TENUTO, "-p", "hi", "-m", f"{provider}/{NAMES[provider]}"]
            return subprocess.run(
                command,
                env={**base, **values, **more},
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=120,
            )

        wrong = run(**{variable: "/nowhere/wrong-wrong"})
        right = run()
    assert (wrong.returncode, len(wrong.stderr.splitlines())) == (1, 1), wrong.stderr
    assert (right.returncode, right.stdout) == (0, "Hello.\n"), right.stderr
    everything = "".join(file.read_text(errors="replace") for file in (tmp_path / "home").rglob("*.jsonl"))
    for secret in (SECRET_KEY, AZURE_KEY, TOKEN):
        assert secret not in everything + wrong.stderr + right.stderr


@pytest.mark.parametrize("provider", CLOUDS)
async def test_a_dead_server_is_unreachable(tmp_path: Path, environ, monkeypatch, provider: str):
    async with ScriptedServer([]) as server:
        values = {
            name: value.replace(server.base_url, "http://127.0.0.1:9")
            for name, value in environ(server, tmp_path).items()
        }
        values["GOOGLE_APPLICATION_CREDENTIALS"] = os.environ["GOOGLE_APPLICATION_CREDENTIALS"]
        talk = Talk(values, tmp_path, provider)
        with pytest.raises(ModelError) as caught:
            await talk.parts()
        await talk.models.close()
    assert (caught.value.kind, "127.0.0.1:9" in str(caught.value)) == ("unreachable", True)


@pytest.mark.parametrize(
    ("provider", "said"),
    [("bedrock", "AWS_REGION"), ("vertex", "CLOUD_ML_REGION"), ("azure", "AZURE_OPENAI_ENDPOINT")],
)
def test_what_is_not_set_is_named(tmp_path: Path, provider: str, said: str):
    models = ModelRegistry(Settings(), tmp_path, {})
    with pytest.raises(ModelError, match=said):
        models.require(f"{provider}/x")


@pytest.mark.parametrize(("provider", "module"), [("bedrock", "boto3"), ("vertex", "google.auth")])
async def test_a_missing_extra_is_one_line_with_the_command(tmp_path, environ, monkeypatch, provider: str, module: str):
    monkeypatch.setitem(sys.modules, module, None)
    async with ScriptedServer([]) as server:
        talk = Talk(environ(server, tmp_path), tmp_path, provider)
        with pytest.raises(ModelError) as caught:
            await talk.parts()
    assert "pip install 'tenuto[cloud]'" in str(caught.value)
    assert "\n" not in str(caught.value)


async def test_a_damaged_frame_breaks_the_stream():
    good = frame_of({":message-type": "event"}, b'{"bytes": "e30="}')

    async def chunks(data: bytes):
        yield data

    assert [event async for event in cloud._unframed(chunks(good))] == [b"event: \ndata: {}\n\n"]
    bad = good[:-1] + bytes([good[-1] ^ 1])
    with pytest.raises(ModelError) as caught:
        assert [event async for event in cloud._unframed(chunks(bad))]
    assert caught.value.kind == "broken_stream"


async def test_the_sdk_over_its_own_mock_transport_asks_for_the_same():
    """The oracle: what the SDK sends for the same body when it encodes it itself."""
    import anthropic

    seen: list[httpx2.Request] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(404, json={"message": "no"})

    client = anthropic.AsyncAnthropicBedrock(
        aws_region="eu-west-3",
        aws_access_key="AKIATESTTESTTEST0001",
        aws_secret_key=SECRET_KEY,
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=httpx2.MockTransport(handle)),
    )
    with pytest.raises(anthropic.NotFoundError):
        await client.messages.create(
            model=NAMES["bedrock"], max_tokens=9, messages=[{"role": "user", "content": "hi"}], stream=True
        )
    body = {"model": NAMES["bedrock"], "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    with pytest.raises(anthropic.NotFoundError):
        await client.post(
            "/v1/messages", body=body, cast_to=object, stream=True, stream_cls=anthropic.AsyncStream[object]
        )
    first, second = seen
    assert (first.method, first.url, first.content) == (second.method, second.url, second.content)


def test_no_sdk_is_imported_before_the_first_request(tmp_path: Path):
    code = (
        "import sys; from pathlib import Path; from tenuto.model.registry import ModelRegistry; "
        "from tenuto.config.settings import Settings; "
        "models = ModelRegistry(Settings(), Path(sys.argv[1]), {'AWS_REGION': 'x'}); models.client('bedrock'); "
        "print([name for name in ('anthropic', 'openai', 'boto3', 'google', 'httpx2') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
