"""Compare: from builds, raw samples and profiles to one verdict per comparison."""
