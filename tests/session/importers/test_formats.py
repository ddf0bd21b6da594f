"""Each agent's file becomes the session that its user had."""

from __future__ import annotations

import pytest

from tenuto.protocol.entry import BranchEntry, BranchSummaryEntry, ExtensionEntry, LabelEntry, NoticeEntry, ShellEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, DiffView, ToolResultMessage, UserMessage
from tenuto.protocol.part import ImagePart, OpaquePart, ThinkingPart, text_of
from tests.session.importers import sources
from tests.session.importers.reading import bring, check_view, of, view_words
from tests.session.importers.sources import CWD, FILES, PNG, Claude, call, said

AFTER = "user: (The conversation before this point is summarised above. The work below is under way; go on with it.)"


@pytest.mark.parametrize("name", FILES)
def test_a_session_is_known_by_its_lines_wherever_the_file_lies(tmp_path, name):
    session, made = bring(tmp_path, FILES[name][1](), "elsewhere/copy.jsonl")
    assert made.source.format.name == name
    assert made.report.remarks == [line for line in made.report.remarks if "damaged" not in line]
    check_view(session.get_llm_history())


@pytest.mark.parametrize("name", ["claude-code", "codex", "pi", "kimi-code", "klaude-code"])
def test_images_are_kept(tmp_path, name):
    session, _ = bring(tmp_path, FILES[name][1]())
    images = [
        part
        for entry in session.entries()
        if isinstance(entry, (UserMessage, ToolResultMessage))
        for part in entry.parts
        if isinstance(part, ImagePart)
    ]
    assert [session.store.load_bytes(image.sha256) for image in images] == [PNG]


@pytest.mark.parametrize("name", FILES)
def test_thinking_is_readable_text_without_its_signature(tmp_path, name):
    session, _ = bring(tmp_path, FILES[name][1]())
    thoughts = [p for answer in of(session, AssistantMessage) for p in answer.parts if isinstance(p, ThinkingPart)]
    assert [thought.text for thought in thoughts] == ["**Looking**" if name == "codex" else "Look first."]
    assert all(not bytes(thought.block) for thought in thoughts)


# --- Claude Code ---


def test_claude_answers_are_whole_and_results_follow_their_calls(tmp_path):
    session, made = bring(tmp_path, sources.claude_session())
    assert view_words(session) == [
        "user: Why does the clock stop?",
        "model: I will look at both files. Read() Bash()",
        "Read: 1\tdef tick(): ...",
        "Bash: 1 failed",
        "model:  Edit()",
        "Edit: The file has been updated.",
        "model: It ticks again.",
        "user: The user ran a command in this directory:\n<command>\ngit status --short\n</command>\n"
        "<output>  (exit code 0)\n M clock.py\n</output>",
        "user: Now the tests, please.",
        "model: All green.",
    ]
    assert not of(session, BranchEntry)
    assert made.report.counts["sidechain"] == 1
    assert session.state.title == "Clock that stops"
    assert str(session.cwd) == CWD


def test_claude_usage_model_times_files_and_diffs_are_kept(tmp_path):
    session, _ = bring(tmp_path, sources.claude_session())
    first = of(session, AssistantMessage)[0]
    assert first.model == "anthropic/claude-sonnet-4-5-20250929"
    assert first.usage is not None
    assert (first.usage.sent, first.usage.output, first.stop_reason) == (9_312, 42, "tool_use")
    assert (session.header.ts, first.ts) == (1_777_629_601.25, 1_777_629_603.25)
    read, _, edited = of(session, ToolResultMessage)
    assert [(use.path, use.op) for use in read.files + edited.files] == [
        ("/home/ada/clock/clock.py", "read"),
        ("/home/ada/clock/clock.py", "edit"),
    ]
    assert edited.ui == (DiffView(path=edited.files[0].path, diff="@@ -1,1 +1,1 @@\n-a\n+b\n", added=1, removed=1),)


