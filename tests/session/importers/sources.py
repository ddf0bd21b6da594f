"""Session files of other agents in their true shapes, small."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PNG_TEXT = base64.b64encode(PNG).decode()
CWD = "/home/ada/clock"
Line = dict[str, Any]


def write_lines(path: Path, lines: list[Line]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines))
    return path


def stamp(second: int) -> str:
    return f"2026-05-01T10:{second // 60:02}:{second % 60:02}.250Z"


# --- Claude Code ---


class Claude:
    """Lines of a session; each is the child of the one before unless `parent` says otherwise."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._second = 0
        self._last: str | None = None

    def add(self, kind: str, uuid: str, parent: str | None = "before", **more: Any) -> str:
        self._second += 1
        before = self._last if parent == "before" else parent
        self.lines.append(
            {
                "parentUuid": before,
                "isSidechain": False,
                "userType": "external",
                "cwd": CWD,
                "sessionId": "5f0c1d9e-1111-4222-8333-444455556666",
                "version": "2.1.220",
                "gitBranch": "main",
                "type": kind,
                **more,
                "uuid": uuid,
                "timestamp": stamp(self._second),
            }
        )
        self._last = uuid
        return uuid

    def user(self, uuid: str, content: Any, parent: str | None = "before", **more: Any) -> str:
        return self.add("user", uuid, parent, message={"role": "user", "content": content}, **more)

    def answer(self, uuid: str, message_id: str, block: Line, parent: str | None = "before", **more: Any) -> str:
        message = {
            "id": message_id,
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5-20250929",
            "content": [block],
            "stop_reason": None,
            "usage": {
                "input_tokens": 12,
                "cache_creation_input_tokens": 300,
                "cache_read_input_tokens": 9_000,
                "output_tokens": 42,
            },
        }
        return self.add("assistant", uuid, parent, message=message, requestId="req_1", **more)

    def result(self, uuid: str, call: str, content: Any, parent: str, **more: Any) -> str:
        block = {"tool_use_id": call, "type": "tool_result", "content": content}
        return self.user(uuid, [block], parent, sourceToolAssistantUUID=parent, **more)

    def bare(self, **fields: Any) -> None:
        self.lines.append(fields)


def call(call_id: str, name: str, **arguments: Any) -> Line:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def said(text: str) -> Line:
    return {"type": "text", "text": text}


def claude_session() -> list[Line]:
    """Two parallel calls, an image, a queued text, a command of the user, a title, a sub-agent's lines."""
    made = Claude()
    made.bare(type="file-history-snapshot", messageId="u1", snapshot={"messageId": "u1"}, isSnapshotUpdate=False)
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG_TEXT}}
    made.user("u1", [said("Why does the clock stop?"), picture], None)
    made.add("attachment", "at1", attachment={"type": "todo_reminder", "content": []})
    made.answer("a1", "msg_1", {"type": "thinking", "thinking": "Look first.", "signature": "c2lnbmVk"})
    made.answer("a2", "msg_1", said("I will look at both files."))
    made.answer("a3", "msg_1", call("toolu_1", "Read", file_path="/home/ada/clock/clock.py"))
    made.answer("a4", "msg_1", call("toolu_2", "Bash", command="pytest -q"))
    made.result("r1", "toolu_1", "1\tdef tick(): ...", "a3")
    made.add("progress", "p1", "a4", data={"type": "bash_progress"}, toolUseID="toolu_2")
    made.result("r2", "toolu_2", [said("1 failed")], "a4", toolUseResult={"stdout": "1 failed", "stderr": ""})
    made.answer("s1", "msg_side", said("A sub-agent speaks."), "a4", agentId="x")
    made.lines[-1]["isSidechain"] = True
    edit = call("toolu_3", "Edit", file_path="/home/ada/clock/clock.py", old_string="a", new_string="b")
    made.answer("a5", "msg_2", edit, "r2")
    hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]}
    details = {"filePath": "/home/ada/clock/clock.py", "structuredPatch": [hunk]}
    made.result("r3", "toolu_3", "The file has been updated.", "a5", toolUseResult=details)
    made.answer("a6", "msg_3", said("It ticks again."))
    made.user("u2", "<bash-input>git status --short</bash-input>")
    made.user("u3", "<bash-stdout> M clock.py</bash-stdout><bash-stderr></bash-stderr>")
    made.user("u4", "Now the tests, please.")
    made.answer("a7", "msg_4", said("All green."))
    made.bare(type="ai-title", aiTitle="Clock that stops", sessionId="5f0c1d9e-1111-4222-8333-444455556666")
    return made.lines


