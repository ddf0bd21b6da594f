"""The rules of the Agent Trajectory Interchange Format, as strict as its readers: nothing unknown, nothing missing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

ROOT = {
    "schema_version": str, "session_id": str, "trajectory_id": str, "agent": dict, "steps": list, "notes": str,
    "final_metrics": dict, "continued_trajectory_ref": str, "extra": dict, "subagent_trajectories": list,
}  # fmt: skip
AGENT = {"name": str, "version": str, "model_name": str, "tool_definitions": list, "extra": dict}
STEP = {
    "step_id": int, "timestamp": str, "source": str, "model_name": str, "reasoning_effort": (str, float),
    "message": (str, list), "reasoning_content": str, "tool_calls": list, "observation": dict, "metrics": dict,
    "llm_call_count": int, "is_copied_context": bool, "extra": dict,
}  # fmt: skip
CALL = {"tool_call_id": str, "function_name": str, "arguments": dict, "extra": dict}
RESULT = {"source_call_id": str, "content": (str, list), "subagent_trajectory_ref": list, "extra": dict}
REFERENCE = {"trajectory_id": str, "trajectory_path": str, "session_id": str, "extra": dict}
METRICS = {
    "prompt_tokens": int, "completion_tokens": int, "cached_tokens": int, "cost_usd": (int, float), "extra": dict,
}  # fmt: skip
TOTALS = {
    "total_prompt_tokens": int, "total_completion_tokens": int, "total_cached_tokens": int,
    "total_cost_usd": (int, float), "total_steps": int, "extra": dict,
}  # fmt: skip
OF_THE_AGENT = {"model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"}
VERSIONS = {f"ATIF-v1.{minor}" for minor in range(9)}


def check_trajectory(value: dict[str, Any], *, embedded: bool = False) -> None:
    """Raise `AssertionError` for a document that a strict reader would refuse."""
    check(value, ROOT, {"schema_version", "agent", "steps"} | ({"trajectory_id"} if embedded else set()))
    assert value["schema_version"] in VERSIONS
    check(value["agent"], AGENT, {"name", "version"})
    assert value["steps"], "a trajectory has a step"
    inside = [agent["trajectory_id"] for agent in value.get("subagent_trajectories", [])]
    assert len(inside) == len(set(inside))
    for number, step in enumerate(value["steps"], 1):
        assert step["step_id"] == number
        check_step(step, set(inside))
    if "final_metrics" in value:
        check(value["final_metrics"], TOTALS, set())
    for agent in value.get("subagent_trajectories", []):
        check_trajectory(agent, embedded=True)


def check_step(step: dict[str, Any], inside: set[str]) -> None:
    check(step, STEP, {"step_id", "source", "message"})
    assert step["source"] in {"system", "user", "agent"}
    assert step["source"] == "agent" or not OF_THE_AGENT & step.keys()
    if "timestamp" in step:
        datetime.fromisoformat(step["timestamp"].replace("Z", "+00:00"))
    check_content(step["message"])
    calls = step.get("tool_calls", [])
    for call in calls:
        check(call, CALL, {"tool_call_id", "function_name", "arguments"})
    names = [call["tool_call_id"] for call in calls]
    assert len(names) == len(set(names))
    for result in step.get("observation", {"results": []})["results"]:
        check(result, RESULT, {"content"})
        check_content(result["content"])
        assert "source_call_id" not in result or result["source_call_id"] in names
        for reference in result.get("subagent_trajectory_ref", []):
            check(reference, REFERENCE, {"trajectory_id"})
            assert reference["trajectory_id"] in inside
    if "metrics" in step:
        check(step["metrics"], METRICS, set())
        assert step["metrics"]["cached_tokens"] <= step["metrics"]["prompt_tokens"]


def check_content(content: str | list[dict[str, Any]]) -> None:
    for piece in [] if isinstance(content, str) else content:
        if piece["type"] == "text":
            assert piece.keys() == {"type", "text"}
        else:
            assert piece.keys() == {"type", "source"}
            assert piece["source"].keys() == {"media_type", "path"}
            assert piece["source"]["media_type"] in {"image/png", "image/jpeg", "image/gif", "image/webp"}


def check(value: dict[str, Any], known: dict[str, Any], needed: set[str]) -> None:
    assert not value.keys() - known.keys()
    assert not needed - value.keys()
    for name, field in value.items():
        assert isinstance(field, known[name]), (name, field)
        assert field is not True or known[name] is bool, name
