"""Whom the clouds know: keys, tokens, and what they give out."""

from __future__ import annotations

from dataclasses import dataclass, field

ACCESS_KEY, SECRET_KEY, REGION = "AKIATESTTESTTEST0001", "c2VjcmV0LXNlY3JldC1zZWNyZXQ", "eu-west-3"
PROJECT, TOKEN, AZURE_KEY, AZURE_VERSION = (
    "my-project",
    "ya29.test-token-0001",
    "azure-key-000001",
    "2025-04-01-preview",
)
REFRESH_TOKEN = "1//refresh-token-0001"


@dataclass(slots=True)
class CloudKeys:
    """What the clouds take and give just now. A test changes it: keys run out, and others take their places."""

    token: str = TOKEN
    """Google's, as `/token` gives it out for `token_seconds`."""
    token_seconds: int = 3599
    access_key: str = ACCESS_KEY
    secret_key: str = SECRET_KEY
    session_token: str = ""
    expiration: str = "2099-01-01T00:00:00Z"
    """Of Amazon's keys, as `/aws-keys` gives them out: the endpoint of a container."""
    azure_key: str = AZURE_KEY
    azure_token: str = ""
    """Microsoft Entra's; with one no key is taken."""
    given: list[str] = field(default_factory=list)
    """Every token and access key that was given out."""
