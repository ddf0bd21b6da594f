"""What the tests of models share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server import ScriptedServer
from tests.server.clouds import cloud_environ


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch):
    """Credentials for the clouds of a scripted server, in the process's own environment: the SDKs read it."""

    def use(server: ScriptedServer, folder: Path) -> dict[str, str]:
        values = cloud_environ(server.base_url, folder)
        for name, value in values.items():
            monkeypatch.setenv(name, value)
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AZURE_OPENAI_AD_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        return values

    return use
