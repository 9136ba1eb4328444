"""Property tests have no deadline: how long an example takes depends on what else the machine does.

Here and not above: the GPU tests run where there is no hypothesis.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("kernelab", deadline=None)
settings.load_profile("kernelab")
