"""What emulator_against_hardware.py is made of: launches without CuPy, ncu's counters, planted faults and their verdicts."""