def test_claude_a_rewind_is_a_branch_and_the_newest_one_is_active(tmp_path):
    session, made = bring(tmp_path, sources.claude_rewound())
    words = ["user: Draw a circle.", "model: A circle.", "user: Make it blue.", "model: Blue."]
    assert view_words(session) == words
    assert made.report.branches == 1
    assert "Red." in str(list(session.entries()))


def test_claude_a_compaction_stands_for_what_was_before_it(tmp_path):
    session, _ = bring(tmp_path, sources.claude_compacted())
    view = view_words(session)
    assert "It counted to three." in view[0]
    assert view[1:] == [AFTER, "model: Four, five.", "user: Go on.", "model: Six."]
    entry = of(session, CompactionEntry)[0]
    assert (entry.tokens_before, entry.tokens_after, entry.reason) == (155_025, 9_000, "threshold")
    assert "One, two, three." in str(list(session.entries()))


def test_claude_a_compaction_that_kept_messages_keeps_them(tmp_path):
    made = Claude()
    made.user("u1", "Count.", None)
    made.answer("a1", "m1", said("One."))
    made.user("u2", "More.")
    made.answer("a2", "m2", said("Two."))
    kept = {"preservedMessages": {"anchorUuid": "c1", "uuids": ["u2", "a2"]}}
    made.add("system", "b1", None, subtype="compact_boundary", logicalParentUuid="a2", compactMetadata=kept)
    made.user("c1", "It counted.", isCompactSummary=True)
    made.user("u3", "And more.", "a2")
    made.answer("a3", "m3", said("Three."))
    session, report = bring(tmp_path, made.lines)
    assert view_words(session)[1:] == ["user: More.", "model: Two.", "user: And more.", "model: Three."]
    assert report.report.branches == 0


def test_claude_a_kept_message_that_is_written_again_behind_the_summary_stands_once(tmp_path):
    made = Claude()
    made.user("u1", "Count.", None)
    made.answer("a1", "m1", said("One."))
    made.user("u2", "More.")
    kept = {
        "preservedMessages": {"uuids": ["a1", "u2", "a2"]},
        "preservedSegment": {"headUuid": "a1", "tailUuid": "a2"},
    }
    made.add("system", "b1", None, subtype="compact_boundary", logicalParentUuid="a2", compactMetadata=kept)
    made.user("c1", "It counted.", isCompactSummary=True)
    made.answer("a2", "m2", said("Two."))
    made.user("u3", "And more.")
    session, report = bring(tmp_path, made.lines)
    assert view_words(session)[1:] == [AFTER, "model: One.", "user: More.", "model: Two.", "user: And more."]
    assert report.report.remarks == []


def test_claude_a_prompt_at_the_root_begins_anew_only_in_a_file_that_links_its_lines(tmp_path):
    made = Claude()
    made.user("u1", "Draw a circle.", None)
    made.answer("a1", "m1", said("A circle."))
    made.add("system", "s1", None, subtype="informational", content="resumed")
    made.user("u2", "Again.")
    made.user("u3", "Draw a square.", None)
    session, _ = bring(tmp_path, made.lines)
    assert view_words(session) == ["user: Draw a square."]
    unlinked = [{**line, "parentUuid": None} for line in sources.claude_rewound()]
    session, report = bring(tmp_path, unlinked)
    assert len(view_words(session)) == 6
    assert report.report.branches == 0


def test_claude_a_late_block_of_an_answer_whose_results_came_already_belongs_to_it(tmp_path):
    made = Claude()
    made.user("u1", "Go.", None)
    made.answer("a1", "m1", call("t1", "Bash", command="a"))
    made.result("r1", "t1", "A", "a1")
    made.answer("a2", "m1", call("t2", "Bash", command="b"), "a1")
    made.result("r2", "t2", "B", "a2")
    made.answer("a3", "m2", said("Done."), "r1")
    session, _ = bring(tmp_path, made.lines)
    words = ["user: Go.", "model:  Bash() Bash()", "Bash: A", "Bash: B", "model: Done."]
    assert view_words(session) == words


