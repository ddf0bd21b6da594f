"""A session as an ATIF trajectory: valid for its strict readers whatever the session, and true to it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import UndoEntry, UsageEntry
from tenuto.protocol.message import AgentView, CompactionEntry
from tenuto.protocol.part import ImagePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.session.agents import agent_purpose
from tenuto.session.exporters.atif import Told, has_steps, write_trajectory
from tenuto.session.exporters.export import Export, ExportRefused, ExportRequest
from tenuto.session.exporters.source import Answer, arrange, read_outline
from tenuto.session.session import Session
from tenuto.session.store import AGENTS
from tests.session.build import answer, new_session, result, text, user
from tests.session.exporters.atif_rules import check_trajectory
from tests.session.exporters.samples import IMAGE, everything, long_session, number, source_of
from tests.session.exporters.test_outline import random_entries


def trajectory_of(source, agent=lambda _: None) -> dict:
    made = json.loads("".join(write_trajectory(Told(source, agent))))
    check_trajectory(made)
    check_by_package(made)
    return made


def check_by_package(made: dict) -> None:
    """Where the format's own package is installed, it says whether it can read this."""
    try:
        from atif import Trajectory
    except ImportError:
        return
    Trajectory.model_validate(made)


def exported(session: Session, folder: Path) -> dict:
    folder.mkdir(exist_ok=True)
    done = Export.of_session(session).write(ExportRequest(format="atif", force=True), folder)
    assert done.path.name.endswith(".atif.json")
    made = json.loads(done.path.read_text(encoding="utf-8"))
    check_trajectory(made)
    return made


def test_the_package_of_the_format_is_asked_too() -> None:
    atif = pytest.importorskip("atif", reason="the package atif is not installed")
    with pytest.raises(ValueError, match="sequential"):
        atif.Trajectory.model_validate(
            {
                "schema_version": "ATIF-v1.7",
                "agent": {"name": "a", "version": "1"},
                "steps": [{"step_id": 2, "source": "user", "message": ""}],
            }
        )


@given(st.text(), st.text(min_size=1))
def test_every_kind_of_entry_makes_a_valid_trajectory(word: str, name: str) -> None:
    trajectory_of(source_of(number(everything(word, name))))


@given(st.integers(0, 10**9), st.integers(0, 60))
def test_any_history_makes_a_valid_trajectory_with_every_answer_of_the_path(seed: int, length: int) -> None:
    source = source_of(random_entries(seed, length))
    answers = [item for item in arrange(read_outline(source.entries).path) if isinstance(item, Answer)]
    if not has_steps(source):
        assert not answers
        return
    steps = [step for step in trajectory_of(source)["steps"] if step["source"] == "agent"]
    assert [step["extra"]["seq"] for step in steps] == [one.seq for one in answers]
    for step, one in zip(steps, answers, strict=True):
        assert len(step.get("tool_calls", [])) == len(one.calls)
        given_back = [call for call in one.calls if call.result is not None]
        assert len(step.get("observation", {"results": []})["results"]) == len(given_back)


def test_a_step_has_what_was_said_thought_called_and_used(tmp_path: Path) -> None:
    session = new_session(tmp_path)
    session.append(user("mend the roof"))
    call = ToolCallPart(id="c1", name="bash", arguments='{"command": "ls"}')
    bad = ToolCallPart(id="c1", name="bash", arguments='{"comm', fault="not JSON")
    usage = Usage(input=100, cache_read=900, cache_write=50, output=20, reasoning=5, cost=0.25)
    said = answer("I look.", usage=usage, stop_reason="tool_use")
    session.append(msgspec.structs.replace(said, parts=(ThinkingPart(text="hm"), *said.parts, call, bad)))
    session.append(result("c1", "a.py"))
    session.append(result("c1", "no such call", is_error=True))
    session.append(answer("Done.", usage=usage))
    made = exported(session, tmp_path / "out")
    session.close()
    first, step, last = made["steps"]
    assert (first["source"], first["message"]) == ("user", "mend the roof")
    assert (step["message"], step["reasoning_content"], step["model_name"]) == ("I look.", "hm", "offline/offline")
    assert [call["arguments"] for call in step["tool_calls"]] == [{"command": "ls"}, {}]
    assert step["tool_calls"][1]["extra"] == {"fault": "not JSON", "arguments_as_written": '{"comm'}
    assert [one["content"] for one in step["observation"]["results"]] == ["a.py", "no such call"]
    assert [one["source_call_id"] for one in step["observation"]["results"]] == ["c1", "c1#2"]
    assert step["observation"]["results"][1]["extra"] == {"is_error": True}
    assert step["metrics"]["prompt_tokens"] == 1050
    assert (step["metrics"]["cached_tokens"], step["metrics"]["completion_tokens"]) == (900, 20)
    assert (last["message"], last["metrics"]["cost_usd"]) == ("Done.", 0.25)
    totals = made["final_metrics"]
    assert (totals["total_prompt_tokens"], totals["total_cost_usd"], totals["total_steps"]) == (2100, 0.5, 3)
    assert made["agent"]["name"] == "tenuto" and made["agent"]["model_name"] == "offline/offline"


