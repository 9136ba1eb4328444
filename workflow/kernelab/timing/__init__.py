"""How long arms take: fresh processes, mirrored rounds, raw samples kept."""