def test_claude_errors_commands_and_notes_are_not_taken_for_what_was_said(tmp_path):
    made = Claude()
    made.user("u1", "<command-name>/review</command-name>\n<command-args>all</command-args>", None)
    made.user("u2", "<local-command-stdout>ok</local-command-stdout>")
    made.answer("a1", "m1", said("API Error: 529"), isApiErrorMessage=True)
    made.add("attachment", "q1", attachment={"type": "queued_command", "prompt": "Hurry."})
    note = "<system-reminder>Be brief.</system-reminder>"
    made.user("u3", note)
    made.user("u4", [said(note), said(f"{note}\nAnd well.")])
    made.answer("a2", "m2", said("Reviewed."))
    session, made = bring(tmp_path, made.lines)
    assert view_words(session) == ["user: /review all", "user: Hurry.", "user: And well.", "model: Reviewed."]
    assert made.report.counts["context"] == 3
    assert of(session, UserMessage)[0].origin == "command"
    assert of(session, NoticeEntry)[0].text == "API Error: 529"


def test_claude_a_failure_is_told_without_its_tag_and_a_home_directory_stays_as_it_is(tmp_path):
    made = Claude()
    made.user("u1", "Look at my notes.", None)
    made.answer("a1", "m1", call("t1", "Read", file_path="~/notes.md"))
    made.result("r1", "t1", "<tool_use_error>File does not exist.</tool_use_error>", "a1")
    made.answer("a2", "m2", call("t2", "Edit", file_path="~/c.md", old_string="a"))
    made.result("r2", "t2", "ok", "a2")
    session, _ = bring(tmp_path, made.lines)
    failed, edited = of(session, ToolResultMessage)
    assert text_of(failed.parts) == "File does not exist."
    assert [use.path for use in edited.files] == ["~/c.md"]


# --- Codex ---


def test_codex_items_of_one_response_are_one_answer(tmp_path):
    session, made = bring(tmp_path, sources.codex_session())
    assert view_words(session) == [
        "user: Why does the clock stop?",
        "model:  shell() shell()",
        "shell: clock.py\n",
        "shell: 1 failed",
        "model:  apply_patch()",
        "apply_patch: Success",
        "model: It ticks again.",
        "user: Thanks. And the tests?",
        "model: All green.",
    ]
    answers = of(session, AssistantMessage)
    assert {answer.model for answer in answers} == {"openai/gpt-5-codex"}
    assert answers[0].usage is not None
    assert (answers[0].usage.input, answers[0].usage.cache_read, answers[0].usage.reasoning) == (200, 1_000, 20)
    assert session.state.usage.output == 50, "the same numbers again are no second request"
    assert of(session, ToolResultMessage)[2].files[0].path == f"{CWD}/clock.py"
    assert isinstance(answers[2].parts[0], OpaquePart)
    assert made.report.counts["context"] == 2


@pytest.mark.parametrize(
    ("output", "words", "failed"),
    [
        ({"content": "done", "success": True}, "done", False),
        ({"content": "no", "success": False}, "no", True),
        ({"output": "old"}, "old", False),
        ({"Ok": {"x": 1}}, '{"Ok":{"x":1}}', False),
        ([{"type": "output_text", "text": "listed"}], "listed", False),
        ("plain", "plain", False),
    ],
)
def test_codex_outputs_of_all_shapes_are_read(tmp_path, output, words, failed):
    lines = [
        *sources.codex_head(),
        sources.codex_user(3, "Go."),
        sources.item(4, "local_shell_call", call_id="c1", status="completed", action={"command": ["ls"]}),
        sources.item(5, "local_shell_call_output", call_id="c1", output=output),
    ]
    session, _ = bring(tmp_path, lines)
    assert view_words(session)[1:] == ["model:  local_shell()", f"local_shell: {words}"]
    assert of(session, ToolResultMessage)[0].is_error is failed


def test_codex_a_readable_compaction_stands_with_what_the_user_said(tmp_path):
    session, _ = bring(tmp_path, sources.codex_compacted())
    view = view_words(session)
    assert "It counted to three." in view[0]
    assert "<message>\nCount to ten.\n</message>" in view[0]
    assert view[1:] == [AFTER, "model: Four, five.", "user: Go on.", "model: Six."]