def claude_rewound() -> list[Line]:
    """A first answer that was rewound, and another prompt in its place."""
    made = Claude()
    made.user("u1", "Draw a circle.", None)
    made.answer("a1", "msg_1", said("A circle."))
    made.user("u2", "Make it red.")
    made.answer("a2", "msg_2", said("Red."))
    made.user("u3", "Make it blue.", "a1")
    made.answer("a3", "msg_3", said("Blue."))
    return made.lines


def claude_compacted() -> list[Line]:
    made = Claude()
    made.user("u1", "Count to ten.", None)
    made.answer("a1", "msg_1", said("One, two, three."))
    metadata = {"trigger": "auto", "preTokens": 155_025, "postTokens": 9_000}
    made.add(
        "system",
        "b1",
        None,
        subtype="compact_boundary",
        logicalParentUuid="a1",
        content="Conversation compacted",
        compactMetadata=metadata,
    )
    summary = "This session is being continued. It counted to three."
    made.user("c1", summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)
    made.answer("a2", "msg_2", said("Four, five."))
    made.user("u2", "Go on.")
    made.answer("a3", "msg_3", said("Six."))
    return made.lines


# --- Codex ---


def rollout(kind: str, second: int, /, **payload: Any) -> Line:
    return {"timestamp": stamp(second), "type": kind, "payload": payload}


def item(second: int, kind: str, /, **payload: Any) -> Line:
    return rollout("response_item", second, type=kind, **payload)


def codex_user(second: int, text: str) -> Line:
    return item(second, "message", role="user", content=[{"type": "input_text", "text": text}])


def codex_answer(second: int, text: str) -> Line:
    return item(second, "message", role="assistant", content=[{"type": "output_text", "text": text}])


def codex_head() -> list[Line]:
    meta = {"id": "0199-aa", "timestamp": stamp(0), "cwd": CWD, "originator": "codex_cli_rs", "cli_version": "0.169.0"}
    return [
        rollout("session_meta", 0, **meta, model_provider="openai", base_instructions={"text": "You are …"}),
        item(1, "message", role="developer", content=[{"type": "input_text", "text": "<permissions instructions>…"}]),
        codex_user(1, "<environment_context>\n  <cwd>/home/ada/clock</cwd>\n</environment_context>"),
        rollout("turn_context", 2, cwd=CWD, model="gpt-5-codex", approval_policy="on-request"),
    ]


def codex_session() -> list[Line]:
    picture = {"type": "input_image", "image_url": f"data:image/png;base64,{PNG_TEXT}"}
    words = {"type": "input_text", "text": "Why does the clock stop?"}
    usage = {"input_tokens": 1_200, "cached_input_tokens": 1_000, "output_tokens": 50, "reasoning_output_tokens": 20}
    counted = {"total_token_usage": {**usage, "total_tokens": 1_250}, "last_token_usage": usage}
    patch = "*** Begin Patch\n*** Update File: clock.py\n-a\n+b\n*** End Patch"
    return [
        *codex_head(),
        item(3, "message", role="user", content=[words, picture]),
        rollout("event_msg", 3, type="user_message", message="Why does the clock stop?"),
        item(
            4,
            "reasoning",
            summary=[{"type": "summary_text", "text": "**Looking**"}],
            encrypted_content="sealed-thought",
        ),
        item(5, "function_call", name="shell", arguments='{"command":["ls"]}', call_id="call_1"),
        item(5, "function_call", name="shell", arguments='{"command":["pytest"]}', call_id="call_2"),
        rollout("event_msg", 5, type="token_count", info=counted),
        rollout("event_msg", 5, type="token_count", info=counted),
        item(6, "function_call_output", call_id="call_2", output="1 failed"),
        item(6, "function_call_output", call_id="call_1", output='{"output":"clock.py\\n","metadata":{"exit_code":0}}'),
        item(7, "custom_tool_call", status="completed", call_id="call_3", name="apply_patch", input=patch),
        item(8, "custom_tool_call_output", call_id="call_3", output="Success"),
        item(9, "web_search_call", status="completed", action={"type": "search", "query": "clocks"}),
        codex_answer(9, "It ticks again."),
        item(10, "ghost_snapshot", ghost_commit={"id": "abc"}),
        codex_user(11, "Thanks. And the tests?"),
        codex_answer(12, "All green."),
    ]


