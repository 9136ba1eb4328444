"""Checking results: every arm in a fresh process, on a GPU or on the emulated device."""
