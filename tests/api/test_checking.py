"""What a program gives that does not fit is told at once, by its name, in one line (newcomers make these mistakes)."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

import tenuto
from tests.api.using import options_of, using
from tests.server import Reply, ScriptedServer


class Thing:
    """Of which no schema can be made."""


class Strategy:
    async def compact(self, _context):
        return None


def strange(thing: Thing) -> str:
    """Take a thing."""
    return str(thing)


MISFITS: list[tuple[dict[str, Any], str]] = [
    ({"cwd": None}, "cwd takes a path, not None"),
    ({"model": 3}, "model takes a text, as provider/name, not 3"),
    ({"mode": "yolo"}, "mode takes ask, edits, auto or plan, not 'yolo'"),
    ({"mode": 3}, "mode takes ask, edits, auto or plan, not 3"),
    ({"approve": "yes"}, "approve takes a function of one argument, the request, not 'yes'"),
    ({"approve": lambda: None}, "approve takes a function of one argument"),
    ({"approve": tenuto.Allow()}, "approve takes a function of one argument"),
    ({"tools": strange}, "tools takes a list of functions, not <function strange"),
    ({"tools": "read"}, "tools takes a list of functions, not 'read'"),
    ({"tools": ["read"]}, "tools: the tool has to be a function, not str"),
    ({"tools": [strange]}, "tools: the tool strange: type <class 'tests.api.test_checking.Thing'> is not supported"),
    ({"extensions": 3}, "extensions takes a list of functions or modules, not 3"),
    ({"extensions": [lambda: None]}, "its setup takes one argument"),
    ({"compaction": Strategy}, "compaction takes an object with a method compact, not <class"),
    ({"compaction": "ladder"}, "compaction takes an object with a method compact, not 'ladder'"),
    ({"instructions": 3}, "instructions takes a text, not 3"),
    ({"allow": "bash(ls)"}, "allow takes a list of texts, not 'bash(ls)'"),
    ({"deny": [3]}, "deny takes a list of texts, not [3]"),
    ({"directories": "/tmp"}, "directories takes a list of paths, not '/tmp'"),
    ({"max_turns": "3"}, "max_turns takes a whole number from 1, not '3'"),
    ({"max_turns": 0}, "max_turns takes a whole number from 1, not 0"),
    ({"max_turns": True}, "max_turns takes a whole number from 1, not True"),
    ({"max_cost": -1}, "max_cost takes a number over 0, not -1"),
    ({"settings": ["x"]}, "settings takes a dict of sections, not ['x']"),
    ({"resume": 12}, "resume takes a text, or True, not 12"),
    ({"environ": "PATH"}, "environ takes a dict of texts, not 'PATH'"),
]
ASKED: list[tuple[dict[str, Any], str]] = [
    ({"prompt": None}, "prompt takes a text, not None"),
    ({"images": "x.png"}, "images takes a list of paths or bytes, not 'x.png'"),
    ({"images": [3]}, "images takes a list of paths or bytes, not [3]"),
    ({"timeout": "3"}, "timeout takes a number of seconds over 0, not '3'"),
    ({"timeout": -1}, "timeout takes a number of seconds over 0, not -1"),
    ({"schema": Thing}, "is neither a JSON schema nor a type of data: type <class"),
]


@pytest.mark.parametrize(("given", "said"), MISFITS, ids=lambda one: next(iter(one)) if isinstance(one, dict) else "")
async def test_an_option_that_does_not_fit_is_told_before_anything_is_opened(tmp_path, given, said):
    async with ScriptedServer([]) as server:
        with pytest.raises(tenuto.UsageError) as caught:
            tenuto.Agent(**{**options_of(tmp_path, server), **given})
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(("given", "said"), ASKED, ids=lambda one: next(iter(one)) if isinstance(one, dict) else "")
async def test_an_argument_of_a_prompt_that_does_not_fit_sends_nothing(tmp_path, given, said):
    async with using(tmp_path, [Reply("Fine.")]) as used:
        with pytest.raises(tenuto.UsageError) as caught:
            await used.agent.run(**{"prompt": "go", **given})
        assert said in str(caught.value)
        assert len(str(caught.value).splitlines()) == 1
        with pytest.raises(tenuto.UsageError, match="listener takes a function of one argument"):
            used.agent.subscribe("x")  # pyright: ignore
        assert used.server.requests == []
        assert (await used.agent.run("go")).text == "Fine.", "the agent can go on"


async def test_what_can_be_called_with_one_argument_fits(tmp_path):
    async def later(_request, *, also=3):
        await asyncio.sleep(0)
        return tenuto.Allow()

    class Object:
        def __call__(self, _request):
            return tenuto.Allow()

    for approve in (later, Object(), partial(later, also=4), print, bool):
        async with using(tmp_path, [], approve=approve, compaction=Strategy()):
            pass
