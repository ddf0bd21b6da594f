"""The prefix rule of signed thinking (DESIGN section 7).

A provider may check a returned thinking block against everything that stood before it. So each answer stores a chain
hash of what had been sent (tools, system, messages; cache marks and thinking aside), and from which answer on thinking
had gone along. Thinking is sent again only where the hash of what is sent now is the same; thinking that was left out
once, before a later answer, stays out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from tenuto.protocol.message import AssistantMessage

DIGEST_BYTES = 16


def extend(chain: bytes, items: Iterable[bytes]) -> bytes:
    """Return the chain hash after `items`, each with its length so that boundaries count."""
    digest = hashlib.blake2b(chain, digest_size=DIGEST_BYTES)
    for item in items:
        digest.update(len(item).to_bytes(8, "big"))
        digest.update(item)
    return digest.digest()


def format_prefix(chain: bytes, thinking_from: int) -> str:
    """Return what an answer stores; `thinking_from` counts the view's answers from 0."""
    return f"{chain.hex()}.{thinking_from}"


def thinking_floor(message: AssistantMessage, model_id: str, chain: bytes) -> int | None:
    """Return from which answer on thinking may go along if this answer's may; `None` when its own may not.

    `chain` is the hash of what is now sent before the answer.
    """
    stored, dot, start = message.prefix.rpartition(".")
    if not dot or message.model != model_id or stored != chain.hex() or not start.isdecimal():
        return None
    return int(start)
