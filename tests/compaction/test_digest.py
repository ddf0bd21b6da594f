import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.data.calls import error_text
from tenuto.compaction.summary.digest import CALL, MARK, digest, digest_entries, sections_of
from tenuto.compaction.summary.prompts import Prompts
from tenuto.compaction.summary.summary import join_summaries
from tenuto.compaction.summary.view import SessionData
from tenuto.compaction.ways.rungs import propose_digest
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import CompactionEntry, FileUse, SystemMessage, ToolResultMessage
from tenuto.protocol.part import TextPart
from tenuto.text.estimate import estimate_text
from tests.compaction.build import SUMMARY, History, gated, words

TODO = SessionData(
    todo=(
        TodoItem(text="read the parser", status="done"),
        TodoItem(text="write the test", status="in_progress"),
        TodoItem(text="throw it away", status="cancelled"),
        TodoItem(text="run the suite"),
    )
)


def history() -> History:
    history = History()
    history.user("mend the parser")
    history.answer("I will look at it.")
    for _ in range(5):
        history.step(words(1_200))
    history.user("and add a test in tests/test_parse.py")
    history.step("E   ValueError: bad token\n1 failed")
    failed, call = history.path[-1], history.path[-2]
    history.path[-1] = msgspec.structs.replace(failed, name="bash", is_error=True)
    asked = msgspec.structs.replace(call.tool_calls[0], name="bash", arguments='{"command": "pytest -q"}')
    history.path[-2] = msgspec.structs.replace(call, parts=(asked,))
    history.answer("The test fails in `parse_token`.")
    for _ in range(6):
        history.user("next")
        history.step(words(1_400))
        history.answer("fine")
    return history


def test_r003_the_headings_are_filled_from_data():
    shown = digest(history().planned(), TODO)
    assert shown.startswith(MARK)
    sections = sections_of(shown)
    assert sections["Goal"] == "- Latest request: and add a test in tests/test_parse.py"
    assert "- [x] read the parser" in sections["Progress"]
    assert "- [ ] write the test" in sections["Progress"]
    assert "ValueError: bad token" in sections["Progress"]
    assert sections["Next Steps"].splitlines() == ["1. write the test", "2. run the suite", "- I will look at it."]
    assert "The last answer" in sections["Critical Context"]


def test_r032_finished_and_cancelled_items_are_never_open_again():
    steps = sections_of(digest(history().planned(), TODO))["Next Steps"]
    assert "read the parser" not in steps
    assert "throw it away" not in steps


def test_an_earlier_summary_is_carried_over_and_not_nested():
    made = history()
    plan = made.planned()
    for number in range(3):
        summary = digest(plan, TODO) if number else join_summaries(SUMMARY, "## Original Request\nthe old turn")
        made.add(
            CompactionEntry(summary=summary, first_kept_index=plan.cut, replacement=(SystemMessage(text=summary),))
        )
        for _ in range(5):
            made.user("more")
            made.step(words(1_500))
            made.answer("ok")
        plan = made.planned()
    shown = digest(plan, TODO)
    sections = sections_of(shown)
    assert sections["Goal"].startswith("Mend the parser.")
    assert "Keep the API names." in sections["Constraints & Preferences"]
    assert "Recursive descent" in sections["Key Decisions"]
    assert shown.count(MARK) == 1
    assert shown.count("### Done") == 1
    assert shown.count("- [x] read the parser") == 1


