"""Patterns that are compiled at their first use: they do what compiled ones do, and cost nothing before."""

from __future__ import annotations

import re

import pytest

from tenuto.text.late import late


def test_it_is_compiled_at_its_first_use(monkeypatch: pytest.MonkeyPatch):
    compiled: list[str] = []
    real = re.compile
    monkeypatch.setattr(re, "compile", lambda pattern, flags=0: (compiled.append(pattern), real(pattern, flags))[1])
    pattern = late("a(b+)", re.IGNORECASE)
    assert compiled == [] and pattern.pattern == "a(b+)"
    found = pattern.search("xABB")
    assert found is not None and found[1] == "BB"
    assert pattern.search("none") is None
    assert compiled == ["a(b+)"], "what was asked once is known"


@pytest.mark.parametrize("flags", [0, re.IGNORECASE, re.DOTALL | re.MULTILINE])
def test_it_answers_as_a_compiled_one(flags: int):
    text, real, pattern = "One\ntwo three\nTWO", re.compile("^two.", flags), late("^two.", flags)
    assert pattern.findall(text) == real.findall(text)
    assert pattern.sub("-", text) == real.sub("-", text)
    assert pattern.split(text) == real.split(text)
    assert [found.span() for found in pattern.finditer(text)] == [found.span() for found in real.finditer(text)]
    assert (pattern.flags, pattern.groups) == (real.flags, real.groups)


def test_bytes_and_a_pattern_that_is_wrong():
    assert late(rb"\d+").findall(b"1 22") == [b"1", b"22"]
    wrong = late("(")
    with pytest.raises(re.error):
        wrong.match("")
