"""The one fixture of these tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from nvrtc_kernel import Ran, run_kernel


@pytest.fixture
def run() -> Callable[..., Ran]:
    """Compile a CUDA C++ text and run it on the emulated device."""
    return run_kernel