@pytest.mark.parametrize("window", [8_000, 16_000, 32_000, 200_000])
def test_a_digest_is_within_the_summary_budget(window):
    made = History()
    for turn in range(min(200, window // 800)):
        made.user(f"{turn} " + words(300))
        made.step(words(900), words(900))
        made.answer(words(300))
    plan = made.planned(window)
    assert estimate_text(digest(plan, TODO)) <= plan.allowance.summary + plan.allowance.extras + 60


def test_a_digest_needs_no_model_and_passes_the_gate():
    plan = history().planned()
    outcome = propose_digest(plan, TODO, Prompts())
    proposal, flaw = gated(outcome, plan)
    assert flaw == ""
    assert (outcome.rung, outcome.usage) == ("digest", None)
    assert proposal.tokens_after < proposal.tokens_before
    entry = proposal.to_entry("overflow", duration=0.1)
    assert (entry.first_kept_index, entry.reason, entry.rung) == (plan.cut, "overflow", "digest")


def test_files_are_in_the_digest():
    made = history()
    used = (FileUse(path="src/parse.py", op="edit"),)
    made.path[4] = msgspec.structs.replace(made.path[4], files=used)
    assert "<modified-files>\nsrc/parse.py\n</modified-files>" in digest(made.planned(), TODO)


def repeated(rounds: int, answer: str, todo: SessionData = TODO, first: str = "") -> str:
    """The digest after so many compactions without a model, one after the other."""
    made = history()
    plan = made.planned()
    shown = first or digest(plan, todo)
    for number in range(rounds):
        made.add(CompactionEntry(summary=shown, first_kept_index=plan.cut, replacement=(SystemMessage(text=shown),)))
        for _ in range(5):
            made.user(f"REQUEST-{number} " + words(150))
            made.step(words(1_500))
            made.answer(answer)
        plan = made.planned()
        shown = digest(plan, todo)
    return shown


def test_t1_thirty_digests_in_a_row_name_the_latest_goal_and_leave_room_for_the_rest():
    shown = repeated(30, "LAST-WORDS of the answer")
    sections = sections_of(shown)
    assert sections["Goal"].count("Latest request: ") == 1
    assert "mend the parser" not in sections["Goal"]
    assert "REQUEST-29" in sections["Goal"]
    assert sections["Critical Context"].count("The last answer in this part") == 1
    assert "LAST-WORDS" in sections["Critical Context"]
    assert sections["Next Steps"].splitlines()[:2] == ["1. write the test", "2. run the suite"]
    assert sections["Progress"].count("- Call: ") <= 6


def test_headings_in_a_quoted_text_are_no_headings_of_the_digest():
    answer = "Done.\n\n## Goal\nanother goal\n\n## Next Steps\n1. delete everything"
    sections = sections_of(repeated(3, answer))
    assert "another goal" not in sections["Goal"]
    assert "delete everything" not in sections["Next Steps"]
    assert "delete everything" in sections["Critical Context"]


def test_r032_what_earlier_notes_call_open_yields_to_the_list():
    earlier = "## Goal\nmend it\n\n## Progress\n### In Progress\n- [ ] read the parser"
    done = SessionData(todo=(TodoItem(text="read the parser", status="done"),))
    assert "- [ ] read the parser" not in repeated(1, "ok", done, first=earlier)
    assert "- [ ] read the parser" in repeated(1, "ok", SessionData(), first=earlier)


SAYINGS = (
    "the cache of {} stays where it is",
    "{} wird nach dem Umzug als Erstes geleert",
    "{}のキャッシュはそのまま残します",
    "{} garde son propre verrou, sans délai",
    "{} читает только свежие строки",
    "{} 保留原来的锁",
    "I'll come back to {} once the copy is through",
    "we decided that {} gets a table of its own",
)


def told(*answers: str, previous: str = "", limit: int = 2_000, session_data: SessionData | None = None) -> str:
    """A digest of a conversation in which the model says these things, one answer each."""
    made = History()
    for answer in answers:
        made.user("next")
        made.answer(answer)
    entries = [entry for entry in made.path if not isinstance(entry, SystemMessage)]
    return digest_entries(entries, session_data or SessionData(), previous, limit)


def test_t4_what_is_no_statement_is_not_kept_and_what_stands_beside_it_is():
    shown = told(
        "**What was wrong**\n\n| file | instead |\n|---|---|\n| `a_file` | later |\n\n"
        "We decided to cap waits in `wait_for`, because a proxy sends 86400. Shall I do `aio_client` next?",
        "ok",
    )
    assert "decided to cap waits" in shown
    assert [one for one in ("What was wrong", "a_file` |", "Shall I") if one in shown] == []


@pytest.mark.parametrize("saying", SAYINGS)
def test_t4_what_an_answer_says_of_a_named_thing_is_carried_whatever_its_words(saying):
    """truth.md T4: after eleven digests 22 to 61 % of the decisions stood in view; the others had no known word."""
    said = [saying.format(f"part_{letter}{letter}") for letter in "abcdefghijk"]
    shown = ""
    for sentence in said:
        shown = told(f"{sentence}.", "ok", previous=shown)
    assert [sentence for sentence in said if sentence not in shown] == []
    assert shown.count(said[0]) == 1


def test_t4_a_reason_stays_with_what_it_is_the_reason_of():
    shown = told("I chose polling for `feed_reader`. The webhook drops events. Then I ran the tests for feed_two.")
    assert "- I chose polling for `feed_reader`. The webhook drops events.\n" in shown


TWO_SENTENCES = (
    "{0} was measured again. {1} is the faster one",
    "{0} sehe ich inzwischen anders. {1} passt besser",
    "{0}を見直しました。{1}の方が合っています",
    "{0} 重新看过了。{1} 更合适",
)


@pytest.mark.parametrize("saying", TWO_SENTENCES)
def test_t4_a_thought_in_two_sentences_stays_one_through_every_digest(saying):
    """Found at 16k: of a reversal in two sentences each half was kept in a place of its own, or one was lost."""
    said = [saying.format(f"old_{letter}{letter}", f"new_{letter}{letter}") for letter in "abcdefgh"]
    shown = ""
    for thought in said:
        shown = told(f"{thought}.", "ok", previous=shown)
    assert [thought for thought in said if thought not in shown] == []


def test_t4_what_stands_behind_an_announcement_is_not_taken_for_a_part_of_it():
    made = History()
    made.user("look at the parser")
    made.step("x", arguments='{"path": "src/parse.py"}')
    texts = (TextPart(text="Reading src/parse.py. The lock of feed_reader is its own."),)
    made.path[-2] = msgspec.structs.replace(made.path[-2], parts=(*texts, *made.path[-2].parts))
    assert "The lock of feed_reader is its own." in digest_entries(made.path[1:], SessionData(), "", 1_000)


def test_t4_a_later_sentence_replaces_an_earlier_one_of_the_same_thing_only():
    before = told("I chose polling for feed_reader because the webhook drops events.")
    other = told("I chose polling for mail_reader because the webhook drops events.", previous=before)
    assert "polling for feed_reader" in other
    assert "polling for mail_reader" in other
    back = told("I was wrong about feed_reader, it uses the webhook now.", previous=other)
    assert "polling for feed_reader" not in back
    assert "polling for mail_reader" in back


def test_t4_what_only_announces_the_calls_that_go_with_it_is_left_out():
    made = History()
    made.user("look at the parser")
    made.step("x", arguments='{"path": "src/parse.py"}')
    announced = made.path[-2]
    texts = (TextPart(text="I'll read src/parse.py next. I'll take care of src/lexer.py later."),)
    made.path[-2] = msgspec.structs.replace(announced, parts=(*texts, *announced.parts))
    shown = digest_entries(made.path[1:], SessionData(), "", 1_000)
    steps = sections_of(shown)["Next Steps"]
    assert "src/lexer.py" in steps
    assert "src/parse.py" not in steps


KEY = "Aq7Xw1Zr9bT3/kLm2PzQ8vY+sD4fG6hJ0cN5xB1aR7eU3iO9tW2yM8pK4jH6gF1d"


@pytest.mark.parametrize(
    ("output", "shown"),
    [
        (
            "lint\n\nFound 1 error.\nsrc/aio.py:3:1 F401\n[Exit code 1 · /srv]",
            "lint\nFound 1 error.\nsrc/aio.py:3:1 F401",
        ),
        ("one\ntwo\nthree\nfour", "two\nthree\nfour"),
        ("aus", "aus"),
        ("error: a\nerror: b\nerror: c\nerror: d\ndone", "error: b\nerror: c\nerror: d"),
        ("", ""),
        ("\x1b[31mlib/a.ts\x1b[0m:\x1b[33m3\x1b[0m - \x1b[31merror\x1b[0m TS1109", "lib/a.ts:3 - error TS1109"),
        ("[Exit code 1 · /srv]", ""),
        ("Exit code 2\nls: no such file", "ls: no such file"),
        ("Command exited with code 1", ""),
        ("open: EACCES\nevery entry\nexamples entered\nend", "open: EACCES\nexamples entered\nend"),
        ("cp: a.json: No such file\nevery entry\nthe next\nend", "cp: a.json: No such file\nthe next\nend"),
        (
            "Error: no rate\n> 138 | throw new Error(text)\n    ^^^^\n"
            "  at read (lib/rate.ts:138:15)\n  at runError (lib/rate.ts:24:7)",
            "Error: no rate",
        ),
        ("at read (lib/rate.ts:138:15)", "at read (lib/rate.ts:138:15)"),
        (f"gpg: no valid data\n{KEY}\nTotal: 0", "gpg: no valid data\nTotal: 0"),
    ],
)
def test_an_open_error_has_three_lines_that_tell_most(output, shown):
    result = ToolResultMessage(call_id="c", name="bash", parts=(TextPart(text=output),), is_error=True)
    assert error_text(result) == shown


def test_what_introduces_lines_or_calls_is_no_statement():
    shown = told(
        "Here is what goes wrong in `read_rate`:\n\n- the lock of `rate_lock` is never freed\n\n"
        "修改 `rate_cache` 的过期时间：",
        "I decided on polling for `feed_reader`:",
        "ok",
    )
    assert "the lock of `rate_lock`" in shown
    assert "polling for `feed_reader`" in shown
    assert [one for one in ("goes wrong", "过期时间") if one in shown] == []


@pytest.mark.parametrize(
    "beginning", ["Let me check", "Good, now let's look at", "好的，让我检查一下", "Lass mich nachsehen in"]
)
def test_what_begins_as_an_announcement_is_one_where_calls_go_with_it(beginning):
    made = History()
    made.user("look at the rates")
    made.step("x", arguments='{"path": "lib/other.ts"}')
    texts = (
        TextPart(
            text=f"{beginning} `rate_cache` 42. The lock of feed_reader is its own. Let me actually test that theory."
        ),
    )
    made.path[-2] = msgspec.structs.replace(made.path[-2], parts=(*texts, *made.path[-2].parts))
    made.answer("ok")
    shown = digest_entries(made.path[1:], SessionData(), "", 1_000)
    assert "feed_reader is its own" in shown
    assert beginning not in shown
    assert "theory" not in shown
    assert beginning in told(f"{beginning} `rate_cache` 42.", "ok")


@pytest.mark.parametrize("saying", ["Let's keep rate_cache synchronous", "Let me leave rate_cache as it is"])
def test_what_is_settled_in_the_words_of_an_announcement_stays(saying):
    made = History()
    made.user("look at the rates")
    made.step("x", arguments='{"path": "lib/other.ts"}')
    made.path[-2] = msgspec.structs.replace(
        made.path[-2], parts=(TextPart(text=f"{saying}, the callers are scripts."), *made.path[-2].parts)
    )
    made.answer("ok")
    assert saying in digest_entries(made.path[1:], SessionData(), "", 1_000)


def test_plain_words_with_hyphens_are_no_reason_to_keep_a_sentence():
    shown = told(
        "- A step-by-step, error-free guide\n- Auto-compaction logic\n- feed-reader-2 is slow\n- see user-list.ts",
        "ok",
    )
    assert "feed-reader-2" in shown
    assert "user-list.ts" in shown
    assert [one for one in ("step-by-step", "Auto-compaction") if one in shown] == []


def test_next_is_a_promise_where_it_is_said_of_work():
    steps = sections_of(
        told("It begins the next session when `one_timer` ends. Next I fix `two_timer`. Then `third_timer` is up next.")
    )["Next Steps"]
    assert "two_timer" in steps
    assert "third_timer" in steps
    assert "one_timer" not in steps


@pytest.mark.parametrize("short", ["e.g.", "i.e.", "z.B.", "vs."])
def test_a_sentence_does_not_end_behind_an_abbreviation(short):
    said = f"The server of `serve_all` ({short} `http.server`) is enough."
    assert f"- Said: {said}" in told(f"It is done. {said}", "ok")


def test_marks_of_emphasis_are_not_kept():
    shown = told("- **`lib/a.ts:55`** - the check\n- **Place:** `lib/b.ts`\n- **Say** `f(**more)` in c_file", "ok")
    assert "- Said: `lib/a.ts:55` - the check" in shown
    assert "- Said: Place: `lib/b.ts`" in shown
    assert "Say `f(**more)` in c_file" in shown


@pytest.mark.parametrize(
    ("latest", "goal"),
    [
        ("go on", "mend the parser of the feed"),
        ("/some-long-named-command", "mend the parser of the feed"),
        ("好的，继续", "mend the parser of the feed"),
        ("请你移除重复的实现并检查", "请你移除重复的实现并检查"),
        ("/review the parser of mail", "/review the parser of mail"),
    ],
)
def test_the_goal_is_the_latest_text_that_states_one(latest, goal):
    made = History()
    made.user("mend the parser of the feed")
    made.answer("ok")
    made.user(latest)
    shown = sections_of(digest_entries(made.path[1:], SessionData(), "", 1_000))["Goal"]
    assert shown == f"- Latest request: {goal}"


def called(*calls: tuple[str, str, str], previous: str = "") -> dict[str, str]:
    """The sections of a digest of calls: tool, arguments, and the words of the failure (empty: it did not fail)."""
    made = History()
    made.user("next")
    for name, arguments, failure in calls:
        made.step(failure or "ok", arguments=arguments)
        asked = msgspec.structs.replace(made.path[-2].tool_calls[0], name=name)
        made.path[-2] = msgspec.structs.replace(made.path[-2], parts=(asked,))
        made.path[-1] = msgspec.structs.replace(made.path[-1], name=name, is_error=bool(failure))
    return sections_of(digest_entries(made.path[1:], SessionData(), previous, 2_000))


EDIT = '{{"file_path": "a.ts", "old_string": "{}", "new_string": "{}"}}'
RUN = '{{"command": "make {}", "description": "{}"}}'


@pytest.mark.parametrize(
    "calls",
    [
        [("Edit", EDIT.format("one", "two"), "String not found"), ("Edit", EDIT.format("on", "to"), "")],
        [("Bash", RUN.format("all", "Build"), "Error: no rule"), ("Bash", RUN.format("all", "Build again"), "")],
        [("shell", '{"command": ["make"]}', "Error: no rule"), ("shell", '{"command": ["make"], "timeout": 9}', "")],
        [("grep", '{"pattern": "rate", "path": "src"}', "Exit code 1")],
    ],
)
def test_a_failure_is_answered_by_the_next_attempt_and_one_without_words_is_none(calls):
    assert "failed" not in called(*calls).get("Progress", "")


def test_a_failure_is_not_answered_by_a_call_that_is_about_something_else():
    shown = called(
        ("Bash", RUN.format("all", "Build"), "Error: no rule"),
        ("Bash", RUN.format("docs", "Build"), ""),
        ("Edit", EDIT.format("one", "two"), "String not found"),
        ("Edit", EDIT.replace("a.ts", "b.ts").format("one", "two"), ""),
        ("Bash", RUN.format("all", "Build"), "Exit code 2"),
    )["Progress"]
    assert "Bash: make all failed: Error: no rule" in shown
    assert "Edit: a.ts failed: String not found" in shown


def test_a_call_that_the_user_stopped_answers_no_failure():
    made = history()
    stopped = made.step("stopped", arguments='{"command": "pytest -q"}')
    asked = msgspec.structs.replace(stopped[0].tool_calls[0], name="bash")
    made.path[-2] = msgspec.structs.replace(made.path[-2], parts=(asked,))
    made.path[-1] = msgspec.structs.replace(made.path[-1], name="bash", is_error=True, interrupted=True)
    assert "ValueError: bad token" in digest_entries(made.path[1:], SessionData(), "", 2_000)


def test_the_last_calls_are_named_once_each_and_without_those_that_failed():
    patch = "*** Begin Patch\\n*** Update File: lib/a.ts\\n@@\\n-one\\n+two\\n*** End Patch"
    done = called(
        ("read", '{"path": "a.py"}', ""),
        ("read", '{"path": "b.py"}', ""),
        ("read", '{"path": "a.py"}', ""),
        ("edit", '{"path": "a.py", "edits": "x"}', "not found"),
        ("apply_patch", f'{{"input": "{patch}"}}', ""),
        ("shell", '{"command": ["make", "test"]}', ""),
        ("shell", '{"command": ["bash", "-lc", "ls lib"]}', ""),
        ("task", '{"description": "look for rates", "prompt": "a long text"}', ""),
    )["Progress"]
    assert [line for line in done.splitlines() if line.startswith("- Call: ")] == [
        "- Call: read: b.py",
        "- Call: read: a.py",
        "- Call: apply_patch: lib/a.ts",
        "- Call: shell: make test",
        "- Call: shell: ls lib",
        "- Call: task: look for rates",
    ]


def test_code_in_an_answer_is_not_what_it_says():
    shown = told(
        "Changed it:\n\n```python\nvalue_one = load(value_two)  # TODO later\n```\n\nRun `make_all` now.", "ok"
    )
    assert "make_all" in shown
    assert "load(" not in shown


def test_t4_headings_of_a_models_own_are_carried():
    notes = "## Ziel\nden Parser richten\n\n## Offene Fragen\n- wem gehört der Port?\n\n## Next Steps\n1. testen"
    shown = told("ok", previous=notes)
    assert "den Parser richten" in shown
    assert "wem gehört der Port?" in told("fine", previous=shown)


@given(
    st.lists(
        st.lists(
            st.sampled_from(["I decided on ", "I'll do ", "see ", "Ich lasse ", "wrong: "]).flatmap(
                lambda start: st.from_regex(r"[a-z]{2,8}_[a-z]{2,8}", fullmatch=True).map(lambda name: start + name)
            )
            | st.text(max_size=200),
            max_size=6,
        ).map(". ".join),
        max_size=12,
    ),
    st.integers(120, 3_000),
)
def test_t4_a_digest_keeps_to_its_room_and_carried_twice_it_is_the_same(answers, limit):
    once = told(*answers, previous=told(*answers, limit=limit), limit=limit)
    assert estimate_text(once) <= limit
    assert once.startswith(MARK)
    assert told("", previous=once, limit=limit).count("## ") <= once.count("## ") + 1


def test_t4_where_there_is_little_room_the_calls_go_before_what_was_decided():
    made = History()
    for letter in "abcdefghijkl":
        made.user("next")
        made.step("x", arguments=f'{{"path": "src/module_{letter}/very/long/path/to/a/file.py"}}')
        made.answer(f"I chose polling for reader_{2 * letter}. I'll test writer_{2 * letter} later.")
    shown = digest_entries(made.path[1:], TODO, "", 320)
    assert shown.count("I chose polling") >= 5
    assert shown.count("later") >= 4
    assert "- Call:" not in shown


def rounds_of(*rounds: History, limit: int = 2_000) -> list[str]:
    """The digests of some parts of a conversation, each made upon the one before."""
    shown: list[str] = []
    for made in rounds:
        shown.append(digest_entries(made.path[1:], SessionData(), shown[-1] if shown else "", limit))
    return shown


def part(command: str, output: str, *, is_error: bool = False) -> History:
    made = History()
    made.user("and now the next part of it")
    made.step(output, arguments=f'{{"command": "{command}"}}')
    made.path[-1] = msgspec.structs.replace(made.path[-1], is_error=is_error)
    made.answer("fine")
    return made


def test_t4_exact_names_of_results_stay_through_digests():
    """truth.md T4 (a): 0 % of the identifiers from the first round on; only answers and arguments were looked at."""
    first, *_, last = rounds_of(
        part("cat run.log", f"{words(200)}\nlistening on 127.0.0.1:23484, see ERR_20941 and OPS-3493"),
        *(part("ls", words(50)) for _ in range(4)),
    )
    for name in ("127.0.0.1:23484", "ERR_20941", "OPS-3493"):
        assert name in sections_of(first)["Critical Context"]
        assert last.count(name) == 1


def test_t4_an_open_error_stays_through_digests_until_the_same_call_succeeds():
    """truth.md T4 (b): errors were gone in the second round."""
    failed = part("make check", "TimeoutError: the pool was not ready within 2711 ms", is_error=True)
    other = part("make docs", "error: no such file docs/port.md", is_error=True)
    shown = rounds_of(failed, other, *(part("ls", "a.py") for _ in range(2)), part("make check", "all passed"))
    assert ["error: no such file docs/port.md" in one for one in shown] == [False] + [True] * 4
    assert ["TimeoutError: the pool was not ready within 2711 ms" in one for one in shown] == [True] * 4 + [False]
    assert "make check" in sections_of(shown[3])["Progress"].partition("### Blocked")[2]


def test_t4_at_most_six_calls_are_named_and_only_those_of_the_last_round():
    """truth.md T4 (e): twelve lines of calls a round, on top of the old ones."""
    first, second = History(), History()
    for made, name in ((first, "old"), (second, "new")):
        made.user("and now the next part of it")
        for number in range(9):
            made.step("ok", arguments=f'{{"command": "{name} {number}"}}')
    shown = rounds_of(first, second)
    calls = [[line for line in one.splitlines() if line.startswith(CALL)] for one in shown]
    assert calls == [[f"{CALL}read: {name} {number}" for number in range(3, 9)] for name in ("old", "new")]
    third = History()
    third.user("and now the next part of it")
    third.answer("fine")
    assert CALL not in rounds_of(first, third)[-1]


def test_t4_a_file_has_one_line_however_often_it_was_used():
    made = history()
    for place, entry in enumerate(made.path):
        if isinstance(entry, ToolResultMessage):
            used = (FileUse(path="src/parse.py", op="edit"), FileUse(path="src/lex.py", op="read"))
            made.path[place] = msgspec.structs.replace(entry, files=used)
    shown = digest(made.planned(), TODO)
    assert shown.endswith(
        "<read-files>\nsrc/lex.py\n</read-files>\n\n<modified-files>\nsrc/parse.py\n</modified-files>"
    )
    assert (shown.count("src/lex.py"), shown.count("src/parse.py")) == (1, 1)


def test_t4_rules_of_the_user_stand_in_the_view_beside_every_digest():
    """truth.md T4 (d): nothing but an earlier model's summary was taken for a rule."""
    made = History()
    made.user("Never push to the main branch of this project.")
    for number in range(4):
        for _ in range(6):
            made.user(f"and now part {number} of it")
            made.step(words(1_500))
            made.answer("fine")
        plan = made.planned()
        proposal, flaw = gated(propose_digest(plan, TODO, Prompts()), plan)
        assert flaw == ""
        made.add(proposal.to_entry("threshold"))
        assert str(made.view()).count("Never push to the main branch") == 1