def test_codex_a_compaction_that_only_its_provider_reads_leaves_the_history_in_the_view(tmp_path):
    lines = sources.codex_compacted()
    lines[6]["payload"] = {"message": "", "replacement_history": [{"type": "compaction", "encrypted_content": "gAA"}]}
    session, made = bring(tmp_path, lines)
    assert view_words(session)[:3] == ["user: Count to ten.", "model: One, two, three.", "model: Four, five."]
    assert made.report.counts["unread_summary"] == 1


def test_codex_turns_that_were_rolled_back_are_left_on_a_branch(tmp_path):
    lines = [
        *sources.codex_session(),
        sources.rollout("event_msg", 20, type="thread_rolled_back", num_turns=1),
        sources.codex_user(21, "And the docs?"),
        sources.codex_answer(22, "Written."),
    ]
    session, _ = bring(tmp_path, lines)
    assert view_words(session)[-3:] == ["model: It ticks again.", "user: And the docs?", "model: Written."]


def test_codex_names_of_sessions_stand_in_an_index(tmp_path):
    rows = [{"id": "0199-aa", "thread_name": "Old"}, {"id": "x", "thread_name": "Other"}, {"id": "0199-aa", "thread_name": "Clock"}]  # fmt: skip # noqa: E501
    sources.write_lines(tmp_path / ".codex/session_index.jsonl", rows)
    session, made = bring(tmp_path, sources.codex_session(), FILES["codex"][0])
    assert (session.state.title, made.source.name) == ("Clock", "Clock")


def test_codex_files_of_before_payloads_are_read(tmp_path):
    lines = [
        {"id": "old-1", "timestamp": "2025-06-01T10:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi."}]},
    ]
    session, made = bring(tmp_path, lines)
    assert view_words(session) == ["user: Hello", "model: Hi."]
    assert made.source.heading.session_id == "old-1"


# --- Pi ---


def test_pi_the_tree_is_kept_and_the_last_entry_is_the_leaf(tmp_path):
    session, _ = bring(tmp_path, sources.pi_session())
    view = view_words(session)
    assert view[:4] == [
        "user: Why does the clock stop?",
        "model:  read()",
        "read: def tick(): ...",
        "model: A spring is loose.",
    ]
    assert "A spring was replaced." in view[4]
    assert view[5:8] == ["user: Glue the spring instead.", "model: Glued. bash()", "bash: ok"]
    assert view[9:] == ["user: It is noon.", "model: Done."]
    left = next(entry for entry in session.entries() if "Replaced." in str(entry))
    assert left not in session.path()
    summary, label = of(session, BranchSummaryEntry)[0], of(session, LabelEntry)[0]
    assert summary.from_seq == left.seq
    assert "Glue the spring" in str(session.find(label.target))
    assert of(session, ShellEntry)[0].exit_code == 0
    assert session.state.title == "Clock that stops"
    assert of(session, AssistantMessage)[0].usage.cost == 0.01


def test_pi_a_compaction_keeps_its_tail(tmp_path):
    session, _ = bring(tmp_path, sources.pi_compacted())
    view = view_words(session)
    assert "It counted." in view[0]
    assert view[1:] == ["user: Go on.", "model: Four.", "user: And on.", "model: Five."]
    entry = of(session, CompactionEntry)[0]
    assert (entry.tokens_before, entry.details.modified_files) == (180_000, ("b.py",))


def test_pi_a_tail_that_begins_with_an_answer_has_a_user_line_before_it(tmp_path):
    session, _ = bring(tmp_path, sources.pi_compacted("a2"))
    assert view_words(session)[1:] == [AFTER, "model: Four.", "user: And on.", "model: Five."]


def test_pi_a_compaction_whose_cut_is_lost_becomes_a_message_in_the_full_history(tmp_path):
    session, _ = bring(tmp_path, sources.pi_compacted("gone"))
    view = view_words(session)
    assert view[:2] == ["user: Count to ten.", "model: One, two, three."]
    assert "It counted." in view[4]
    assert not of(session, CompactionEntry)


