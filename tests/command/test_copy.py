"""/copy, /transcript and /mouse on a real runtime: what comes from the log, whatever is on the screen."""

from __future__ import annotations

from pathlib import Path

from tenuto.command.outcome import Choose, Copy, Page, Say, SetMouse
from tests.core.harness import agent
from tests.server import Reply, Request

CODE = 'Two ways:\n\n```python\ndef f():\n\treturn "ä"\n```\n\n1. or\n\n   ~~~sh\n   make  all\n   ~~~\n'


def script(request: Request) -> Reply:
    return Reply(CODE if "code" in request.last_user else f"You said **{request.last_user.splitlines()[0]}**.")


async def test_copy_takes_the_last_answer_or_one_before_as_it_was_written(tmp_path):
    async with agent(tmp_path, script) as running:
        (nothing,) = await running.runtime.run_command("/copy")
        assert isinstance(nothing, Say)
        await running.ask("one")
        await running.ask("two")
        assert await running.runtime.run_command("/copy") == [Copy("You said **two**.")]
        assert await running.runtime.run_command("/copy 2") == [Copy("You said **one**.")]
        assert await running.runtime.run_command("/copy 3") == [Say("There are not 3 answers.", "warning")]
        (none,) = await running.runtime.run_command("/copy code")
        assert isinstance(none, Say)


async def test_copy_code_asks_which_and_gives_it_word_for_word(tmp_path):
    async with agent(tmp_path, script) as running:
        await running.ask("code")
        (choose,) = await running.runtime.run_command("/copy code")
        assert isinstance(choose, Choose)
        assert [choice.value for choice in choose.choices] == ["code 1", "code 2"]
        assert choose.choices[0].detail == "python, 2 lines"
        assert await running.runtime.run_command("/copy code 1") == [Copy('def f():\n\treturn "ä"')]
        assert await running.runtime.run_command("/copy code 2") == [Copy("make  all")]
        assert await running.runtime.run_command("/copy code 3") == [
            Say("The last answer has 2 blocks of code.", "warning")
        ]


async def test_copy_all_and_transcript_have_the_whole_conversation(tmp_path):
    async with agent(tmp_path, script) as running:
        await running.ask("one")
        await running.ask("two")
        (copied,) = await running.runtime.run_command("/copy all")
        assert isinstance(copied, Copy)
        assert copied.text.index("You said **one**.") < copied.text.index("You said **two**.")
        (page,) = await running.runtime.run_command("/transcript")
        assert isinstance(page, Page)
        assert Path(page.path).read_text() == copied.text
        assert Path(page.path).stat().st_mode & 0o777 == 0o600
        Path(page.path).unlink()


async def test_what_cannot_be_copied_is_said(tmp_path):
    async with agent(tmp_path, script) as running:
        (said,) = await running.runtime.run_command("/copy the thing")
        assert isinstance(said, Say)
        assert said.level == "warning"


async def test_the_mouse_is_offered_and_taken(tmp_path):
    async with agent(tmp_path, script) as running:
        (choose,) = await running.runtime.run_command("/mouse")
        assert isinstance(choose, Choose)
        assert [choice.value for choice in choose.choices] == ["full", "wheel", "off"]
        assert await running.runtime.run_command("/mouse wheel") == [SetMouse("wheel")]
