from __future__ import annotations

import pytest
from predicted_builds import Catalogue, Listing, read_listing


@pytest.fixture
def listing() -> Listing:
    """Reads SASS in short, `@P0 BRA 0x10`: one instruction a line, 16 bytes each."""
    return read_listing


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return Catalogue()