def test_pi_files_of_the_first_version_are_one_row(tmp_path):
    lines = [{k: v for k, v in line.items() if k not in ("id", "parentId")} for line in sources.pi_compacted()]
    lines[0] = sources.PI_HEAD
    del lines[5]["firstKeptEntryId"]
    lines[5]["firstKeptEntryIndex"] = 3
    session, _ = bring(tmp_path, lines)
    assert view_words(session)[1:] == ["user: Go on.", "model: Four.", "user: And on.", "model: Five."]


# --- Kimi Code, kimi-cli, klaude-code ---


def test_kimi_code_steps_are_answers_and_an_undo_is_a_branch(tmp_path):
    session, made = bring(tmp_path, sources.kimi_code_session())
    assert view_words(session) == [
        "user: Why does the clock stop?",
        "model: I look. Shell()",
        "Shell: clock.py",
        "model: A spring is loose.",
        "user: Glue the spring.",
        "model: Glued.",
    ]
    first = of(session, AssistantMessage)[0]
    assert (first.model, first.usage.sent) == ("kimi/kimi-k2.5", 410)
    assert made.report.counts["context"] == 1


def test_kimi_code_a_compaction_stands_with_what_the_user_said(tmp_path):
    session, _ = bring(tmp_path, sources.kimi_code_compacted())
    view = view_words(session)
    assert "It counted to three." in view[0]
    assert "Count to ten." in view[0]
    assert view[1:] == [AFTER, "model: Four, five.", "user: Go on.", "model: Six."]


def test_kimi_code_an_older_compaction_keeps_its_tail(tmp_path):
    lines = sources.kimi_code_compacted()
    place = next(i for i, line in enumerate(lines) if line["type"] == "context.apply_compaction")
    lines[place] = sources.record("context.apply_compaction", 4, summary="It counts.", compactedCount=1)
    session, _ = bring(tmp_path, lines)
    assert view_words(session)[1:3] == [AFTER, "model: One, two, three."]


def test_kimi_code_clearing_begins_anew_and_loses_nothing(tmp_path):
    lines = [*sources.kimi_code_compacted(), sources.record("context.clear", 9), sources.kimi_user(10, "Hello")]
    session, _ = bring(tmp_path, lines)
    assert view_words(session) == ["user: Hello"]
    assert "Six." in str(list(session.entries()))


def test_kimi_code_titles_and_directories_are_beside_the_journal(tmp_path):
    folder = tmp_path / "kimi" / "session_1"
    sources.write_lines(folder / "state.json", [{"title": "Clock", "cwd": CWD}])
    session, _ = bring(tmp_path, sources.kimi_code_session(), "kimi/session_1/agents/main/wire.jsonl")
    assert (session.state.title, str(session.cwd)) == ("Clock", CWD)


def test_kimi_cli_messages_are_read_without_its_marks(tmp_path):
    session, _ = bring(tmp_path, sources.kimi_cli_session())
    assert view_words(session) == [
        "user: Why does the clock stop?",
        "model: I look. Shell()",
        "Shell: <system>Done.</system>clock.py",
        "model: A spring is loose.",
    ]


def test_kimi_cli_a_compacted_file_begins_with_its_summary(tmp_path):
    session, _ = bring(tmp_path, sources.kimi_cli_compacted())
    view = view_words(session)
    assert "It counted to three." in view[0]
    assert view[1:] == [AFTER, "model: Four, five.", "user: Go on.", "model: Six."]


