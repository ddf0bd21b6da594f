"""The offline model drives the real tools on real files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import msgspec
import pytest

from tenuto.model.offline import FACTS, OfflineClient
from tenuto.model.offline_rules import answer
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import AssistantMessage, TodoView, ToolResultMessage, UserMessage
from tenuto.protocol.model import Finished, ModelError, ModelRequest, TextDelta
from tenuto.protocol.part import TextPart, ToolCallPart, text_of
from tests.model_offline.driver import Talk


@pytest.fixture
def talk(tmp_path: Path, sample_repo: Path) -> Talk:
    return Talk(tmp_path / "home", sample_repo)


async def test_it_says_what_it_is_what_it_can_do_and_how_to_connect_a_model(talk: Talk) -> None:
    said = await talk.ask("hello")
    for expected in (
        "offline",
        "not a language model",
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "local server",
        "/model",
    ):
        assert expected in said
    assert talk.calls == []
    assert sum(isinstance(part, TextDelta) for part in talk.deltas) > 5


async def test_what_it_does_not_understand_it_says_and_touches_nothing(talk: Talk) -> None:
    said = await talk.ask("rewrite this in Rust, with taste")
    assert "I do not understand" in said
    assert "read" in said
    assert talk.calls == []


async def test_it_looks_around_and_reads_the_readme(talk: Talk) -> None:
    said = await talk.ask("look around")
    assert [call.name for call in talk.calls] == ["glob", "read"]
    for expected in ("6 files", "`shop/` (3 files)", "Layout", "`README.md`: 13 lines"):
        assert expected in said, said


async def test_it_looks_into_a_folder(talk: Talk, sample_repo: Path) -> None:
    (sample_repo / "shop/data").mkdir()
    (sample_repo / "shop/data/[id].csv").write_text("a,b")
    said = await talk.ask("list files in shop")
    assert "4 files in `shop`" in said
    assert "`data/` (1 file)" in said
    (sample_repo / "empty").mkdir()
    assert "no files" in await talk.ask("look around then list files in empty")


async def test_it_reads_a_file_and_names_what_is_in_it(talk: Talk) -> None:
    said = await talk.ask("read shop/price.py")
    for expected in ("`shop/price.py`: 14 lines", "`net`, `total`", '"""What an order costs."""'):
        assert expected in said, said
    said = await talk.ask("read shop/price.py lines 9-10")
    assert "2 lines" in said
    assert "def total" in said
    assert "could not read `nothing.txt`" in await talk.ask("read nothing.txt")


async def test_it_searches(talk: Talk) -> None:
    said = await talk.ask("search for discount in shop")
    assert "in 2 files" in said
    assert "`shop/price.py`" in said
    assert "No match for `quokka`" in await talk.ask("search for quokka")
    assert "No match for `dis.ount`" in await talk.ask("search for dis.ount")
    assert "in 1 file" in await talk.ask("search for regex def t.tal in shop")


async def test_it_finds_files_by_name(talk: Talk) -> None:
    said = await talk.ask("find *.py in shop")
    assert "3 files match" in said
    assert "No file matches `*.rs`" in await talk.ask("find *.rs")


async def test_it_runs_commands_and_explains_a_failure(talk: Talk) -> None:
    assert "one two" in await talk.ask("run `echo one two`")
    said = await talk.ask("run `ls; echo 'error: the frobnicator is missing' >&2; echo later; exit 7`")
    assert "exit code 7" in said
    assert "error: the frobnicator is missing" in said
    assert "printed nothing" in await talk.ask("run true")
    assert "[1, 2]" in await talk.ask("run `echo '[1, 2]'`")
    later = await talk.ask("why did it fail?")
    assert "exit code 7" in later
    assert "frobnicator" in later


async def test_nothing_failed_is_said_too(talk: Talk) -> None:
    assert "Nothing has failed" in await talk.ask("why did it fail?")


async def test_it_finds_out_how_tests_are_run(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    said = await talk.ask("run the tests")
    assert [call.name for call in talk.calls] == ["glob", "bash"]
    assert "pytest" in talk.calls[1].arguments
    assert "exit code" in said


async def test_it_mends_the_sample_repository_in_one_request(talk: Talk, sample_repo: Path) -> None:
    check = "run `python -c 'from shop.price import total; print(total([10], 0.5))'`"
    request = "replace `(1 - discount) * (1 - discount)` by `(1 - discount)` in shop/price.py"
    said = await talk.ask(f"{request}, then {check}")
    assert [call.name for call in talk.calls] == ["read", "edit", "bash"]
    assert "5.0" in said
    assert "return round(amount * (1 - discount), 2)" in (sample_repo / "shop/price.py").read_text()


async def test_an_ambiguous_replacement_is_refused_with_the_way_out(talk: Talk, sample_repo: Path) -> None:
    before = (sample_repo / "shop/price.py").read_text()
    said = await talk.ask("replace discount by rebate in shop/price.py, then run `touch ran`")
    assert "I could not edit" in said
    assert "replace all" in said
    assert "did not do the rest" in said
    assert not (sample_repo / "ran").exists()
    assert (sample_repo / "shop/price.py").read_text() == before
    await talk.ask("replace all discount by rebate in shop/price.py")
    assert "discount" not in (sample_repo / "shop/price.py").read_text()


async def test_it_creates_a_file(talk: Talk, sample_repo: Path) -> None:
    said = await talk.ask('create notes/today.md with:\n```\n# Today\n\n- "quotes" and `ticks`\n```')
    assert (sample_repo / "notes/today.md").read_text() == '# Today\n\n- "quotes" and `ticks`\n'
    assert "3 lines" in said


async def test_it_keeps_a_todo_list(talk: Talk) -> None:
    assert "empty" in await talk.ask("todo")
    assert "2 to do" in await talk.ask("todo: write docs; ship it")
    said = await talk.ask("mark docs done")
    assert "1. [x] write docs" in said
    assert "1 to do" in said
    assert "2. [ ] ship it" in await talk.ask("todo")
    assert "All done" in await talk.ask("mark all done")
    assert "no such line" in await talk.ask("mark 9 done")


async def test_a_denied_call_is_taken_for_an_answer(talk: Talk) -> None:
    talk.add(UserMessage(parts=(TextPart(text="run `rm -rf x` then run `ls`"),)))
    message = await talk.step()
    call = next(part for part in message.parts if isinstance(part, ToolCallPart))
    refusal = TextPart(text="Denied by the user: not now.")
    talk.add(ToolResultMessage(call_id=call.id, name="bash", parts=(refusal,), is_error=True, denied=True))
    ending = await talk.step()
    assert ending.stop_reason == "end_turn"
    assert "could not run `rm -rf x`" in text_of(ending.parts)
    assert "not now" in text_of(ending.parts)
    assert "did not do the rest" in text_of(ending.parts)


async def test_go_on_makes_an_interrupted_call_again(talk: Talk) -> None:
    talk.add(UserMessage(parts=(TextPart(text="read README.md then run `echo second`"),)))
    call = next(part for part in (await talk.step()).parts if isinstance(part, ToolCallPart))
    talk.add(await talk.run(call))
    call = next(part for part in (await talk.step()).parts if isinstance(part, ToolCallPart))
    stopped = TextPart(text="interrupted; may have taken effect; check")
    talk.add(ToolResultMessage(call_id=call.id, name="bash", parts=(stopped,), is_error=True, interrupted=True))
    said = await talk.ask("go on")
    assert "echo second" in talk.calls[-1].arguments
    assert [call.name for call in talk.calls] == ["read", "bash", "bash"]
    assert "README.md" in said


async def test_the_same_conversation_gets_the_same_answer_and_ids_are_unique(talk: Talk) -> None:
    await talk.ask("read README.md then look around then run `echo hi`")
    ids = [call.id for call in talk.calls]
    assert len(set(ids)) == len(ids) == 4
    last = talk.messages[:-1]
    assert answer(last) == answer(last)
    assert answer(last).text == text_of(talk.messages[-1].parts)  # type: ignore[union-attr]


async def test_a_tool_that_is_not_there_is_named(tmp_path: Path) -> None:
    client = OfflineClient()
    message = UserMessage(parts=(TextPart(text="run ls"),), seq=3)
    parts = [part async for part in client.stream(ModelRequest(model=FACTS, messages=(message,)))]
    finished = parts[-1]
    assert isinstance(finished, Finished)
    assert finished.message.stop_reason == "end_turn"
    assert "bash tool" in text_of(finished.message.parts)


async def test_a_request_over_the_window_is_an_overflow_with_both_numbers(talk: Talk) -> None:
    talk.facts = msgspec.structs.replace(FACTS, context_window=4_000)
    await talk.ask("hello")
    with pytest.raises(ModelError) as caught:
        await talk.ask("word " * 8_000)
    assert caught.value.kind == "overflow"
    assert caught.value.limit == 4_000
    assert caught.value.observed is not None
    assert caught.value.observed > 8_000


async def test_usage_is_what_count_says_and_facts_say_it_cannot_summarise(talk: Talk) -> None:
    talk.add(UserMessage(parts=(TextPart(text="help"),)))
    request = ModelRequest(model=FACTS, messages=tuple(talk.messages), tools=talk.registry.schemas())
    counted = await talk.client.count(request)
    message = await talk.step()
    assert message.usage is not None
    assert message.usage.input == counted
    assert message.usage.cost == 0
    (facts,) = await talk.client.models()
    assert (facts.id, facts.can_summarise) == ("offline/tenuto", False)
    await talk.client.close()


def test_a_todo_list_is_read_from_the_newest_result() -> None:
    def result(*items: TodoItem) -> ToolResultMessage:
        return ToolResultMessage(call_id="c", name="todo", parts=(TextPart(text="ok"),), ui=(TodoView(items=items),))

    asked = UserMessage(parts=(TextPart(text="todo"),))
    older, newer = TodoItem(text="old"), TodoItem(text="new", status="in_progress")
    said = answer([result(older), result(newer), AssistantMessage(parts=()), asked]).text
    assert "[~] new" in said
    assert "old" not in said


def test_importing_the_client_does_not_load_the_rules() -> None:
    code = "import sys, tenuto.model.offline; print([m for m in sys.modules if 'offline_' in m])"
    import sys

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
