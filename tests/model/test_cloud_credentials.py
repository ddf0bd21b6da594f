"""Credentials of the clouds that run out while Tenuto runs (K 3): over loopback, with the libraries that have them."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tenuto.config.settings import ProviderSettings
from tenuto.core.models import open_models
from tenuto.protocol.model import Finished, ModelError
from tenuto.protocol.part import text_of
from tests.model.clouds import Talk, settings_of
from tests.server import HttpError, Reply, ScriptedServer
from tests.server.cloud_keys import PROJECT, REFRESH_TOKEN

ANSWERS = [Reply(f"Answer {number}.") for number in range(4)]


@pytest.fixture(autouse=True)
def forget_sessions():
    """The SDK keeps a session for each region and profile as long as the process lives: a test is a new process."""
    from anthropic.lib.aws import _auth

    _auth._get_session.cache_clear()
    yield
    _auth._get_session.cache_clear()


def in_minutes(minutes: float) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


async def test_keys_of_a_container_are_renewed_before_they_expire(tmp_path: Path, environ, monkeypatch):
    async with ScriptedServer(ANSWERS) as server:
        values = environ(server, tmp_path)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{server.base_url}/aws-keys")
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        keys = server.options.clouds
        keys.session_token, keys.expiration = "token-1", in_minutes(1)
        talk = Talk(values, tmp_path, "bedrock")
        assert text_of((await talk.ask()).parts) == "Answer 0."
        keys.access_key, keys.session_token, keys.expiration = "AKIATESTTESTTEST0002", "token-2", in_minutes(60)
        assert text_of((await talk.ask()).parts) == "Answer 1."
        await talk.models.close()
        assert server.refusals == []
        assert keys.given[-1] == "AKIATESTTESTTEST0002"


async def test_keys_in_a_file_that_another_program_renews_are_read_again_once_they_are_refused(
    tmp_path: Path, environ, monkeypatch
):
    """What `aws sso` helpers write has no date that Amazon's library would look at."""
    file = tmp_path / "credentials"

    def write(key: str, token: str) -> None:
        secret = server.options.clouds.secret_key
        file.write_text(f"[work]\naws_access_key_id={key}\naws_secret_access_key={secret}\naws_session_token={token}\n")

    async with ScriptedServer(ANSWERS) as server:
        values = environ(server, tmp_path)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(file))
        monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
        keys = server.options.clouds
        keys.session_token = "token-1"
        write(keys.access_key, "token-1")
        own = ProviderSettings(base_url=server.base_url, aws_profile="work", region="eu-west-3")
        talk = Talk(values, tmp_path, "bedrock", bedrock=own)
        assert text_of((await talk.ask()).parts) == "Answer 0."
        for number in (2, 3):
            keys.given.append(keys.access_key)
            keys.access_key, keys.session_token = f"AKIATESTTESTTEST000{number}", f"token-{number}"
            with pytest.raises(ModelError, match="expired") as caught:
                await talk.ask()
            assert (caught.value.kind, "aws sts get-caller-identity" in caught.value.hint) == ("auth", True)
            write(keys.access_key, keys.session_token)
            assert text_of((await talk.ask()).parts) == f"Answer {number - 1}."
        await talk.models.close()


async def test_a_model_that_the_account_may_not_use_is_asked_once(tmp_path: Path, environ):
    async with ScriptedServer([HttpError(403, "You don't have access to the model with the specified model ID.")]) as s:
        talk = Talk(environ(s, tmp_path), tmp_path, "bedrock")
        with pytest.raises(ModelError, match="access to the model"):
            await talk.ask()
        await talk.models.close()
        assert len(s.requests) == 1


async def test_a_token_of_google_s_that_expires_is_renewed(tmp_path: Path, environ):
    async with ScriptedServer(ANSWERS) as server:
        keys = server.options.clouds
        keys.token_seconds = 1  # within the minutes that Google's library leaves before the end
        talk = Talk(environ(server, tmp_path), tmp_path, "vertex")
        await talk.ask()
        keys.token, keys.token_seconds = "ya29.second", 3599
        assert text_of((await talk.ask()).parts) == "Answer 1."
        keys.token = "ya29.third"  # taken back before its time
        assert text_of((await talk.ask()).parts) == "Answer 2."
        await talk.models.close()
        assert keys.given[-1] == "ya29.third"
        assert [bool(request.refused) for request in server.requests] == [False, False, True, False]