def codex_compacted() -> list[Line]:
    history = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Count to ten."}]},
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Notes:\nIt counted to three."}],
        },
    ]
    return [
        *codex_head(),
        codex_user(3, "Count to ten."),
        codex_answer(4, "One, two, three."),
        rollout("compacted", 5, message="Notes:\nIt counted to three.", replacement_history=history),
        codex_answer(6, "Four, five."),
        codex_user(7, "Go on."),
        codex_answer(8, "Six."),
    ]


# --- Pi ---


def pi_line(name: str, parent: str | None, kind: str, second: int, /, **more: Any) -> Line:
    return {"type": kind, "id": name, "parentId": parent, "timestamp": stamp(second), **more}


def pi_message(name: str, parent: str | None, second: int, **message: Any) -> Line:
    return pi_line(name, parent, "message", second, message={**message, "timestamp": 1_777_629_600_000 + second})


def pi_answer(name: str, parent: str, second: int, *content: Line, stop: str = "stop") -> Line:
    usage = {"input": 10, "output": 20, "cacheRead": 400, "cacheWrite": 30, "cost": {"total": 0.01}}
    return pi_message(
        name,
        parent,
        second,
        role="assistant",
        content=list(content),
        api="anthropic-messages",
        provider="anthropic",
        model="claude-sonnet-4-5",
        usage=usage,
        stopReason=stop,
    )


PI_HEAD: Line = {"type": "session", "version": 3, "id": "8f14e45f", "timestamp": stamp(0), "cwd": CWD}


def pi_call(call_id: str, name: str, **arguments: Any) -> Line:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def pi_result(name: str, parent: str, second: int, call_id: str, text: str) -> Line:
    content = [said(text)]
    return pi_message(
        name, parent, second, role="toolResult", toolCallId=call_id, toolName="bash", content=content, isError=False
    )


def pi_session() -> list[Line]:
    """A branch that was left with a summary, a command of the user, a label, a name, an extension's message."""
    picture = {"type": "image", "data": PNG_TEXT, "mimeType": "image/png"}
    shell = {"role": "bashExecution", "command": "ls -la", "output": "total 4", "exitCode": 0, "cancelled": False}
    thought = {"type": "thinking", "thinking": "Look first.", "thinkingSignature": "c2ln"}
    return [
        PI_HEAD,
        pi_line("m0", None, "model_change", 1, provider="anthropic", modelId="claude-sonnet-4-5"),
        pi_message("u1", "m0", 2, role="user", content=[said("Why does the clock stop?"), picture]),
        pi_answer("a1", "u1", 3, thought, pi_call("toolu_1", "read", path="clock.py"), stop="toolUse"),
        pi_result("r1", "a1", 4, "toolu_1", "def tick(): ..."),
        pi_answer("a2", "r1", 5, said("A spring is loose.")),
        pi_message("u2", "a2", 6, role="user", content="Replace the spring."),
        pi_answer("a3", "u2", 7, said("Replaced.")),
        pi_line(
            "s1", "a2", "branch_summary", 8, fromId="a3", summary="A spring was replaced.", details={"readFiles": []}
        ),
        pi_message("u3", "s1", 9, role="user", content="Glue the spring instead."),
        pi_answer("a4", "u3", 10, said("Glued."), pi_call("toolu_2", "bash", command="glue"), stop="toolUse"),
        pi_result("r2", "a4", 11, "toolu_2", "ok"),
        pi_line("l1", "r2", "label", 12, targetId="u3", label="glue"),
        pi_message("b1", "l1", 13, **shell),
        pi_line("x1", "b1", "custom_message", 14, customType="clock", content="It is noon.", display=True),
        pi_line("n1", "x1", "session_info", 15, name="Clock that stops"),
        pi_answer("a5", "n1", 16, said("Done.")),
    ]


