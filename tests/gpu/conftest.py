"""A process that has used the GPU counts as one of its users: the test that runs the pipeline, which times alone, comes first."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path.name != "test_compare.py")
