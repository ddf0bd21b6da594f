"""The windows of models on local servers, which their `/v1/models` does not tell.

Only the window that is really in use counts, not what the model was made for: Ollama cuts off what is longer without
a word (anchors A3.3).
"""

from __future__ import annotations

from typing import Any

import msgspec

from tenuto.model.model_list import facts_from_list
from tenuto.model.transport import Transport
from tenuto.model.wire_json import as_count, as_dict, as_list, as_text
from tenuto.protocol.model import ModelError, ModelFacts


async def with_local_windows(facts: list[ModelFacts], base_url: str, transport: Transport) -> list[ModelFacts]:
    """Return the facts with the windows that LM Studio, llama.cpp or Ollama names in its own interface."""
    root = base_url.removesuffix("/v1")
    for path, read in (("/api/v0/models", _lm_studio), ("/props", _llama_cpp), ("/api/ps", _ollama)):
        try:
            windows = read(await transport.get_json(root + path, {}), facts)
        except ModelError as error:
            if error.kind == "unreachable":
                return facts
            continue
        if windows:
            return [_with_window(model, windows.get(model.name)) for model in facts]
    return facts


def _with_window(model: ModelFacts, window: int | None) -> ModelFacts:
    return model if not window else msgspec.structs.replace(model, context_window=window, source="provider")


def _lm_studio(found: dict[str, Any], facts: list[ModelFacts]) -> dict[str, int]:
    """LM Studio lists `loaded_context_length` of what is loaded, `max_context_length` of the rest."""
    del facts
    listed = facts_from_list("", found)
    return {model.name: model.context_window for model in listed if model.context_window}


def _llama_cpp(found: dict[str, Any], facts: list[ModelFacts]) -> dict[str, int]:
    """llama.cpp serves one model with one window for a slot."""
    window = as_count(as_dict(found.get("default_generation_settings")).get("n_ctx")) or as_count(found.get("n_ctx"))
    return {model.name: window for model in facts} if window else {}


def _ollama(found: dict[str, Any], facts: list[ModelFacts]) -> dict[str, int]:
    """Ollama tells the window of what is loaded."""
    del facts
    loaded = [as_dict(entry) for entry in as_list(found.get("models"))]
    windows = {as_text(entry.get("name")): as_count(entry.get("context_length")) for entry in loaded}
    return {name: window for name, window in windows.items() if name and window}
