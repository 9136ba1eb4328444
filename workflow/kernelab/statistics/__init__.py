"""Ratios with intervals, and the thresholds that judge them: what timing, compare and report all count by. Pure."""
