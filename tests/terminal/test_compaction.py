"""Compaction as a user sees it: asked for, automatic, cancelled, in the middle of a task, and typing meanwhile."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from tests.core.compacting import is_in_place
from tests.core.harness import BESIDE
from tests.server import Call, Hang, HttpError, Reply, Request
from tests.server.reply import AnyReply
from tests.terminal.conftest import MODEL, Workplace, said
from tests.terminal.screen import Screen

pytestmark = pytest.mark.terminal

SUMMARY = """## Goal
Count the numbers of the house.

## Constraints & Preferences
- none

## Progress
### Done
- [x] counted some

### In Progress
- [ ] the rest

### Blocked

## Key Decisions
- **small steps**: easier to check

## Next Steps
1. go on

## Critical Context
- what was learned on the way: the first tests were slow because of the large files
- the others are quick, and nobody else works on this part at the moment
- so nothing has to be agreed with others before it is changed, and the work can go on at once"""
WINDOW = 18_000
DONE = re.compile(r"Compacted · ~?[\d.]+k → ~?[\d.]+k tokens")
Script = Callable[[Request], AnyReply]


def is_summary_request(request: Request) -> bool:
    return not request.body.get("tools") or is_in_place(request)


def counting(summary: Callable[[], AnyReply]) -> Script:
    """Each prompt that begins with `count` runs a command with a long output; `summary` answers summary requests."""

    def script(request: Request) -> AnyReply:
        if is_summary_request(request):
            return summary()
        wants = said(request).startswith("count")
        if wants and not any(item.kind == "result" for item in request.turn):
            return Reply("I count.", tool_calls=[Call("bash", {"command": "seq 10000 11800"})])
        return Reply(f"Answer to {said(request)}.")

    return script


def at_once() -> AnyReply:
    return Reply(SUMMARY)


def slowly() -> AnyReply:
    return Reply(SUMMARY, delay=0.3, delay_per_event=0.05, chunk_size=24)


def hanging() -> AnyReply:
    return Hang()


def begin(place: Workplace, script: Script, rows: int = 40, **options: int) -> Screen:
    place.serve(script, **{"window": WINDOW, **options})
    return place.start("--mode", "auto", columns=100, rows=rows)


def ask(screen: Screen, text: str) -> str:
    screen.submit(text)
    return screen.wait_settled(f"Answer to {text}.")


def fill(screen: Screen) -> None:
    """Ask until there is enough to compact, but not so much that it happens by itself."""
    for prompt in ("hello", "count 1", "count 2", "count 3"):
        ask(screen, prompt)


def summary_requests(place: Workplace) -> list[Request]:
    assert place.server is not None
    return [request for request in place.server.requests if is_summary_request(request)]


def test_compact_shows_what_it_does_and_the_next_request_is_smaller(place: Workplace) -> None:
    screen = begin(place, counting(slowly), rows=60)
    fill(screen)
    assert place.server is not None
    before = place.server.requests[-1].tokens
    screen.submit("/compact")
    screen.wait_until(lambda shown: "Compacting · summarising" in shown and "esc to cancel" in shown, "the spinner")
    shown = screen.wait_settled("Compacted ·")
    assert DONE.search(shown)
    assert "manual" in shown
    assert "Answer to count 3." in shown, "the transcript stays"
    assert "Count the numbers of the house" not in shown, "the summary is folded"
    screen.keys("C-o")
    screen.wait_for("Count the numbers of the house")
    screen.keys("C-o")
    screen.wait_gone("Count the numbers of the house")
    ask(screen, "and now?")
    after = place.server.requests[-1]
    assert after.tokens < before / 1.5
    assert "Count the numbers of the house" in after.raw.decode()
    assert not place.server.refusals


def test_the_focus_of_compact_reaches_the_summariser(place: Workplace) -> None:
    screen = begin(place, counting(at_once))
    fill(screen)
    screen.submit("/compact keep the house numbers")
    screen.wait_settled("Compacted ·")
    assert "Additional focus: keep the house numbers" in summary_requests(place)[0].items[-1].text


def test_esc_cancels_a_compaction_and_changes_nothing(place: Workplace) -> None:
    screen = begin(place, counting(hanging))
    fill(screen)
    before = place.log
    screen.submit("/compact")
    screen.wait_for("Compacting")
    screen.wait_until(lambda _: summary_requests(place), "the summary request")
    screen.keys("Escape")
    screen.wait_settled("Compaction cancelled, nothing changed")
    assert place.log == before
    ask(screen, "still there?")


def talking(summary: Callable[[], AnyReply]) -> Script:
    """Every answer is long, no tool runs: it is a prompt that goes over the trigger, never a step."""

    def script(request: Request) -> AnyReply:
        return summary() if is_summary_request(request) else Reply("because " * 450 + f"\n\nAnswer to {said(request)}.")

    return script


def talk_until_summary(screen: Screen, place: Workplace) -> str:
    """Ask until a summary is asked for; return the prompt that was about to be sent."""
    for number in range(1, 20):
        prompt = f"question {number}"
        screen.submit(prompt)
        screen.wait_until(
            lambda shown, prompt=prompt: summary_requests(place) or f"Answer to {prompt}." in shown, "an answer"
        )
        if summary_requests(place):
            return prompt
    raise AssertionError("never over the trigger")


def test_a_prompt_over_the_trigger_compacts_first_and_is_sent_once(place: Workplace) -> None:
    screen = begin(place, talking(at_once), rows=90)
    prompt = talk_until_summary(screen, place)
    shown = screen.wait_settled(f"Answer to {prompt}.", "the context was nearly full")
    assert DONE.search(shown)
    assert shown.count(f"▌ {prompt}") == 1
    assert shown.index("Compacted ·") < shown.index(f"Answer to {prompt}.")
    ask(screen, "and on")
    assert place.server is not None
    sent = [said(request) for request in place.server.requests if not is_summary_request(request)]
    assert sent.count(prompt) == 1
    assert not place.server.refusals


def test_esc_in_the_compaction_before_a_prompt_gives_the_prompt_back(place: Workplace) -> None:
    screen = begin(place, talking(hanging), rows=90)
    prompt = talk_until_summary(screen, place)
    screen.wait_for("Compacting")
    screen.keys("Escape")
    screen.wait_until(
        lambda shown: "Compaction cancelled, nothing changed" in shown and f"❯ {prompt}" in shown,
        "the prompt back in the editor",
        timeout=5.0,
    )
    assert place.server is not None
    assert prompt not in [said(request) for request in place.server.requests if not is_summary_request(request)]


def test_r043_what_is_typed_during_a_compaction_is_queued_and_sent_afterwards(place: Workplace) -> None:
    screen = begin(place, counting(slowly))
    fill(screen)
    screen.submit("/compact")
    screen.wait_for("Compacting")
    screen.submit("typed meanwhile")
    screen.wait_for("1 queued")
    shown = screen.wait_settled("Compacted ·", "Answer to typed meanwhile.")
    assert "queued" not in shown
    assert shown.index("Compacted ·") < shown.index("▌ typed meanwhile")
    assert shown.count("▌ typed meanwhile") == 1


def test_an_overflow_in_the_middle_of_a_task_is_compacted_and_the_task_ends_by_itself(place: Workplace) -> None:
    steps, limit = 6, 12_000
    refused: list[int] = []

    def script(request: Request) -> AnyReply:
        if is_summary_request(request):
            return Reply(SUMMARY)
        if request.tokens > limit:
            refused.append(request.index)
            limits = f"This model's maximum context length is {limit} tokens. "
            text = f"{limits}However, your messages resulted in {request.tokens} tokens."
            return HttpError(400, text)
        sent = request.raw.decode()
        number = max((number for number in range(1, steps + 1) if f"step {number} of" in sent), default=0)
        if number >= steps:
            return Reply("The task is done.")
        call = Call("bash", {"command": "seq 10000 12500"})
        return Reply(f"This is step {number + 1} of {steps}.", tool_calls=[call])

    # The list says more than there is: the refusal tells.
    screen = begin(place, script, rows=90, window=200_000)
    screen.submit("work through it")
    shown = screen.wait_settled("The task is done.")
    assert refused
    assert "the context was over full" in shown
    assert DONE.search(shown)
    assert "✗" not in shown
    screen.wait_until(lambda shown: "/12k " in shown.split("\n")[-1], "the real window, which is known now")
    screen.submit("once more")
    screen.wait_until(lambda shown: shown.count("The task is done.") == 2, "the next answer")


def test_a_long_task_takes_over_a_summary_that_was_written_beside_it(place: Workplace) -> None:
    """What users have by default: the summary is made while the task goes on, and told when it is ready."""
    steps = 18

    def script(request: Request) -> AnyReply:
        if is_summary_request(request):
            return Reply(SUMMARY, delay=0.2)
        done = max((number for number in range(1, steps + 1) if f"step {number} of" in request.raw.decode()), default=0)
        if done >= steps:
            return Reply("The task is done.")
        command = f"seq {10_000 + done} {10_400 + done}"  # the same call again and again would be stopped
        return Reply(f"This is step {done + 1} of {steps}.", tool_calls=[Call("bash", {"command": command})])

    place.serve(script, window=WINDOW)
    screen = place.open(100, 200, **BESIDE)
    screen.start("--model", MODEL, "--mode", "auto")
    screen.wait_for(MODEL)
    screen.submit("work through it")
    shown = screen.wait_settled("The task is done.")
    assert "ready for the next compaction" in shown
    (block,) = [line for line in shown.split("\n") if DONE.search(line)]
    assert "summarised ahead of time" in block
