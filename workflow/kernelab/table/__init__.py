"""The table: every record of a plan as one row per experiment and arm."""
