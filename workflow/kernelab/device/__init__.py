"""Devices: finding one, loading builds onto it and launching them. CuPy is imported here alone."""
