"""What a scripted server demands of its clients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tenuto.evaluation.scripted import CHARACTERS, Counter
from tests.server.cloud_keys import CloudKeys


@dataclass(slots=True)
class Options:
    """Sizes are tokens, as `counter` counts them (characters / 4, or `WORDS` of `tenuto/evaluation/scripted.py`).

    `window`: longer prompts are refused with the provider's overflow text. `max_output`: the most that may be asked
    for. `listed_window`: what the model list says (by default `window`, else 200 000); 0: names alone, as gateways
    list them. `listing`: the whole entries of Anthropic's list instead. `check_thinking`: signatures of returned
    thinking are held against the exact prefix. `one_system`: a
    chat server whose template takes one system message, first. `alternate`: user and assistant must alternate
    (Anthropic always, chat when set).
    `refuse`: request fields that this server does not know (`stream_options`, ...), items (`compaction_trigger`), or
    addresses (`/responses/compact`). `account`: whose key it is; compactions of another cannot be read.
    `account_unavailable`: a compaction cannot be read just now.
    `lenient`: other agents ask: nothing is checked, and sizes are guessed by the bytes.
    """

    api_key: str | None = None
    window: int | None = None
    max_output: int | None = None
    listed_window: int | None = None
    check_thinking: bool = False
    one_system: bool = False
    alternate: bool | None = None
    refuse: tuple[str, ...] = ()
    models: tuple[str, ...] = ("test", "test-small")
    reasoning_field: str = "reasoning_content"
    account: str = ""
    account_unavailable: bool = False
    lenient: bool = False
    listing: tuple[dict[str, Any], ...] = ()
    counter: Counter = CHARACTERS
    clouds: CloudKeys = field(default_factory=CloudKeys)
