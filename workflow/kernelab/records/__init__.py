"""The files that cross between steps: their formats, versions and digests. Pure."""
