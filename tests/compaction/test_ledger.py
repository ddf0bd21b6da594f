"""The user's words through a compaction (review `truth.md` T1 to T3; R-033)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.data.ledger import (
    EDGE_TOKENS,
    FRAME_TOKENS,
    GAP_TOKENS,
    LEDGER_TOKENS,
    LINE_TOKENS,
    SHORT_TOKENS,
    SHORTEST,
    keep_ledger,
    ledger_floor,
)
from tenuto.compaction.data.said import Said
from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.summary.prompts import Prompts
from tenuto.compaction.summary.view import SessionData, build_replacement
from tenuto.text.estimate import estimate_text
from tests.compaction.build import History, words

FILLER = "The log of the night shows nothing that anybody would want to read again. "


def numbered(*texts: str) -> list[Said]:
    return [Said(2 * place + 2, text) for place, text in enumerate(texts)]


def paste(middle: str, size: int = 4_000, head: str = "Here is what the team wrote.", end: str = "That was it.") -> str:
    half = FILLER * (size // 2 // len(FILLER))
    return f"{head}\n{half}\n{middle}\n{half}\n{end}"


def kept_text(said: list[Said], budget: int) -> str:
    return "\n".join(one.text for one in keep_ledger(said, budget))


# --- T1: a correction never leaves before what it corrects ---


@pytest.mark.parametrize("budget", [60, 90, 150, 300, 900, 3_000])
def test_t1_a_corrected_text_is_never_there_without_its_correction(budget):
    said = numbered(
        "Set up the staging proxy on port 4000.",
        "Correction: not 4000. The staging proxy has to use port 9083.",
        *(paste(f"Nothing {number}.") for number in range(3)),
    )
    kept = keep_ledger(said, budget)
    text = "\n".join(one.text for one in kept)
    assert "9083" in text or "4000" not in text
    if "on port 4000" in text:
        assert [one.corrected_by for one in kept if "on port 4000" in one.text] == [4]
    if budget >= 150:
        assert "9083" in text


def test_t1_a_correction_inside_a_long_paste_is_kept_like_a_short_one():
    said = numbered(
        "Use SQLite for the job table.",
        paste("Actually the job table must not be SQLite any more: use PostgreSQL 17 instead."),
        *(paste("Nothing new.") for _ in range(5)),
    )
    kept = keep_ledger(said, 200)
    assert "use PostgreSQL 17 instead" in "\n".join(one.text for one in kept)
    assert kept[0].corrected_by == 4


@given(st.integers(0, 2**32), st.integers(40, 3_000))
def test_t1_property_corrections_outlive_what_they_correct(seed, budget):
    dice = random.Random(seed)
    texts: list[str] = []
    pairs: list[tuple[str, str]] = []
    for number in range(dice.randint(1, 8)):
        port, other = 4_000 + number, 9_000 + number
        old = f"The service svc_{number} listens on port {port}."
        new = f"Correction: svc_{number} does not listen on port {port}, use port {other} instead."
        pairs.append((f"svc_{number} listens on port {port}.", f"use port {other} instead"))
        texts.insert(dice.randint(0, len(texts)), old)
        at = dice.randint(texts.index(old) + 1, len(texts))
        texts.insert(at, paste(new, dice.choice([2_000, 9_000])) if dice.random() < 0.3 else new)
        texts.insert(dice.randint(0, len(texts)), dice.choice(["go on", "thanks", paste("Nothing."), "ok " * 30]))
    text = kept_text(numbered(*texts), budget)
    for old, new in pairs:
        assert new in text or old not in text


def test_t1_the_block_says_what_wins_and_marks_the_corrected_text():
    history = History()
    history.user("Set up the staging proxy on port 4000.")
    history.step("ok " * 200)
    history.user("Correction: not 4000. The staging proxy has to use port 9083.")
    for _ in range(8):
        history.step("done " * 900)
        history.user("next")
    history.answer("yes")
    plan = history.plan(16_384)
    assert isinstance(plan, CompactionPlan)
    [system, *_] = build_replacement(plan, "## Goal\nproxy", SessionData(), Prompts())
    corrected = next(entry.seq for entry in history.path if "9083" in str(entry))
    assert f"(corrected by #{corrected}): Set up the staging proxy on port 4000." in system.text
    assert "later message wins over an earlier one" in system.text


# --- T2: short rules come first, long pastes keep what matters ---


@pytest.mark.parametrize("place", range(6))
def test_t2_a_long_paste_pushes_no_rule_out(place):
    rules = [f"Rule {number}: never touch module_{number}." for number in range(12)]
    texts = list(rules)
    texts.insert(place * 2, paste("Nothing.", 40_000))
    kept = kept_text(numbered(*texts), 900)
    assert [rule for rule in rules if rule not in kept] == []


ORDER = ("alpha", "bravo", "carol", "delta", "emmet", "fiona")


@pytest.mark.parametrize("rules", [range(10), ORDER], ids=["with a number", "without one"])
def test_t2_small_talk_leaves_before_rules(rules):
    texts = [f"Always run the checks of {rule} first." for rule in rules]
    texts += [f"that reads well to me, go ahead with part {chr(97 + number) * 4}" for number in range(26)]
    kept = kept_text(numbered(*texts), 300)
    assert all(f"checks of {rule} first" in kept for rule in rules)
    assert 1 <= kept.count("reads well") < 26, "what room is left is used, and there is not enough for all"


def test_t2_a_text_of_fifty_tokens_is_never_an_excerpt():
    """Short is what a user says in a few sentences, not only one line."""
    rule = "The exporter is old. " * 8 + "It must stay silent at night. " + "Nobody knows it well. "
    assert 45 <= estimate_text(rule) <= SHORT_TOKENS
    kept = keep_ledger(numbered(*(paste("Nothing.", 9_000) for _ in range(3)), rule, paste("Nothing.", 9_000)), 160)
    assert [one.text for one in kept if one.seq == 8] == [rule.strip()]


def alike(start: str, length: int) -> list[str]:
    """Six texts that only differ in a name that is not exact, the oldest first."""
    return [f"{start} {name}. " + "it reads well and we can go on with it " * length for name in ORDER]


@pytest.mark.parametrize(
    ("start", "length", "budget"),
    [("that was about", 1, 80), ("that was about", 12, 640), ("It must stay with", 1, 80)],
    ids=["short", "whole", "rule"],
)
def test_t2_of_equal_texts_the_newest_stay_and_in_time_order(start, length, budget):
    kept = keep_ledger(numbered(*alike(start, length)), budget)
    whole = [name for name in ORDER for one in kept if name in one.text and "[…]" not in one.text]
    assert 1 <= len(whole) < len(ORDER)
    assert tuple(whole) == ORDER[-len(whole) :]


@pytest.mark.parametrize("budget", [230, 260, 450])
def test_t2_of_equal_key_sentences_the_newest_stay(budget):
    kept = kept_text(numbered(*(paste(f"The exporter must stay with {name}.", 12_000) for name in ORDER)), budget)
    found = [name for name in ORDER if f"stay with {name}" in kept]
    assert 1 <= len(found) < len(ORDER)
    assert tuple(found) == ORDER[-len(found) :]


KEY_SENTENCES = (
    "the exporter must stay silent",
    "the exporter never writes home",
    "the long tests always run first",
    "the exporter writes only at night",
    "we take the queue instead",
    "do not share the cache",
    "the deadline is the end of spring",
    "take version 14 of the tool",
    "the proxy has port 9083",
    "the cache is not shared with the workers",
    "der Speicher wird nicht geteilt",
    "the version is the one before last",
    "the port is the one of the old proxy",
    "der Exporter darf niemals schreiben",
    "il ne doit jamais rien écrire",
    "nunca debe escribir nada",
    "он никогда не пишет",
    "导出程序绝不能写入任何内容",
    "書き込みは絶対に禁止です",
    "절대 쓰면 안 됩니다",
    "exporten får aldrig skriva något",
    "eksporten må ikke skrive noget",
    "vienti ei saa kirjoittaa mitään",
    "export nesmí nic zapisovat",
    "eksport nigdy niczego nie zapisuje",
    "експорт ніколи нічого не пише",
    "exportul nu trebuie să scrie nimic",
    "az export soha nem ír semmit",
    "η εξαγωγή δεν πρέπει να γράφει τίποτα",
    "dışa aktarma asla bir şey yazmaz",
    "يجب ألا يكتب التصدير أي شيء",
    "خروجی هرگز چیزی نمی‌نویسد",
    "הייצוא לעולם לא כותב דבר",
    "निर्यात कभी कुछ नहीं लिखता",
    "রপ্তানি কখনো কিছু লেখে না",
    "bản xuất không bao giờ ghi gì cả",
    "การส่งออกต้องไม่เขียนอะไรเลย",
    "ekspor tidak boleh menulis apa pun",
    "usafirishaji kamwe hauandiki chochote",
)


@pytest.mark.parametrize("said", KEY_SENTENCES)
def test_t2_a_key_sentence_is_kept_from_the_middle_of_a_long_paste(said):
    assert said in kept_text(numbered(paste(f"{said}.", 12_000)), 300)


RULES_IN_LANGUAGES = {
    "en": "The exporter must never write to /srv/shared.",
    "de": "Der Exporter darf niemals nach /srv/shared schreiben.",
    "fr": "L'exporteur ne doit jamais écrire dans /srv/shared.",
    "es": "El exportador nunca debe escribir en /srv/shared.",
    "ru": "Экспорт никогда не пишет в /srv/shared.",
    "zh": "导出程序绝不能写入 /srv/shared,必须使用本地目录。",
    "ja": "エクスポーターは絶対に /srv/shared に書き込まないこと。",
    "ko": "내보내기는 절대 /srv/shared 에 쓰면 안 됩니다.",
}


@pytest.mark.parametrize("language", RULES_IN_LANGUAGES)
def test_t2_head_end_and_key_sentences_of_a_long_paste_stay(language):
    rule = RULES_IN_LANGUAGES[language]
    said = numbered(paste(rule, 12_000, head="Start of the brief.", end="The brief ends here."))
    kept = kept_text(said, 300)
    assert rule in kept
    assert kept.startswith("Start of the brief.")
    assert kept.endswith("The brief ends here.")
    assert "[…]" in kept


# --- what always holds ---


@given(st.lists(st.text(max_size=400), max_size=25), st.integers(0, 2_000))
def test_t2_property_the_ledger_is_in_order_exact_and_within_its_budget(texts, budget):
    said = numbered(*texts)
    kept = keep_ledger(said, budget)
    by_seq = {one.seq: one.text.strip() for one in said}
    assert [one.seq for one in kept] == sorted({one.seq for one in kept})
    for one in kept:
        pieces = [piece.strip() for piece in one.text.split("[…]")]
        assert all(piece in by_seq[one.seq] for piece in pieces if "[…]" not in by_seq[one.seq])
        if estimate_text(by_seq[one.seq]) <= SHORT_TOKENS:
            assert one.text == by_seq[one.seq]
    spent = sum(estimate_text(one.text) for one in kept)
    assert spent <= budget + len(kept) * (2 * EDGE_TOKENS)
    assert not kept or budget >= LINE_TOKENS


@given(st.lists(st.integers(1, 3_000), min_size=1, max_size=12))
def test_t2_property_with_room_for_all_everything_is_whole(sizes):
    said = numbered(*(f"{number} " + FILLER * (size // len(FILLER) + 1) for number, size in enumerate(sizes)))
    kept = keep_ledger(said, 1_000_000)
    assert [one.text for one in kept] == [one.text.strip() for one in said]
    assert not [one for one in kept if one.corrected_by]


def notes(count: int, length: int = 900) -> list[Said]:
    """Texts that are all too long to be kept whole, without a rule in them."""
    return numbered(
        *(f"Note {number} is of part {number}.\n{FILLER * (length // len(FILLER))}" for number in range(count))
    )


HEAD_COST = EDGE_TOKENS + GAP_TOKENS + FRAME_TOKENS
"""What the head of one of `notes` costs at most, with all that is around it."""


def test_t2_nine_notes_keep_their_first_lines_in_the_room_that_an_8k_window_leaves():
    kept = keep_ledger(notes(9), 420)
    assert [one.text.split("\n")[0].split(" […]")[0] for one in kept] == [
        f"Note {number} is of part {number}." for number in range(9)
    ]


@given(st.integers(1, 30), st.integers(400, 3_000), st.integers(0, 1_500))
def test_t2_property_no_end_of_a_long_text_is_kept_before_every_head(count, length, budget):
    said = notes(count, length)
    kept = {one.seq: one.text for one in keep_ledger(said, budget)}
    assert all(text.startswith("Note ") for text in kept.values())
    if any(estimate_text(text) > HEAD_COST for text in kept.values()):
        assert len(kept) == count
    if budget >= count * HEAD_COST + SHORTEST:
        assert len(kept) == count


def test_t3_standing_rules_are_not_called_done():
    history = History()
    history.user("Rule 2: never push to main.")
    for _ in range(8):
        history.step("done " * 900)
        history.user("next")
    history.answer("yes")
    plan = history.plan(16_384)
    assert isinstance(plan, CompactionPlan)
    [system, *_] = build_replacement(plan, "## Goal\nx", SessionData(), Prompts())
    assert "all of it has been dealt with" not in system.text
    head, _, _ = system.text.partition("<user-messages>")[2].partition("never push to main")
    assert "Requests in it are dealt with, or are in the summary." in head
    assert "Rules, limits and corrections in it hold until the user takes them back" in head
    assert "a later message wins over an earlier one, and over the wording of the summary." in head


# --- T2 in a small window: what must stay is a floor, and room that nothing else needs is the user's ---


def talk_of_a_day(rules: int) -> History:
    """A session in which the user says short things and pastes notes, and the model reads much."""
    history = History(system=words(1_500))
    for number in range(rules):
        history.user(f"Rule {number}: always run check_{number} first.")
        if number % 8 == 0:
            history.user(paste(f"The import of part_{number} must be done by noon.", 3_000, head=f"Notes {number}."))
        history.step(words(700))
        history.answer("ok")
    history.user("go on")
    for _ in range(3):
        history.step(words(900))
    return history


@pytest.mark.parametrize("manual", [False, True])
def test_t2_in_a_small_window_short_rules_heads_ends_and_key_sentences_stand(manual):
    history = talk_of_a_day(40)
    plan = history.planned(16_384, manual=manual)
    summary = words(plan.allowance.summary)
    [system, *anchor] = build_replacement(plan, summary, SessionData(), Prompts())
    shown = f"{system.text}{anchor}{plan.kept}"
    assert [number for number in range(40) if f"check_{number} " not in shown] == []
    for number in range(0, 40, 8):
        assert f"Notes {number}." in system.text
        assert f"part_{number} must be done" in system.text
    assert system.text.count("That was it.") == 5


def test_t2_what_must_stay_takes_its_room_from_the_tail_and_not_from_the_notes():
    few, many = talk_of_a_day(8).planned(8_192), talk_of_a_day(48).planned(8_192)
    assert many.allowance.user_messages > few.allowance.user_messages
    assert many.allowance.summary >= few.allowance.summary
    assert many.allowance.tail_ceiling < few.allowance.tail_ceiling


def test_t2_prose_is_lent_no_room_that_a_rule_would_get():
    history = History(system=words(1_500))
    for _ in range(3):
        history.user(paste("Nothing.", 9_000))
        history.step(words(400))
    for _ in range(12):
        history.user("next")
        history.step(words(500))
    plan = history.planned(16_384)
    [system, *_] = build_replacement(plan, "short", SessionData(), Prompts())
    block = system.text[system.text.index("<user-messages>") :]
    assert estimate_text(block) <= plan.allowance.user_messages + 20


@given(st.integers(0, 2**32), st.integers(0, 2_000), st.integers(0, 2_000))
def test_t2_property_what_must_stay_costs_what_the_floor_says(seed, budget, more):
    dice = random.Random(seed)
    texts = [
        dice.choice([f"Rule: never stop svc_{n}.", f"look at part {n}", paste(f"Only {n} at most.", 900 + 90 * n)])
        for n in range(dice.randint(0, 20))
    ]
    said = numbered(*texts)
    floor = ledger_floor(said, budget)
    assert 0 <= floor <= max(budget, 0)
    needed = keep_ledger(said, 0, floor - LEDGER_TOKENS)
    assert needed == keep_ledger(said, 0, budget - LEDGER_TOKENS)
    ample = keep_ledger(said, 0, budget + more)
    assert sum(len(one.text) for one in ample) >= sum(len(one.text) for one in needed)


@pytest.mark.parametrize(
    "told",
    [
        "Sala 4, ore 18:30",
        "la CI gira su sbx-8227",
        "maintenance le 3 mars",
        "Safari 14 unterstützen wir",
        "周五晚上八点切流量",
        "Pase lo que pase, la tabla se queda como está",
        "nobody but the release bot tags",
    ],
)
def test_t2_what_is_exact_in_a_long_text_is_kept_whatever_its_words(told: str):
    """No list of words is complete, and what is exact cannot be guessed."""
    filler = "we walked along and talked about the weather and the food and so on and so forth. "
    text = f"{filler * 60}{told}. {filler * 60}"
    kept = keep_ledger([Said(1, text)], 300)
    assert told in kept[0].text