def pi_compacted(first_kept: str = "u2") -> list[Line]:
    return [
        PI_HEAD,
        pi_message("u1", None, 1, role="user", content="Count to ten."),
        pi_answer("a1", "u1", 2, said("One, two, three.")),
        pi_message("u2", "a1", 3, role="user", content="Go on."),
        pi_answer("a2", "u2", 4, said("Four.")),
        pi_line("c1", "a2", "compaction", 5, summary="It counted.", firstKeptEntryId=first_kept, tokensBefore=180_000,
                details={"readFiles": ["a.py"], "modifiedFiles": ["b.py"]}),
        pi_message("u3", "c1", 6, role="user", content="And on."),
        pi_answer("a3", "u3", 7, said("Five.")),
    ]  # fmt: skip


# --- Kimi Code ---


def record(name: str, second: int, /, **more: Any) -> Line:
    return {"type": name, **more, "time": 1_777_629_600_000 + second * 1000}


def kimi_user(second: int, text: str, kind: str = "user") -> Line:
    message = {"role": "user", "content": [said(text)], "toolCalls": [], "origin": {"kind": kind}}
    return record("context.append_message", second, message=message)


def loop(second: int, kind: str, /, **more: Any) -> Line:
    return record("context.append_loop_event", second, event={"type": kind, **more})


def kimi_step(second: int, step: str, *parts: Line, calls: tuple[Line, ...] = ()) -> list[Line]:
    usage = {"inputOther": 10, "output": 20, "inputCacheRead": 400, "inputCacheCreation": 0}
    lines = [loop(second, "step.begin", uuid=step, turnId="0", step=1)]
    lines += [loop(second, "content.part", stepUuid=step, part=part) for part in parts]
    for made in calls:
        lines.append(loop(second, "tool.call", stepUuid=step, toolCallId=made["id"], name="Shell", args=made["args"]))
    for made in calls:
        result = {"output": made["output"]}
        lines.append(loop(second, "tool.result", parentUuid=step, toolCallId=made["id"], result=result))
    return [*lines, loop(second, "step.end", uuid=step, finishReason="completed", usage=usage)]


KIMI_HEAD: list[Line] = [
    {"type": "metadata", "protocol_version": "1.5", "created_at": 1_777_629_600_000},
    record("profile.bind", 0, systemPrompt="You are …", thinkingEffort="on", disallowedTools=[]),
    record("llm.request", 1, kind="loop", provider="kimi", model="kimi-k2.5", messageCount=1),
]


def kimi_code_session() -> list[Line]:
    calls = ({"id": "call_1", "args": {"command": "ls"}, "output": "clock.py"},)
    picture = {"type": "image_url", "imageUrl": {"url": ""}, "image_url": {"url": f"data:image/png;base64,{PNG_TEXT}"}}
    first = kimi_user(2, "Why does the clock stop?")
    first["message"]["content"].append(picture)
    return [
        *KIMI_HEAD,
        kimi_user(2, "<system-reminder>…</system-reminder>", "injection"),
        first,
        *kimi_step(3, "s1", {"type": "think", "think": "Look first."}, said("I look."), calls=calls),
        *kimi_step(4, "s2", said("A spring is loose.")),
        kimi_user(5, "Replace the spring."),
        *kimi_step(6, "s3", said("Replaced.")),
        record("context.undo", 7, count=1),
        kimi_user(8, "Glue the spring."),
        *kimi_step(9, "s4", said("Glued.")),
    ]


def kimi_code_compacted() -> list[Line]:
    counts = {"compactedCount": 2, "keptUserMessageCount": 1, "tokensBefore": 90_000, "tokensAfter": 5_000}
    return [
        *KIMI_HEAD,
        kimi_user(2, "Count to ten."),
        *kimi_step(3, "s1", said("One, two, three.")),
        record("context.apply_compaction", 4, summary="It counted to three.", **counts),
        *kimi_step(5, "s2", said("Four, five.")),
        kimi_user(6, "Go on."),
        *kimi_step(7, "s3", said("Six.")),
    ]


# --- kimi-cli ---


def kimi_cli_session() -> list[Line]:
    function = {"name": "Shell", "arguments": '{"command":"ls"}'}
    return [
        {"role": "_system_prompt", "content": "You are …"},
        {"role": "_checkpoint", "id": 0},
        {"role": "user", "content": [said("<system>CHECKPOINT 0</system>")]},
        {"role": "user", "content": "Why does the clock stop?"},
        {
            "role": "assistant",
            "content": [{"type": "think", "think": "Look first."}, said("I look.")],
            "tool_calls": [{"type": "function", "id": "Shell:0", "function": function}],
        },
        {"role": "_usage", "token_count": 5_000},
        {"role": "tool", "content": [said("<system>Done.</system>"), said("clock.py")], "tool_call_id": "Shell:0"},
        {"role": "assistant", "content": [said("A spring is loose.")]},
    ]  # fmt: skip


