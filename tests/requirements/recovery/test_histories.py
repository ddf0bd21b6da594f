"""T-12: whatever a history looks like, every provider takes every request that is made of it (R-048 to R-050).

The histories are those of `tests/compaction/test_provider_requests.py`, here from numbered seeds: a few in every run,
ten thousand with `--full`. `TENUTO_TEST_SEED` names the first.
"""

from __future__ import annotations

import os
import random
import tempfile
from pathlib import Path

import pytest

from tenuto.protocol.message import CompactionEntry, SystemMessage
from tenuto.session.session import Session
from tests.compaction.test_provider_requests import Conversation, Wild, Wires, compact, reload
from tests.model.views import PROVIDERS
from tests.server.options import Options
from tests.session.build import check_pairs

FIRST = int(os.environ.get("TENUTO_TEST_SEED") or 0)
FEW, MANY, TOGETHER = 24, 10_000, 500
KEEPS = (None, 1, 100, 1_000)
STRICT = Options(check_thinking=True, one_system=True)


async def play_wild(seed: int, home: Path) -> int:
    """Results missing, doubled, late or of nobody; answers aborted or failed; compactions, edits, undos, branches.

    Returns how often it was compacted.
    """
    source = random.Random(seed)
    session = Session.create(home, home, durability="none")
    wild, wires = Wild(source), Wires(STRICT)
    session.append(SystemMessage(text="You are an agent."))
    steps = source.randrange(10, 40)
    for step in range(1, steps + 1):
        session.append(wild.next(list(session.entries())[1:]))
        if source.random() < 0.15:
            compact(session, source.choice(KEEPS), by_model=source.random() < 0.5)
        if step % 10 == 0 or step == steps:
            check_pairs(session.get_llm_history())
            for provider in PROVIDERS:
                await wires.send(provider, session.get_llm_history())
    session = reload(session)
    made = sum(isinstance(entry, CompactionEntry) for entry in session.entries())
    session.close()
    return made


async def play_led(seed: int, home: Path) -> int:
    """A session as the core leads it: parallel calls, thinking that the provider signed, compactions within turns.

    Each step's request is held against the provider's rules. Returns how often it was compacted.
    """
    source = random.Random(seed)
    session = Session.create(home, home, durability="none")
    talk = Conversation(session, PROVIDERS[seed % len(PROVIDERS)], source)
    for _ in range(source.randrange(2, 5)):
        await talk.turn()
        check_pairs(talk.session.get_llm_history())
        if source.random() < 0.4:
            talk.change()
    made = sum(isinstance(entry, CompactionEntry) for entry in talk.session.entries())
    talk.session.close()
    return made


async def play_all(seeds: range) -> None:
    """Play these seeds of each kind; a failure names its seed."""
    compacted, nested = 0, 0
    for seed in seeds:
        for play in (play_wild, play_led):
            with tempfile.TemporaryDirectory() as home:
                try:
                    made = await play(seed, Path(home))
                except BaseException as error:
                    error.add_note(f"{play.__name__}, TENUTO_TEST_SEED={seed}")
                    raise
            compacted += made > 0
            nested += made > 1
    assert compacted >= len(seeds) // 2, "they are about compaction"
    assert nested >= len(seeds) // 8, "and about several of them"


async def test_t12_r048_every_provider_takes_what_random_histories_come_to():
    await play_all(range(FIRST, FIRST + FEW))


@pytest.mark.full
@pytest.mark.parametrize("first", range(FIRST, FIRST + MANY, TOGETHER))
async def test_t12_r048_ten_thousand_of_them(first: int):
    await play_all(range(first, first + TOGETHER))
