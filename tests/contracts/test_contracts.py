"""Every row of the table of contracts over HTTP: what is shown, stored and sent next, the exit code (B2, B3)."""

from __future__ import annotations

import pytest

from tenuto.api.result import RunResult
from tenuto.frontend.result import Ended, describe_result, exit_code
from tenuto.protocol import model
from tenuto.protocol.event import AssistantMessageEvent, NoticeEvent
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.part import text_of
from tests.contracts.table import AFTER, FOLLOWS, PAGE, PROTOCOLS, Row, rows, with_table
from tests.core.harness import agent
from tests.server import Call, Reply, Request

ROWS = [row for protocol in PROTOCOLS for row in rows(protocol)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
async def test_a_contract_holds(tmp_path, monkeypatch, row: Row):
    for name in ("FIRST_DELAY", "FIRST_RATE_DELAY"):
        monkeypatch.setattr(model, name, 0.01)
    follows = FOLLOWS[row.follows]
    asked = 0

    def script(_request: Request):
        nonlocal asked
        asked += 1
        return row.reply if asked == 1 else Reply(AFTER)

    setting = row.setting
    options = {"window": 64_000, "listed_window": 64_000, "check_thinking": True, "refuse": setting.refuse}
    environ = {"TENUTO_REQUEST__RETRIES": "2", **setting.environ}
    model_name = f"{row.protocol}/{setting.model}"
    async with agent(tmp_path, script, model=model_name, options=options, environ=environ) as running:
        settled = await running.ask("What is the answer?")
        requests = [request for request in running.server.requests if not request.refused]
        result = RunResult()
        for event in running.events:
            result.take(event)

        assert exit_code(settled.outcome, settled.refused) == follows.code, settled.error
        assert len(requests) == follows.requests
        assert len(running.server.refusals) == len(setting.refuse)
        if follows.shown:
            assert result.text == follows.shown
        if follows.error:
            assert follows.error in settled.error
        if follows.told:
            assert follows.told in _more(requests)
        if row.follows == "again":
            assert requests[0].raw == requests[1].raw
        elif len(requests) == 2:
            assert requests[1].continues(requests[0]) or row.follows == "begins again" or row.follows == "must speak"
        if row.follows == "checked":
            assert any("check that it is whole" in event.text for event in running.of(NoticeEvent))

        answers = [entry for entry in running.session.path() if isinstance(entry, AssistantMessage)]
        assert len(answers) == len(running.of(AssistantMessageEvent))
        said = row.reply.text if isinstance(row.reply, Reply) else row.reply.reply.text
        if said or follows.kept:
            assert any(said in text_of(answer.parts) for answer in answers) == follows.kept
        calls = [call.id for answer in answers for call in answer.tool_calls]
        results = [entry.call_id for entry in running.session.path() if isinstance(entry, ToolResultMessage)]
        assert calls == results, "every call has one result"
        assert sorted(path.name for path in (tmp_path / "work").iterdir()) == sorted(follows.files)


def _more(requests: list[Request]) -> str:
    """Return the texts of the second request that the first does not have."""
    before = {item.text for item in requests[0].items}
    return "\n".join(item.text for item in requests[1].items if item.text not in before)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("answer", "requests", "words"),
    [
        (Reply("More. ", stop="max_tokens"), 4, "cut off at its output limit"),
        (Reply(stop="max_tokens"), 4, "cut off at its output limit"),
        (next(row.reply for row in rows("anthropic") if row.moment == "a call cut at byte 50"), 7, "in the middle"),
    ],
    ids=["text", "nothing", "call"],
)
async def test_b3_an_answer_that_is_cut_off_again_and_again_ends_as_cut_off(
    tmp_path, protocol, answer, requests, words
):
    if protocol == "gemini" and answer.tool_calls:
        pytest.skip("its calls come whole")
    answer = Reply(answer.text, tool_calls=answer.tool_calls, stop="max_tokens")
    async with agent(tmp_path, lambda _request: answer, model=f"{protocol}/test") as running:
        settled = await running.ask("go")
        assert (settled.outcome, exit_code(settled.outcome, settled.refused)) == ("cut_off", 3)
        assert words in settled.error
        assert len(running.server.requests) == requests


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_an_answer_that_stays_empty_fails(tmp_path, protocol):
    async with agent(tmp_path, lambda _request: Reply(), model=f"{protocol}/test") as running:
        settled = await running.ask("go")
        assert (settled.outcome, exit_code(settled.outcome, settled.refused)) == ("failed", 1)
        assert "answered with nothing" in settled.error
        assert len(running.server.requests) == 3


@pytest.mark.parametrize("protocol", ["openai", "openai-chat"])
async def test_b2_after_a_cut_by_an_unknown_limit_the_next_request_asks_for_more(tmp_path, protocol):
    asked = 0

    def script(_request: Request):
        nonlocal asked
        asked += 1
        return Reply("More words than that", stop="max_tokens") if asked == 1 else Reply(AFTER)

    async with agent(tmp_path, script, model=f"{protocol}/test") as running:
        await running.ask("go")
        first, second = (
            next((value for name, value in request.body.items() if name.startswith("max_")), None)
            for request in running.server.requests
        )
        assert first is None
        assert second == max(256, 4 * running.of(AssistantMessageEvent)[0].message.usage.output)


def test_each_protocol_has_sixty_rows_and_the_page_has_them_all():
    assert all(len(rows(protocol)) >= 60 for protocol in PROTOCOLS), [len(rows(one)) for one in PROTOCOLS]
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "python -m tests.contracts.table writes it"


@pytest.mark.parametrize("protocol", ["anthropic", "openai-chat"])
async def test_an_unknown_reason_passes_over_no_check_and_is_named_in_the_result(tmp_path, protocol):
    """Edits that nothing ran after are told of whatever word the server has for "done"."""
    answers = [Reply(tool_calls=[Call("write", {"path": "a.py", "content": "x = 1\n"})])]
    answers += [Reply("Done.", reason="brand_new_reason"), Reply("Done, unchecked.", reason="brand_new_reason")]
    environ = {"TENUTO_AGENT__FINAL_CHECK": "true"}
    async with agent(tmp_path, answers, model=f"{protocol}/test", environ=environ) as running:
        settled = await running.ask("go")
        result = RunResult()
        for event in running.events:
            result.take(event)
        assert (exit_code(settled.outcome, settled.refused), len(running.server.requests)) == (0, 3)
        described = describe_result(result, Ended())
        assert (described.result, described.stop_reason) == ("Done, unchecked.", "other")


@pytest.mark.parametrize("protocol", ["anthropic", "openai-chat"])
async def test_an_unknown_reason_without_an_answer_fails_and_says_why(tmp_path, protocol):
    answer = Reply(reason="brand_new_reason")
    async with agent(tmp_path, lambda _request: answer, model=f"{protocol}/test") as running:
        settled = await running.ask("go")
        assert exit_code(settled.outcome, settled.refused) == 1
        assert "answered with nothing" in settled.error
