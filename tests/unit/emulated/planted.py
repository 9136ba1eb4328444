"""All planted faults."""

from __future__ import annotations

import planted_copies
import planted_matrices
import planted_memory
import planted_order

FAULTS = [
    *planted_memory.FAULTS,
    *planted_order.FAULTS,
    *planted_copies.FAULTS,
    *planted_matrices.FAULTS,
]
