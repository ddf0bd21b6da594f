"""What the tests of this folder share."""

from __future__ import annotations

import pytest

from tests.extension import witness


@pytest.fixture(autouse=True)
def _fresh_witness():
    witness.seen.clear()
