"""A summary is judged (seeds-001-002-004 F8): good ones of many shapes and languages pass, bad ones are named.

The worst was seen with a real model of 135 million parameters: 6,400 tokens were replaced by one repeated sentence.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.summary.judge import expect, find_weakness
from tenuto.compaction.summary.prompts import BRANCH, FIRST, SAME_PREFIX, TURN_PREFIX, UPDATE
from tenuto.compaction.summary.summarise import SummaryError, accept_summary
from tests.compaction.build import SUMMARY, reply

COVERED = 14_000
LENGTH = 3_000


def judge(text: str, instructions: str = FIRST, *, covered: int = COVERED, previous: str = "") -> str:
    fault = find_weakness(text, expect(instructions, covered=covered, length=LENGTH, previous=previous))
    return fault.tell_model() if fault else ""


BODY = {
    "goal": "Make the export of invoices keep the order of their lines, and keep the public functions as they are.",
    "rules": "- Never touch legacy/.\n- No new dependency.\n- Tests run with `pytest -q tests/export`.",
    "done": "- [x] Found the sort in `src/export/rows.py:88`\n- [x] Wrote `test_rows_keep_their_order`, which fails",
    "decision": "- **sort by position**: ids are reused after a deletion",
    "next": "1. Replace the sort in `src/export/rows.py`\n2. Run the export tests\n3. Add a line to the changelog",
    "facts": "- The staging database listens on localhost:5433; error was `KeyError: 'position'` in rows.py",
}


def notes(names: list[str], mark: str = "## {}") -> str:
    """Return notes with these six headings, each written like `mark`."""
    return "\n\n".join(f"{mark.format(name)}\n{body}" for name, body in zip(names, BODY.values(), strict=True))


ENGLISH = ["Goal", "Constraints & Preferences", "Progress", "Key Decisions", "Next Steps", "Critical Context"]
LANGUAGES = {
    "English": ENGLISH,
    "English, other words": ["Goals", "Constraints", "Progress So Far", "Decisions", "Next Step", "Context"],
    "German": ["Ziel", "Vorgaben und Wünsche", "Fortschritt", "Entscheidungen", "Nächste Schritte", "Wichtiges"],
    "French": ["Objectif", "Contraintes et préférences", "Progrès", "Décisions", "Prochaines étapes", "Contexte"],
    "Spanish": ["Objetivo", "Restricciones", "Progreso", "Decisiones clave", "Próximos pasos", "Contexto crítico"],
    "Russian": ["Цель", "Ограничения", "Ход работы", "Решения", "Следующие шаги", "Важное"],
    "Chinese": ["目标", "约束与偏好", "进展", "关键决定", "下一步", "关键背景"],
    "Japanese": ["目標", "制約と好み", "進捗", "重要な決定", "次のステップ", "重要な背景"],
    "Arabic": ["الهدف", "القيود", "التقدم", "القرارات", "الخطوات التالية", "السياق"],
}
MARKS = {
    "as asked": "## {}",
    "top": "# {}",
    "deep": "#### {}",
    "bold": "**{}**",
    "bold colon": "**{}:**",
    "number": "## 1. {}",
}
WHOLE = notes(ENGLISH)
GOOD = {
    **{f"{language}": notes(names) for language, names in LANGUAGES.items()},
    **{f"English, {name}": notes(ENGLISH, mark) for name, mark in MARKS.items()},
    **{f"German, {name}": notes(LANGUAGES["German"], mark) for name, mark in MARKS.items()},
    "English, labels": notes(ENGLISH, "{}:"),
    "the short one of the tests": SUMMARY,
    "a title above": f"# Notes on the session\n\n{WHOLE}",
    "a word before": f"Here are the notes:\n\n{WHOLE}",
    "goal and next steps alone": f"## Goal\n{BODY['goal']}\n\n## Next Steps\n{BODY['next']}",
    "with a code block": f"{WHOLE}\n```sh\n# a comment\npytest -q\n```",
    "a long list of files": WHOLE
    + "".join(f"\n- [x] `src/tenuto/compaction/part_{n}.py`: tests added" for n in range(90)),
    "a long list of steps": WHOLE + "".join(f"\n- [x] step {n} done" for n in range(120)),
    "none said often": notes(ENGLISH).replace(BODY["rules"], "- none").replace(BODY["decision"], "- none"),
    "empty blocks": WHOLE.replace("\n\n## Key", "\n\n### Blocked\n\n## Key"),
    "numbers and hashes": f"{WHOLE}\n- " + ", ".join(f"{n:07x}" for n in range(3_000_000, 3_000_060)),
}
BAD = {
    "one sentence": ("just words without headings", "does not have the headings"),
    "a continuation": ("Ok, I run the tests now.", "does not have the headings"),
    "a long continuation": (
        "Ok, I will look at the export next. The sort in rows.py is wrong, so I replace it and then run the tests. "
        "After that I will add a line to the changelog and look at the importer, which has the same fault. " * 1,
        "do not go on with the work",
    ),
    "an answer to the last message": ("Yes, port 5433 is right: the staging database listens there.", "headings"),
    "code instead of notes": ("```python\n# Goal\n# Next Steps\nprint(1)\n```", "headings"),
    "a call as text": ('<tool_call>{"name": "bash", "arguments": {"command": "pytest -q"}}</tool_call>', "headings"),
    "German continuation": ("Gut, ich starte jetzt die Tests und sehe mir danach den Export an.", "headings"),
    "Chinese continuation": ("好的，我现在运行测试，然后查看导出模块。", "headings"),
    "headings alone": ("\n\n".join(f"## {name}" for name in ENGLISH), "next to nothing"),
    "headings with a word": ("\n\n".join(f"## {name}\n- ok" for name in ENGLISH), "next to nothing"),
    "one heading": (f"## Goal\n{BODY['goal']}", "## Next Steps"),
    "without a goal": (notes(ENGLISH).replace("## Goal", "## Progress"), "## Goal"),
    "one section in another language": (f"## Ziel\n{BODY['goal']}", "headings"),
    "the template": (FIRST[FIRST.index("## Goal") : FIRST.index("Write paths")], "what the headings are for"),
    "one sentence for ever": ("The tests are run by the agent and they are green. " * 120, "repeats itself"),
    "one sentence under headings": (
        notes(ENGLISH).replace(BODY["facts"], "- The agent ran the tests and they failed.\n" * 60),
        "repeats itself",
    ),
    "a loop without sentences": (f"{WHOLE}\n" + "and then the test and then the code " * 60, "repeats itself"),
    "a loop in Chinese": (notes(LANGUAGES["Chinese"]) + "\n用户想要运行测试然后查看结果。" * 60, "repeats itself"),
    "a loop in Chinese without marks": (notes(LANGUAGES["Chinese"]) + "\n" + "测试通过然后继续" * 80, "repeats itself"),
    "mostly something before": (
        "I had a look at the export and at the importer and at what else there is. " + BODY["goal"] * 4
        + "\n\n## Ziel\nx y z\n\n## Stand\nx y z\n\n## Danach\nx y z",
        "before the first heading",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize(
    "instructions", [FIRST, UPDATE, SAME_PREFIX, BRANCH], ids=["first", "update", "same", "branch"]
)
def test_f8_good_notes_pass_in_every_shape_and_language(name, instructions):
    assert judge(GOOD[name], instructions) == ""


@pytest.mark.parametrize("name", BAD)
def test_f8_what_is_no_summary_is_named_for_what_it_is(name):
    text, words = BAD[name]
    assert words in judge(text)


def test_f8_the_floor_follows_what_is_replaced_and_never_the_wish_for_brevity():
    short = "## Goal\nFix the sort of the export.\n\n## Next Steps\n1. Run the tests."
    assert judge(short, covered=5_000) == ""
    assert "next to nothing" in judge(short, covered=60_000)
    assert find_weakness(short, expect(FIRST, covered=60_000, length=40)) is None, "there is no room for more"


def test_f8_an_update_does_not_lose_the_notes_before():
    before = WHOLE + "".join(f"\n- fact {n}: the value of setting number {n} is {n * 7}" for n in range(80))
    assert "next to nothing" in judge("## Goal\nFix it.\n\n## Next Steps\n1. Test it.", UPDATE, previous=before)
    assert judge(WHOLE, UPDATE, previous=before) == ""


def test_notes_on_the_first_part_of_a_turn_are_judged_by_their_own_headings():
    good = "## Original Request\nfix it\n\n## Progress So Far\n- read rows.py\n\n## Context Needed to Continue\n- none"
    assert judge(good, TURN_PREFIX, covered=3_000) == ""
    assert "## Progress So Far" in judge(good.replace("## Progress So Far", "## Original Request"), TURN_PREFIX)
    assert "headings" in judge("Ok, I go on with rows.py.", TURN_PREFIX)


OWN = "Write notes.\n\n## Where we are\n[the state]\n\n## What is left\n[the rest]\n\n## Watch out\n[traps]"


def test_prompts_of_the_users_own_are_judged_by_the_headings_that_they_name():
    good = f"## Where we are\n{BODY['done']}\n\n## What is left\n{BODY['next']}\n\n## Watch out\n{BODY['facts']}"
    assert judge(good, OWN) == ""
    assert judge(good.replace("## Watch out", ""), OWN) == "", "half of them will do"
    assert "## Where we are" in judge("Ok, I run the tests now.", OWN)
    sentence = "The sort of the export was found in rows.py and a failing test was written; the fix is next."
    assert judge(sentence, "Say in one sentence where we are.", covered=200_000) == ""
    assert "next to nothing" in judge("ok then", "Say in one sentence where we are.")
    assert "repeats itself" in judge(f"{sentence} " * 5, "Say in one sentence where we are.")


@given(st.text(), st.integers(0, 200_000), st.integers(0, 4_000))
def test_whatever_the_text_it_is_judged_in_one_line(text, covered, length):
    fault = find_weakness(text, expect(FIRST, covered=covered, length=length))
    assert fault is None or "\n" not in fault.tell_model()


@given(st.permutations(list(BODY)), st.integers(1, 4))
def test_good_notes_stay_good_in_any_order_of_lines(order, depth):
    names = dict(zip(BODY, ENGLISH, strict=True))
    assert judge("\n".join(f"{'#' * depth} {names[key]}\n{BODY[key]}" for key in order)) == ""


async def test_f8_one_retry_names_the_fault_and_then_it_is_an_error():
    asked: list[str] = []

    async def ask(feedback: str):
        asked.append(feedback)
        return reply("Ok, I run the tests now.")

    expected = expect(FIRST, covered=COVERED, length=LENGTH)
    with pytest.raises(SummaryError, match="headings that were asked for"):
        await accept_summary(ask, length=LENGTH, replaced=COVERED, expected=expected)
    assert len(asked) == 2
    assert "do not go on with the work" in asked[1]
