"""Secrets: what is known is masked wherever it stands, what looks like one where it is shown."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.guard.secrets import KNOWN, Secrets, command_environment, mask_likely, masked_copy, new_masks
from tenuto.protocol.event import NoticeEvent

VALUE = "tk-4f9A_7c1/é\"q'Z"
letters = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30)


def knowing(**values: str) -> Secrets:
    secrets = Secrets()
    for name, value in values.items():
        secrets.learn(name, value)
    return secrets


@given(before=letters, after=letters)
def test_a_known_value_stands_nowhere_in_a_masked_text(before: str, after: str):
    masked = knowing(MY_TOKEN=VALUE).mask(before + VALUE + after)
    assert VALUE not in masked
    assert masked == f"{before}[masked: MY_TOKEN]{after}"


@given(before=letters, after=letters)
def test_a_line_of_json_stays_one_and_holds_the_mask(before: str, after: str):
    line = json.dumps({"text": before + VALUE + after}, ensure_ascii=False).encode()
    masked = json.loads(knowing(MY_TOKEN=VALUE).mask_bytes(line))
    assert masked == {"text": f"{before}[masked: MY_TOKEN]{after}"}


@given(text=letters)
def test_a_text_without_a_secret_is_the_same_object(text: str):
    assert knowing(MY_TOKEN=VALUE).mask(text) is text
    event = NoticeEvent(session_id="s", text=text)
    assert masked_copy(event, knowing(MY_TOKEN=VALUE).mask) is event


def test_a_secret_in_a_url_is_found_in_its_quoted_form():
    assert "[masked: K]" in knowing(K="ab/cd+12345678").mask("https://x/?key=ab%2Fcd%2B12345678&y=1")


def test_the_longer_of_two_secrets_is_masked_whole():
    assert knowing(A="secret-1234", B="secret-1234-and-more").mask("secret-1234-and-more") == "[masked: B]"


@given(cut=st.lists(st.integers(0, 60), max_size=6), before=letters, after=letters)
def test_what_is_held_back_lets_no_piece_of_a_secret_through(cut: list[int], before: str, after: str):
    secrets = knowing(T="s3cr3t-Value-42")
    whole = f"{before}s3cr3t-Value-42{after}".encode()
    edges = [0, *sorted(min(place, len(whole)) for place in cut), len(whole)]
    out = held = b""
    for start, end in itertools.pairwise(edges):
        data = secrets.mask_bytes(held + whole[start:end])
        ready = len(data) - secrets.held_back(data)
        out, held = out + data[:ready], data[ready:]
    assert (out + held).decode() == f"{before}[masked: T]{after}"


@pytest.mark.parametrize("value", ["", "x", "test", "lm-studio", "no-key-required", "/home/me/.ssh/id", "4096", "  "])
def test_what_is_no_secret_is_not_masked(value: str):
    assert not knowing(SOME_KEY=value)


def test_names_and_values_of_the_environment_are_learned():
    secrets = Secrets()
    secrets.learn_environment(
        {
            "NPM_TOKEN": "npmtok-12345",
            "DB_PASSWORD": "pa55-w0rd-1",
            "HOME": "/home/me-12345",
            "HTTPS_PROXY": "http://me:pr0xy-pass@proxy:3128",
            "TOKENIZERS_PARALLELISM": "false",
        }
    )
    text = "npmtok-12345 pa55-w0rd-1 /home/me-12345 http://me:pr0xy-pass@proxy:3128 false"
    assert secrets.mask(text) == (
        "[masked: NPM_TOKEN] [masked: DB_PASSWORD] /home/me-12345 "
        "http://me:[masked: password in HTTPS_PROXY]@proxy:3128 false"
    )


def test_s7_commands_get_no_secret_variable_but_those_that_are_passed():
    environ = {"PATH": "/bin", "AWS_SECRET_ACCESS_KEY": "a", "gh_token": "b", "MY_CREDENTIALS": "c", "PASSWD": "d"}
    assert command_environment(environ) == {"PATH": "/bin"}
    assert command_environment(environ, ("gh_token",)) == {"PATH": "/bin", "gh_token": "b"}


def test_s7_a_providers_key_is_kept_back_whatever_its_variable_is_called():
    KNOWN.learn("MY_MODEL", "opaque-value-77")
    assert "MY_MODEL" not in command_environment({"MY_MODEL": "opaque-value-77", "A": "b"})


PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"
LIKELY = {
    "sk-ant-api03-abcdefghij0123456789": "an Anthropic key",
    "sk-proj-abcdefghij0123456789": "an API key",
    "AKIAIOSFODNN7EXAMPLE": "an AWS key",
    "ghp_" + "a1" * 18: "a GitHub token",
    "github_pat_" + "a1" * 12: "a GitHub token",
    "glpat-abcdefghij0123456789": "a GitLab token",
    "xoxb-1234567890-abc": "a Slack token",
    "AIza" + "b2" * 17 + "c": "a Google key",
    PEM: "a private key",
}


@pytest.mark.parametrize(("secret", "what"), LIKELY.items())
def test_what_looks_like_a_secret_is_masked_by_what_it_looks_like(secret: str, what: str):
    assert mask_likely(f"a = '{secret}'; b") == f"a = '[masked: looks like {what}]'; b"
    for before in (" ", "\n", "\t", '"', "\\"):
        inside = json.dumps({"text": f"x{before}{secret} y"})
        assert json.loads(mask_likely(inside)) == {"text": f"x{before}[masked: looks like {what}] y"}


def test_a_private_key_without_an_end_is_masked_to_the_end_of_its_text():
    assert json.loads(mask_likely(json.dumps(["-----BEGIN PRIVATE KEY-----\nMII", "next"]))) == [
        "[masked: looks like a private key]",
        "next",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "the task-oriented disk-management-and-recovery-tools",
        "sk-this-is-only-a-long-name-of-something",
        "git ghost npm_config_registry",
        "-----BEGIN CERTIFICATE-----\nMIID\n-----END CERTIFICATE-----",
        "AKIA is how they begin",
    ],
)
def test_ordinary_words_are_not_masked(text: str):
    assert mask_likely(text) == text


def test_a_mask_is_told_from_what_was_there_before():
    assert new_masks("a", "key = [masked: OPENAI_API_KEY]") == ["[masked: OPENAI_API_KEY]"]
    assert new_masks("doc: [masked: X]", "doc: [masked: X]!") == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has this")
def test_s22_the_memory_of_the_program_is_hidden_from_others_of_its_user():
    code = "import ctypes, tenuto.guard.secrets as s; s.hide_memory(); print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, check=True)
    assert done.stdout == "0\n"
