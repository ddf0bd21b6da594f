"""Calls tools the way the core does, over a real session in temporary directories."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tenuto.config.settings import ToolSettings
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import ToolCallPart, text_of
from tenuto.session.session import Session
from tenuto.tool.run.context import ToolContext
from tenuto.tool.run.registry import ToolRegistry
from tenuto.tool.run.runner import PreparedCall, prepare, run_call


@dataclass
class Bench:
    """A session with its tools; `work` is the workspace."""

    work: Path
    session: Session
    context: ToolContext
    registry: ToolRegistry = field(default_factory=ToolRegistry)
    live: list[str] = field(default_factory=list)
    count: int = 0

    async def prepare(self, name: str, **arguments: Any) -> PreparedCall | ToolResultMessage:
        self.count += 1
        call = ToolCallPart(id=f"call{self.count}", name=name, arguments=json.dumps(arguments))
        return await prepare(call, self.registry, self.context)

    async def call(self, name: str, **arguments: Any) -> ToolResultMessage:
        prepared = await self.prepare(name, **arguments)
        if isinstance(prepared, ToolResultMessage):
            return prepared
        return await run_call(prepared, self.context, emit=self.live.append)

    async def text(self, name: str, **arguments: Any) -> str:
        result = await self.call(name, **arguments)
        assert not result.is_error, text_of(result.parts)
        return text_of(result.parts)

    async def error(self, name: str, **arguments: Any) -> str:
        result = await self.call(name, **arguments)
        assert result.is_error, text_of(result.parts)
        return text_of(result.parts)

    def write(self, name: str, data: bytes | str) -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path


def make_bench(root: Path, settings: ToolSettings | None = None) -> Bench:
    work = root / "work"
    work.mkdir()
    session = Session.create(root / "home", work)
    return Bench(work, session, ToolContext(session=session, settings=settings or ToolSettings()))