def test_kimi_cli_what_its_compactions_reverts_and_clears_put_aside_comes_along(tmp_path):
    def message(role, words):
        return {"role": role, "content": [said(words)]}

    folder = tmp_path / "s"
    head = {"role": "_system_prompt", "content": "You are …"}
    talk = [message("user", "Count to ten."), message("assistant", "One."), message("user", "More."),
            message("assistant", "Two."), message("user", "Even more."), message("assistant", "Three.")]  # fmt: skip
    sources.write_lines(folder / "context_1.jsonl", [head, message("user", "Hello"), message("assistant", "Hi.")])
    sources.write_lines(folder / "context_2.jsonl", [head, *talk])
    sources.write_lines(folder / "context_10.jsonl", [head, *talk[:4], message("user", "Or less?")])
    summary = {"role": "user", "content": [said("<system>Previous context has been compacted. …</system>"), said("It counts.")]}  # fmt: skip # noqa: E501
    last = [head, summary, talk[3], message("user", "Or less?"), message("assistant", "Less.")]
    session, made = bring(tmp_path, last, "s/context.jsonl")
    view = view_words(session)
    assert "It counts." in view[0]
    assert view[1:] == [AFTER, "model: Two.", "user: Or less?", "model: Less."]
    everything = str(list(session.entries()))
    assert [words in everything for words in ("Hi.", "Three.", "One.")] == [True] * 3
    assert everything.count("'Two.'") == 1
    assert made.report.branches == 2
    check_view(session.get_llm_history())


def test_kimi_cli_a_cleared_session_has_what_was_cleared(tmp_path):
    sources.write_lines(tmp_path / "s/context_1.jsonl", sources.kimi_cli_session())
    session, _ = bring(tmp_path, [{"role": "user", "content": "Hello"}], "s/context.jsonl")
    assert view_words(session) == ["user: Hello"]
    assert "A spring is loose." in str(list(session.entries()))


def test_kimi_cli_directories_are_known_by_their_hash(tmp_path):
    import hashlib

    folder = hashlib.md5(CWD.encode()).hexdigest()
    sources.write_lines(tmp_path / ".kimi/kimi.json", [{"work_dirs": [{"path": "/else"}, {"path": CWD}]}])
    session, _ = bring(tmp_path, sources.kimi_cli_session(), f".kimi/sessions/{folder}/7d1c/context.jsonl")
    assert str(session.cwd) == CWD


def test_klaude_code_a_message_that_was_taken_back_is_on_a_branch(tmp_path):
    session, made = bring(tmp_path, sources.klaude_session())
    assert view_words(session) == [
        "user: Why does the clock stop?",
        "model: I look. Bash()",
        "Bash: clock.py",
        "model: A spring is loose.",
        "user: Replace it.",
        "model: Replaced.",
    ]
    first = of(session, AssistantMessage)[0]
    assert (first.model, first.usage.input, first.usage.cache_read) == ("anthropic/claude-sonnet-4-5", 100, 400)
    assert made.report.counts["sidechain"] == 1


def test_klaude_code_a_compaction_keeps_its_tail(tmp_path):
    session, _ = bring(tmp_path, sources.klaude_compacted())
    assert view_words(session)[1:] == ["user: Go on.", "model: Four.", "user: And on.", "model: Five."]


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        (sources.claude_session(), lambda lines: lines[1]["message"]["content"]),
        (sources.codex_session(), lambda lines: lines[4]["payload"]["content"]),
        (sources.pi_session(), lambda lines: lines[2]["message"]["content"]),
        (sources.kimi_code_session(), lambda lines: lines[4]["message"]["content"]),
        (sources.klaude_session(), lambda lines: lines[1]["data"]["parts"]),
    ],
    ids=["claude-code", "codex", "pi", "kimi-code", "klaude-code"],
)
def test_parts_of_an_unknown_kind_are_named_and_kept(tmp_path, lines, place):
    place(lines).append({"type": "hologram", "depth": 3})
    session, _ = bring(tmp_path, lines)
    assert any(words.endswith("[hologram: not shown here]") for words in view_words(session))
    assert [b'"depth":3' in bytes(entry.state) for entry in of(session, ExtensionEntry)].count(True) == 1


def test_what_is_of_an_unknown_kind_is_kept_as_it_was(tmp_path):
    lines = sources.pi_session()
    lines.insert(5, sources.pi_line("z1", "r1", "hologram", 5, depth=3))
    lines[6]["parentId"] = "z1"
    session, made = bring(tmp_path, lines)
    kept = [entry for entry in of(session, ExtensionEntry) if b"hologram" in bytes(entry.state)]
    assert len(kept) == 1
    assert made.report.counts["unknown"] == 1
    assert "hologram" not in str(session.get_llm_history())
