from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.tool.support import Bench, make_bench


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = make_bench(tmp_path)
    yield made
    await made.context.close()
    made.session.close()