def kimi_cli_compacted() -> list[Line]:
    head = "<system>Previous context has been compacted. Here is the compaction output:</system>"
    return [
        {"role": "_system_prompt", "content": "You are …"},
        {"role": "user", "content": [said(head), said("It counted to three.")]},
        {"role": "assistant", "content": [said("Four, five.")]},
        {"role": "user", "content": [said("Go on.")]},
        {"role": "assistant", "content": [said("Six.")]},
    ]


# --- klaude-code ---


def klaude(kind: str, second: int, /, **data: Any) -> Line:
    return {"type": kind, "data": {**data, "created_at": f"2026-05-01T10:{second // 60:02}:{second % 60:02}"}}


def klaude_user(second: int, text: str) -> Line:
    return klaude("UserMessage", second, role="user", parts=[said(text)])


def klaude_answer(second: int, *parts: Line) -> Line:
    usage = {"input_tokens": 500, "cached_tokens": 400, "output_tokens": 20, "provider": "anthropic",
             "model_name": "claude-sonnet-4-5", "input_cost": 0.01}  # fmt: skip
    return klaude("AssistantMessage", second, role="assistant", parts=list(parts), usage=usage, stop_reason="stop")


def klaude_session() -> list[Line]:
    made = {"type": "tool_call", "call_id": "toolu_1", "tool_name": "Bash", "arguments_json": '{"command":"ls"}'}
    thought = {"type": "thinking_text", "text": "Look first."}
    signature = {"type": "thinking_signature", "signature": "c2ln"}
    return [
        klaude("DeveloperMessage", 1, role="developer", parts=[said("<system-reminder>memory</system-reminder>")]),
        klaude_user(2, "Why does the clock stop?"),
        klaude_answer(3, thought, signature, said("I look."), made),
        klaude("ToolResultMessage", 4, role="tool", call_id="toolu_1", tool_name="Bash", status="success",
               output_text="clock.py", parts=[{"type": "image_url", "url": f"data:image/png;base64,{PNG_TEXT}"}]),
        klaude_answer(5, said("A spring is loose.")),
        klaude_user(6, "Repalce it."),
        klaude("InterruptEntry", 7, show_notice=False),
        klaude("RetractEntry", 8, retracted_text="Repalce it."),
        klaude_user(9, "Replace it."),
        klaude_answer(10, said("Replaced.")),
        klaude("SpawnSubAgentEntry", 11, session_id="x", sub_agent_type="finder", sub_agent_desc="…"),
    ]  # fmt: skip


def klaude_compacted() -> list[Line]:
    return [
        klaude_user(1, "Count to ten."),
        klaude_answer(2, said("One, two, three.")),
        klaude_user(3, "Go on."),
        klaude_answer(4, said("Four.")),
        klaude("CompactionEntry", 5, summary="It counted.", first_kept_index=2, tokens_before=180_000),
        klaude_user(6, "And on."),
        klaude_answer(7, said("Five.")),
    ]


# --- where they lie ---

FILES = {
    "claude-code": (".claude/projects/-home-ada-clock/5f0c1d9e-1111-4222-8333-444455556666.jsonl", claude_session),
    "codex": (".codex/sessions/2026/05/01/rollout-2026-05-01T10-00-00-0199-aa.jsonl", codex_session),
    "pi": (".pi/agent/sessions/--home-ada-clock--/2026-05-01T10-00-00-000Z_8f14e45f.jsonl", pi_session),
    "kimi-code": (".kimi-code/sessions/wd_clock_0123456789ab/session_1/agents/main/wire.jsonl", kimi_code_session),
    "kimi-cli": (".kimi/sessions/c0ffee/7d1c/context.jsonl", kimi_cli_session),
    "klaude-code": (".klaude/projects/home-ada-clock/sessions/abc123/events.jsonl", klaude_session),
}


def write_all_sources(home: Path) -> dict[str, Path]:
    """A home directory in which every agent was used once."""
    return {name: write_lines(home / place, make()) for name, (place, make) in FILES.items()}