def test_the_totals_are_those_of_branches_summaries_and_sub_agents_too() -> None:
    used = Usage(input=10, output=1, cost=0.5)
    entries = number(everything())
    extra = UsageEntry(usage=used, purpose=agent_purpose("explore"))
    without = trajectory_of(source_of(entries))["final_metrics"]
    with_agent = trajectory_of(source_of([*entries, extra]))["final_metrics"]
    assert with_agent["total_prompt_tokens"] == without["total_prompt_tokens"] + 10
    assert with_agent["total_cost_usd"] == pytest.approx(without["total_cost_usd"] + 0.5)
    assert with_agent["extra"]["shares"][agent_purpose("explore")]["completion_tokens"] == 1
    seen = sum(step.get("metrics", {}).get("prompt_tokens", 0) for step in trajectory_of(source_of(entries))["steps"])
    assert seen < without["total_prompt_tokens"], "a branch was left, and a summary made"


def test_a_compaction_is_a_step_that_says_what_it_did_and_whether_it_was_undone() -> None:
    compaction = CompactionEntry(
        summary="A roof.", first_kept_index=1, tokens_before=900, tokens_after=90, usage=Usage(input=7)
    )
    entries = [user("one"), answer("two"), compaction]
    for undone, more in ((False, []), (True, [UndoEntry(target=3)])):
        made = trajectory_of(source_of(number([*entries, *more])))
        facts = made["steps"][2]["extra"]["context_management"]
        assert (facts["type"], facts["summary"], facts["undone"]) == ("compaction", "A roof.", undone)
        assert facts["tokens_before"] == 900 and facts["summaries"]["prompt_tokens"] == 7


def test_a_sub_agents_trajectory_stands_inside_its_parents(tmp_path: Path) -> None:
    session = new_session(tmp_path)
    session.append(user("find it"))
    views = (AgentView(session="child", agent="explore"), AgentView(session="gone"), AgentView(session="../../x"))
    session.append(answer("I ask.", ("c1",)))
    session.append(result("c1", "found", ui=views))
    child = new_session(tmp_path / "child-home")
    child.append(user("look for it"))
    child.append(answer("It is there."))
    child.close()
    (session.directory / AGENTS).mkdir()
    child.directory.rename(session.directory / AGENTS / "child")
    made = exported(session, tmp_path / "out")
    session.close()
    references = made["steps"][1]["observation"]["results"][0]["subagent_trajectory_ref"]
    assert [one["trajectory_id"] for one in references] == ["child"]
    (inside,) = made["subagent_trajectories"]
    assert [step["message"] for step in inside["steps"]] == ["look for it", "It is there."]


def test_an_image_is_in_the_document_or_named() -> None:
    shown = ImagePart(sha256=IMAGE, media_type="image/png", name="roof.png")
    gone = ImagePart(sha256="00", media_type="image/png", name="gone.png")
    message = user("look")
    made = trajectory_of(
        source_of(number([type(message)(parts=(*text("look"), shown, gone, TextPart(text="closely")))]))
    )
    pieces = made["steps"][0]["message"]
    assert [piece["type"] for piece in pieces] == ["text", "image", "text", "text"]
    assert pieces[1]["source"]["path"].startswith("data:image/png;base64,")
    assert pieces[2]["text"] == "[gone.png: no longer there]"


def test_secrets_are_masked(tmp_path: Path) -> None:
    session = new_session(tmp_path)
    key = "sk-ant-api03-" + "a1B2" * 12
    session.append(user(f"the key is {key}"))
    made = json.dumps(exported(session, tmp_path / "out"))
    session.close()
    assert "the key is" in made and key not in made


def test_a_session_without_a_word_has_no_trajectory(tmp_path: Path) -> None:
    session = new_session(tmp_path)
    with pytest.raises(ExportRefused, match="nothing was said"):
        Export.of_session(session).write(ExportRequest(format="atif"), tmp_path)
    session.close()


def test_a_long_session_is_written_piece_by_piece() -> None:
    pieces = list(write_trajectory(Told(source_of(long_session(700)), lambda _: None)))
    assert max(map(len, pieces)) < 10_000
    check_trajectory(json.loads("".join(pieces)))
