"""`docs/python.md`: its code runs as it is printed, and every option, method, attribute and name is there."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tenuto
from tests.server import Call, Reply, ServerThread

PAGE = (Path(__file__).parents[2] / "docs" / "python.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs(tmp_path, example):
    (tmp_path / "project").mkdir()

    def script(request):
        own = [name for name in ("price", "look") if name in request.tool_names]
        if own and not request.turn:
            return Reply(tool_calls=[Call(own[0], {"item": "tea", "count": 2} if own == ["price"] else {})])
        return Reply(f"It is {request.items[-1].text}." if own else "Forty-two.")

    with ServerThread(script) as server:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **server.environ()}
        code = example.replace("anthropic/claude-sonnet-5-5", "openai-chat/test")
        environ["TENUTO_MODEL"] = "openai-chat/test"
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environ,
            cwd=tmp_path,
            timeout=60,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert re.search(r"Forty-two|It is 7\.0\.|It is nothing here\.", done.stdout)


def test_every_public_name_is_on_the_page_and_has_a_docstring():
    named = set(re.findall(r"`(\w+)[`(.]", PAGE)) | set(re.findall(r"\b(?:agent|tenuto|answer)\.(\w+)", PAGE))
    options = set(list(inspect.signature(tenuto.Agent).parameters)[1:])
    methods = {name for name in dir(tenuto.Agent) if not name.startswith("_")} - {"runtime"}
    attributes = set(tenuto.Answer.__struct_fields__) | {"raise_for_outcome"}
    words = {*options, *methods, *attributes, *tenuto.Allow.__struct_fields__, *tenuto.Deny.__struct_fields__}
    elsewhere = {"convert_to_llm", "serialize_conversation", "__version__"}
    listed = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", PAGE)))) | named
    assert words | (set(tenuto.__all__) - elsewhere) <= listed
    for kind in (tenuto.Agent, tenuto.SyncAgent, tenuto.Answer, tenuto.Allow, tenuto.Deny):
        assert inspect.getdoc(kind)
        for name in dir(kind):
            if not name.startswith("_") and name not in {
                *attributes,
                *tenuto.Allow.__struct_fields__,
                *tenuto.Deny.__struct_fields__,
            }:
                assert inspect.getdoc(getattr(kind, name)), f"{kind.__name__}.{name}"


def test_the_reference_names_every_option_and_every_attribute():
    told = inspect.getdoc(tenuto.Agent.__init__)
    assert [name for name in inspect.signature(tenuto.Agent).parameters if f"\n    {name}: " not in told] == []
    told = inspect.getdoc(tenuto.Answer)
    assert [name for name in tenuto.Answer.__struct_fields__ if f"\n    {name}: " not in told] == []
