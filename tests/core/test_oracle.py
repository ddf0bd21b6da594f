"""A call on a file that is not allowed tells nothing of it: security.md S6."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from tenuto.protocol.event import ApprovalRequestedEvent, ToolResultEvent
from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.protocol.part import text_of
from tests.core.harness import agent
from tests.examples import few_examples, in_turn
from tests.server import Call, Reply, Request

MODES = ("ask", "edits", "auto", "plan")
CONTENTS: dict[str, Callable[[Path], object]] = {
    "nothing": lambda path: None,
    "the text": lambda path: path.write_text("root:x\nroot:y\n"),
    "another text": lambda path: path.write_text("nobody\n"),
    "empty": lambda path: path.touch(),
    "binary": lambda path: path.write_bytes(b"\0root:\0"),
    "latin": lambda path: path.write_bytes("root:é".encode("latin-1")),
    "a directory": lambda path: path.mkdir(),
    "a pipe": os.mkfifo,
    "huge": lambda path: path.open("wb").truncate(5_000_000_000),
    "closed": lambda path: (path.write_text("root:"), path.chmod(0)),
    "a hard link": lambda path: path.hardlink_to(path.with_name("name")),
}
arguments = st.one_of(
    st.fixed_dictionaries(
        {
            "tool": st.just("edit"),
            "old_string": st.sampled_from(["root:", "root:x", "", "nobody", "é", "1: root:x"]),
            "new_string": st.sampled_from(["", "root:", "日本", "z"]),
            "replace_all": st.booleans(),
        }
    ),
    st.fixed_dictionaries(
        {"tool": st.just("write"), "content": st.sampled_from(["", "root:x\nroot:y\n", "日本", "\n"])}
    ),
)


def prepare_file(path: Path, content: str) -> None:
    shutil.rmtree(path.parent, ignore_errors=True)
    path.parent.mkdir()
    path.with_name("name").write_text("root:")
    CONTENTS[content](path)


def call_of(values: dict[str, Any], path: str) -> Call:
    rest = {key: value for key, value in values.items() if key != "tool"}
    return Call(values["tool"], {"path": path, **rest})


async def answers(tmp_path: Path, mode: str, spelling: str, values: dict[str, Any], *, person: bool) -> set[str]:
    """What the model is told, whatever lies at the path. With a user, who is asked each time and says no."""
    outside = tmp_path / "outside" / "file"
    call = call_of(values, spelling.format(outside))

    def script(request: Request) -> Reply:
        return Reply("done") if request.items[-1].kind == "result" else Reply(tool_calls=[call])

    told: set[str] = set()
    async with agent(tmp_path, script, mode=mode, interactive=person) as running:
        for count, content in enumerate(CONTENTS, 1):
            prepare_file(outside, content)
            await running.send("go")
            if person and mode != "plan":
                request = await running.until(ApprovalRequestedEvent, count)
                await running.runtime.submit(
                    AnswerApprovalOperation(
                        session_id=running.runtime.session_id, request_id=request.request_id, decision="deny"
                    )
                )
            await asyncio.wait_for(running.runtime.wait_settled(), 30)
            result = running.of(ToolResultEvent)[-1].message
            assert result.denied and len(running.of(ToolResultEvent)) == count
            told.add(text_of(result.parts))
    return told


@pytest.mark.parametrize(("mode", "person"), in_turn(MODES, [True, False]))
@few_examples(suppress_health_check=list(HealthCheck))
@given(values=arguments, spelling=st.sampled_from(["{}", "@{}", "../outside/file", "link", "@link/../../outside/file"]))
def test_s6_the_answer_is_the_same_whatever_is_in_the_file(
    tmp_path: Path, mode: str, person: bool, values: dict[str, Any], spelling: str
) -> None:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    if not (work / "link").is_symlink():
        (work / "link").symlink_to(tmp_path / "outside" / "file")
    assert len(asyncio.run(answers(tmp_path, mode, spelling, values, person=person))) == 1


async def test_s6_who_is_asked_sees_why_nothing_would_come_of_it_and_the_model_learns_it_after_a_yes(tmp_path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("nobody\n")
    call = Call("edit", {"path": str(outside / "file"), "old_string": "root:", "new_string": "x"})

    def script(request: Request) -> Reply:
        return Reply("done") if request.items[-1].kind == "result" else Reply(tool_calls=[call])

    async with agent(tmp_path, script, mode="ask", interactive=True) as running:
        await running.send("go")
        request = await running.until(ApprovalRequestedEvent)
        assert "old_string was not found" in request.detail and str(outside / "file") in request.detail
        await running.runtime.submit(
            AnswerApprovalOperation(
                session_id=running.runtime.session_id, request_id=request.request_id, decision="once"
            )
        )
        await asyncio.wait_for(running.runtime.wait_settled(), 30)
        assert "old_string was not found" in text_of(running.of(ToolResultEvent)[-1].message.parts)
        assert (outside / "file").read_text() == "nobody\n"
