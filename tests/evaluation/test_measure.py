"""`tenuto eval compaction` (F2, item 8): what must hold of every compaction, of sessions that a seed makes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tenuto.cli.evaluating import run_eval
from tenuto.evaluation.driving import Case, Figures, Recalled, Sight, Size, measure
from tenuto.evaluation.phrases import SET_NAMES, Phrases, load_phrases
from tenuto.evaluation.report import Report
from tenuto.evaluation.scripted import SUMMARISERS, ScriptedModel
from tenuto.evaluation.stories import KINDS, Fact, Step, View, make_story
from tenuto.evaluation.wires import read_request

PROTOCOLS = ("anthropic", "openai", "openai-chat")
HOLDS = {
    "numbers": "an",
    "dates": "ad",
    "names": "ap",
    "claims": "an",
    "corrections": "on",
    "reversals": "oa",
    "prose": "",
    "talk": "",
}
"""What a sentence of a kind must hold; those that are not named hold `{a}`."""


@pytest.mark.parametrize(
    ("seed", "window", "summariser", "protocol"),
    [
        (1, 16_384, "honest", "anthropic"),
        (2, 16_384, "refusing", "openai"),
        (1, 65_536, "babbling", "openai-chat"),
        (2, 65_536, "lossy", "anthropic"),
    ],
)
async def test_what_must_hold_of_every_session(seed, window, summariser, protocol):
    case = Case(seed=seed, window=window, rounds=3, summariser=summariser, protocol=protocol)
    figures = await measure(case)
    assert not figures.over, "no request is over the window"
    assert not figures.troubles
    kept = [sight for sight in figures.sights if sight.kind in {"pin", "todo"}]
    assert {sight.round for sight in kept} == {1, 2, 3}
    assert [sight for sight in kept if not sight.in_view] == []
    assert figures.sizes
    assert figures.summaries
    assert [fact for fact in figures.recalled if not fact.found] == []


@pytest.mark.full
@pytest.mark.parametrize("window", [8_192, 16_384, 65_536, 200_000])
@pytest.mark.parametrize("summariser", SUMMARISERS)
async def test_the_whole_table_keeps_the_hard_bars(window, summariser, capsys):
    figures = [await measure(Case(seed=seed, window=window, summariser=summariser)) for seed in (1, 2, 3)]
    with capsys.disabled():
        print("\n" + "\n".join(Report(figures).rows()))
    assert not [size for one in figures for size in one.over]
    kept = [sight for one in figures for sight in one.sights if sight.kind in {"pin", "todo"}]
    assert [sight for sight in kept if not sight.in_view] == []


def test_a_seed_makes_the_same_session_and_has_every_kind():
    story = make_story(1, 16_384, 11)
    assert story == make_story(1, 16_384, 11) != make_story(2, 16_384, 11)
    turns = [turn for turns in story.rounds for turn in turns]
    facts = [fact for turn in turns for step in (turn, *turn.steps) for fact in step.facts]
    facts += [fact for turn in turns for fact in turn.pins]
    assert {fact.kind for fact in facts} == set(KINDS)
    assert {make_story(seed, 16_384, 1).language for seed in (1, 2, 3)} == {"en", "de", "ja"}


def test_the_seeds_take_the_languages_of_the_held_out_set_in_turn():
    stories = [make_story(seed, 16_384, 1, "held-out") for seed in range(1, 8)]
    assert [story.language for story in stories] == ["en", "de", "ja", "fr", "es", "zh", "en"]
    assert stories[0].rounds != make_story(1, 16_384, 1, "known").rounds


def kinds_of(phrases: Phrases) -> dict[str, tuple[str, ...]]:
    fields = msgspec.structs.asdict(phrases)
    return {name: texts for name, texts in fields.items() if isinstance(texts, tuple) and name != "days"}


@pytest.mark.parametrize("phrases", SET_NAMES)
def test_each_sentence_of_a_set_holds_what_its_facts_are_recalled_by(phrases):
    for spoken in load_phrases(phrases).languages.values():
        for kind, texts in kinds_of(spoken).items():
            wanted = HOLDS.get(kind, "a")
            named = [text.replace("{w}", "{a}").replace("{v}", "{o}") for text in texts]
            assert [text for text in named if not all(f"{{{letter}}}" in text for letter in wanted)] == []
        assert "{a}" in spoken.first
        assert "{n}" in spoken.first


@pytest.mark.parametrize("name", ["held-out", "fresh"])
def test_another_set_has_no_sentence_of_the_known_one_and_is_no_smaller(name):
    known, other_set = load_phrases("known"), load_phrases(name)
    for language, spoken in known.languages.items():
        other = kinds_of(other_set.languages[language])
        for kind, texts in kinds_of(spoken).items():
            assert len(other[kind]) >= len(texts)
            assert not {*other[kind]} & {*texts}
    assert not {*other_set.printed.errors} & {*known.printed.errors}


def test_the_fresh_set_has_answers_of_its_own_in_five_languages_and_the_rest_of_the_held_out_one():
    fresh, held_out = load_phrases("fresh"), load_phrases("held-out")
    answers = ("decisions", "reversals", "promises", "talk")
    assert set(fresh.languages) == {"en", "de", "fr", "zh", "ja"}
    own = [text for spoken in fresh.languages.values() for name in answers[:3] for text in kinds_of(spoken)[name]]
    assert len({*own}) >= 60
    for language, spoken in fresh.languages.items():
        mine, theirs = kinds_of(spoken), kinds_of(held_out.languages[language])
        assert all(not {*mine[name]} & {*theirs[name]} for name in answers)
        assert all(mine[name] == theirs[name] for name in mine if name not in answers)


def test_what_is_named_in_plain_words_is_recalled_by_them():
    turns = [turn for turns in make_story(1, 16_384, 11, "fresh").rounds for turn in turns]
    facts = [fact for turn in turns for step in turn.steps for fact in step.facts]
    plain = [fact for fact in facts if fact.kind in {"decision", "reversed", "promise"} and '"' in fact.ask]
    assert plain
    assert all(fact.ask.strip('"').split('" "')[-1] in fact.text for fact in plain)


@pytest.mark.parametrize(("phrases", "seed"), [(name, seed) for name in SET_NAMES for seed in range(1, 7)])
def test_what_is_planted_by_a_user_stands_in_a_prompt(phrases, seed):
    for turns in make_story(seed, 65_536, 11, phrases).rounds:
        for turn in turns:
            view = View([turn.prompt])
            assert [fact for fact in turn.facts if not view.has(fact.text)] == []


def test_a_view_finds_texts_whatever_the_spaces_and_paths_in_braces():
    view = View(["never  touch\nthe archive", "- src/shop/{price,cart}.py"])
    assert view.has("never touch the archive")
    assert view.has("src/shop/cart.py")
    assert not view.has("src/shop/tax.py")
    correction = Fact(kind="correction", text="make that 9083", ask="9083", old="never touch")
    assert view.is_stale(correction)
    assert not view.is_stale(msgspec.structs.replace(correction, text="the archive"))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_wire_says_its_results_and_its_last_user_text(protocol):
    import json

    bodies = {
        "anthropic": {
            "system": [{"type": "text", "text": "be brief"}],
            "messages": [
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "42"}]},
                {"role": "user", "content": [{"type": "text", "text": "go on"}]},
            ],
            "max_tokens": 7,
        },
        "openai": {
            "instructions": "be brief",
            "input": [
                {"type": "function_call", "call_id": "a", "name": "bash", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "a", "output": "42"},
                {"role": "user", "content": [{"type": "input_text", "text": "go on"}]},
            ],
            "max_output_tokens": 7,
        },
        "openai-chat": {
            "messages": [
                {"role": "system", "content": "be brief"},
                {"role": "tool", "tool_call_id": "a", "content": "42"},
                {"role": "user", "content": "go on"},
            ],
            "max_completion_tokens": 7,
        },
    }
    request = read_request(protocol, json.dumps(bodies[protocol]).encode())
    assert request.results == {"a": "42"}
    assert request.last_user == "go on"
    assert request.asked == 7
    assert View(request.texts).has("be brief")


def test_a_request_over_the_window_is_refused_and_counted():
    from tenuto.protocol.model import ModelError

    model = ScriptedModel("openai", 100, "honest", 1)
    model.begin((Step(text="hello"),))
    body = b'{"instructions": "x", "tools": [{"name": "a"}], "input": [{"role": "user", "content": "%s"}]}'
    with pytest.raises(ModelError) as caught:
        model.answer(body % (b"word " * 200))
    assert caught.value.kind == "overflow"
    assert len(model.account.over) == 1
    assert b"hello" in b"".join(model.answer(body % b"hi"))


def figures_of(**changes) -> Figures:
    whole = Figures(
        case=Case(seed=1, window=16_384, rounds=1),
        sights=(Sight(1, "pin", "a", True, False), Sight(1, "identifier", "b", True, False)),
        sizes=(Size(1, "digest", 1_000, 1_010, 500, 510),),
        recalled=(Recalled("pin", "a", True, True),),
        requests=9,
        summaries=1,
        over=(),
        stubs=(),
        cached=((97, 100),),
        troubles=(),
        seconds=1.0,
    )
    return msgspec.structs.replace(whole, **changes)


def test_figures_over_every_bar_miss_none():
    assert Report([figures_of()]).misses() == []
    assert "all bars hold" in Report([figures_of()]).rows()


@pytest.mark.parametrize(("summaries", "shown"), [(0, "100.0"), (1, "100.0"), (4, "25.0")])
def test_the_share_of_summaries_in_place_is_of_all_requests_for_one(summaries, shown):
    rows = Report([figures_of(summaries=summaries)]).rows()
    (row,) = [row for row in rows if row.startswith("summaries in place")]
    assert row.split()[-1] == shown


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"sights": (Sight(1, "pin", "a", False, False),)}, "pin: 0 %"),
        ({"sights": (Sight(1, "identifier", "a", False, False),)}, "identifier: 0 %"),
        ({"sights": (Sight(1, "correction", "a", True, True),)}, "what it took back"),
        ({"sizes": (Size(1, "digest", 1_000, 1_050, 500, 500),)}, "told before"),
        ({"sizes": (Size(1, "digest", 1_000, 1_000, 500, 560),)}, "told after"),
        ({"recalled": (Recalled("pin", "a", True, False),)}, "by recall"),
        ({"over": (20_000,)}, "over the window"),
        ({"stubs": ((9_000, 400, 8_000),)}, "less than a fifth"),
        ({"cached": ((97, 100), (90, 100))}, "93.5 % of the summary requests"),
    ],
)
def test_a_missed_bar_is_named(changes, said):
    misses = Report([figures_of(**changes)]).misses()
    assert len(misses) == 1
    assert said in misses[0].what


def test_the_command_line_names_what_is_wrong(capsys):
    assert run_eval(("compaction", "--windows", "12"), Path(), {}) == 2
    assert "8192" in capsys.readouterr().err
    assert run_eval(("compaction", "--summarisers", "honest,clever"), Path(), {}) == 2
    assert "clever" in capsys.readouterr().err
    assert run_eval(("compaction", "--phrases", "unread"), Path(), {}) == 2
    assert "held-out" in capsys.readouterr().err
    assert run_eval(("sleep",), Path(), {}) == 2


def test_the_command_prints_json_and_its_exit_code_follows_the_bars(capsys):
    words = ("--seeds", "1", "--windows", "16384", "--rounds", "1", "--summarisers", "honest", "--json")
    code = run_eval(("compaction", *words), Path(), {})
    report = msgspec.json.decode(capsys.readouterr().out)
    assert report["sessions"][0]["sights"]
    assert code == (1 if report["missed"] else 0)
