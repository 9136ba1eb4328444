"""A search in the small project, as text that a test edits."""

from __future__ import annotations

from plan_project import CONFIG

SEARCH = """\
search:
  tiles:
    question: Which tiles are best?
    base: 12_double
    over: {BM: [64, 128], TM: [4, 8, 48], A_PAD: [0, 2]}
"""
SEARCHING = CONFIG + SEARCH