async def test_an_answer_that_is_coming_is_not_cut_by_another_request_s_refusal(tmp_path: Path, environ):
    """Sub-agents use the same client as the agent that they work for."""
    slow = Reply("A long answer. " * 20, delay_per_event=0.05, chunk_size=10)
    async with ScriptedServer([slow, Reply("Meanwhile.")]) as server:
        talk = Talk(environ(server, tmp_path), tmp_path, "vertex")
        coming = asyncio.create_task(talk.parts())
        await server.wait_for_requests(1)
        while not server.requests[0].started:
            await asyncio.sleep(0.01)
        server.options.clouds.token = "ya29.second"
        assert text_of((await talk.ask()).parts) == "Meanwhile."
        assert not coming.done()
        end = (await coming)[-1]
        assert isinstance(end, Finished) and text_of(end.message.parts) == slow.text
        await talk.models.close()


async def test_the_login_of_gcloud_is_read_again_where_it_ran_out_and_names_the_project(
    tmp_path: Path, environ, monkeypatch
):
    file = tmp_path / "application_default_credentials.json"

    def write(token: str) -> None:
        login = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": token}
        login |= {"quota_project_id": PROJECT, "token_uri": f"{server.base_url}/token"}
        file.write_text(json.dumps(login))

    async with ScriptedServer(ANSWERS) as server:
        values = environ(server, tmp_path)
        write("1//old")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        talk = Talk(values, tmp_path, "vertex")
        monkeypatch.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{server.base_url}/token")
        with pytest.raises(ModelError) as caught:
            await talk.ask()
        assert (caught.value.kind, "gcloud auth application-default login" in str(caught.value)) == ("auth", True)
        write(REFRESH_TOKEN)
        assert text_of((await talk.ask()).parts) == "Answer 0."
        await talk.models.close()


async def test_the_project_is_that_of_the_credentials_where_nobody_names_one(tmp_path: Path, environ, monkeypatch):
    async with ScriptedServer(ANSWERS) as server:
        values = environ(server, tmp_path)
        monkeypatch.delenv("ANTHROPIC_VERTEX_PROJECT_ID")
        del values["ANTHROPIC_VERTEX_PROJECT_ID"]
        talk = Talk(values, tmp_path, "vertex")
        assert text_of((await talk.ask()).parts) == "Answer 0."
        await talk.models.close()
        assert f"/projects/{PROJECT}/" in server.requests[0].target
        account = tmp_path / "service-account.json"
        account.write_text(account.read_text().replace(f'"project_id": "{PROJECT}", ', ""))
        for name in ("GOOGLE_CLOUD_PROJECT", "GCLOUD_PROJECT", "CLOUDSDK_CORE_PROJECT"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("NO_GCE_CHECK", "true")
        monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
        talk = Talk(values, tmp_path, "vertex")
        with pytest.raises(ModelError, match="say the project of vertex"):
            await talk.ask()
        await talk.models.close()


JWT = "eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0.c2ln"


@pytest.mark.parametrize("kind", ["openai-chat", "openai"])
async def test_a_command_prints_azure_s_token_or_key_and_is_asked_again_once_it_is_refused(
    tmp_path: Path, environ, monkeypatch, kind: str
):
    file = tmp_path / "token"
    command = f'{shlex.quote(sys.executable)} -c "print(open({str(file)!r}).read())"'
    async with ScriptedServer(ANSWERS) as server:
        values = environ(server, tmp_path)
        monkeypatch.delenv("AZURE_OPENAI_API_KEY")
        del values["AZURE_OPENAI_API_KEY"]
        keys = server.options.clouds
        own = ProviderSettings(kind=kind, base_url=server.base_url, api_key_cmd=command)  # pyright: ignore
        talk = Talk(values, tmp_path, "azure", azure=own)
        talk.models = open_models(settings_of(values, azure=own), tmp_path, {**values, "PATH": os.environ["PATH"]})
        for number, token in enumerate((f"{JWT}1", f"{JWT}2", "")):
            keys.azure_token = token
            file.write_text(token or keys.azure_key)
            assert text_of((await talk.ask()).parts) == f"Answer {number}."
        file.write_text("wrong-wrong")
        keys.azure_key = "other-key-000002"
        with pytest.raises(ModelError, match="does api_key_cmd under") as caught:
            await talk.ask()
        assert caught.value.kind == "auth"
        await talk.models.close()


async def test_azure_s_token_of_the_environment_goes_into_its_header(tmp_path: Path, environ, monkeypatch):
    async with ScriptedServer(ANSWERS) as server:
        values = environ(server, tmp_path)
        monkeypatch.delenv("AZURE_OPENAI_API_KEY")
        monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "opaque-token-1")
        del values["AZURE_OPENAI_API_KEY"]
        server.options.clouds.azure_token = values["AZURE_OPENAI_AD_TOKEN"] = "opaque-token-1"
        talk = Talk(values, tmp_path, "azure")
        assert text_of((await talk.ask()).parts) == "Answer 0."
        server.options.clouds.azure_token = "another"
        with pytest.raises(ModelError, match="is AZURE_OPENAI_AD_TOKEN right"):
            await talk.ask()
        await talk.models.close()
