"""What extensions supply and add to a compaction, from a file to the request and the log (R-061)."""

from __future__ import annotations

import pytest

from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import text_of
from tests.core.compacting import (
    check_requests,
    compact,
    compactions,
    fill,
    reads,
    summary_requests,
    talk,
    write_big_file,
)
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.extension import witness
from tests.extension.extending import SUPPLY, WINDOW, about_extensions, before, extend
from tests.server import HttpError, ScriptedServer
from tests.session.build import check_pairs

# --- supply ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_supplied_compaction_is_used_without_a_model_and_kept_over_a_restart(tmp_path, protocol):
    extend(tmp_path, SUPPLY)
    write_big_file(tmp_path)
    async with ScriptedServer(reads(1), **WINDOW) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test") as running:
            await running.ask("read")
            await fill(running, 4, 900)
            await compact(running)
            (entry,) = compactions(running)
            assert (entry.from_extension, entry.rung) == ("mine", "extension")
            assert entry.first_kept_index == witness.of("session_before_compact")[0].preparation.first_kept_index
            assert entry.summary.startswith("## Goal\nSUPPLIED-NONCE\n\n<read-files>\n")
            assert entry.details.extension == {"topics": ["a", "b"], "turns": 3}
            assert entry.details.read_files[0].endswith("big.txt")
            assert 0 < entry.tokens_after < entry.tokens_before
            assert not summary_requests(server)
            await running.ask("and now?")
            assert "SUPPLIED-NONCE" in server.requests[-1].raw.decode()
            check_pairs(running.session.get_llm_history())
            view = list(running.session.get_llm_history())
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            assert list(running.session.get_llm_history()) == view
            assert compactions(running)[0] == entry
            await fill(running, 4, 900)
            await compact(running)
            assert "SUPPLIED-NONCE" in witness.of("session_before_compact")[-1].preparation.previous_summary


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_another_place_for_the_cut_is_honoured(tmp_path, protocol):
    extend(
        tmp_path,
        before("""
        users = [entry for entry in event.branch_entries if entry.__struct_config__.tag == "user"]
        return {"compaction": {"summary": "short", "first_kept_index": users[2].seq}}
"""),
    )
    async with agent(tmp_path, talk(), model=f"{protocol}/test", options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.from_extension == "mine"
        await running.ask("and now?")
        texts = [text_of(m.parts) for m in running.session.get_llm_history() if isinstance(m, UserMessage)]
        assert [text.split()[1] for text in texts[:4]] == ["2", "3", "4", "5"]
        check_requests(running.server, 32_000)


BAD = {
    "a seq that is no entry": ('{"summary": "s", "first_kept_index": 99999}', "can be cut"),
    "the beginning": ('{"summary": "s", "first_kept_index": 0}', "no entry"),
    "a negative seq": ('{"summary": "s", "first_kept_index": -4}', "no entry"),
    "an empty summary": ('{"summary": "  ", "first_kept_index": event.preparation.first_kept_index}', "empty"),
    "a summary larger than everything": (
        '{"summary": "long " * 40000, "first_kept_index": event.preparation.first_kept_index}',
        "would not make the context smaller",
    ),
    "what was not said yet": ('{"summary": "s", "first_kept_index": event.branch_entries[-1].seq + 7}', "can be cut"),
}


@pytest.mark.parametrize("kind", BAD)
async def test_a_supplied_compaction_that_does_not_pass_is_named_and_ours_is_made(tmp_path, kind):
    supplied, said = BAD[kind]
    extend(tmp_path, before(f"return {{'compaction': {supplied}}}"))
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.from_extension == ""
        assert "Keep the tests green" in entry.summary
        (notice,) = about_extensions(running)
        assert "The compaction of the extension mine cannot be used" in notice
        assert said in notice


async def test_a_cut_between_a_call_and_its_result_is_refused(tmp_path):
    extend(
        tmp_path,
        before("""
        results = [entry for entry in event.branch_entries if entry.__struct_config__.tag == "tool_result"]
        return {"compaction": {"summary": "s", "first_kept_index": results[0].seq}}
"""),
    )
    write_big_file(tmp_path)
    async with agent(tmp_path, reads(1), options=WINDOW) as running:
        await running.ask("read")
        await fill(running, 4, 900)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.from_extension == ""
        assert "can be cut" in about_extensions(running)[0]


async def test_of_several_supplied_compactions_the_last_that_passes_is_used(tmp_path):
    supply = "return {{'compaction': {{'summary': '{}', 'first_kept_index': event.preparation.first_kept_index}}}}"
    extend(tmp_path, before(supply.format("from a")), "a")
    extend(tmp_path, before(supply.format("from b")), "b")
    extend(tmp_path, before("return {'compaction': {'summary': '', 'first_kept_index': 1}}"), "c")
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        assert compactions(running)[0].from_extension == "b"
        assert len(about_extensions(running)) == 1
        assert "extension c" in about_extensions(running)[0]


# --- add ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_added_text_is_in_the_summary_request_and_in_the_view(tmp_path, protocol):
    extend(tmp_path, before("return {'add_focus': 'FOCUS-NONCE', 'add_text': 'TEXT-NONCE'}"), "a")
    extend(tmp_path, before("return {'add_focus': 'and ports'}"), "b")
    async with agent(tmp_path, talk(), model=f"{protocol}/test", options=WINDOW) as running:
        await fill(running)
        await compact(running, "the names")
        asked = summary_requests(running.server)[-1]
        assert "Additional focus: the names\nFOCUS-NONCE\nand ports" in asked.items[-1].text
        assert b"TEXT-NONCE" not in asked.raw
        await running.ask("and now?")
        assert "<extension-notes>\na: TEXT-NONCE\n</extension-notes>" in running.server.requests[-1].items[1].text or (
            b"a: TEXT-NONCE" in running.server.requests[-1].raw
        )
        await fill(running, 5, 600)
        (tmp_path / "home" / "extensions" / "a.py").unlink()
        await compact(running)
        assert compactions(running)[-1].replacement[0].text.count("TEXT-NONCE") == 1


async def test_added_text_stands_beside_a_supplied_summary_and_beside_the_digest(tmp_path):
    extend(tmp_path, before("return {'add_text': 'TEXT-NONCE'}"), "a")
    async with agent(tmp_path, talk(summary=HttpError(400, "no")), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.rung == "digest"
        assert "a: TEXT-NONCE" in entry.replacement[0].text
    extend(tmp_path, SUPPLY, "b")
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.rung == "extension"
        assert "a: TEXT-NONCE" in entry.replacement[0].text
        assert "TEXT-NONCE" not in entry.summary


async def test_too_much_added_text_is_bounded(tmp_path):
    extend(tmp_path, before("return {'add_focus': 'f ' * 200_000, 'add_text': 't ' * 200_000}"))
    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        assert entry.rung == "same prefix"
        assert entry.tokens_after < entry.tokens_before
        check_requests(running.server, 32_000)
