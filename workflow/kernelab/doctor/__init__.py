"""What this machine can do for the project's config, and the fix for each thing that it cannot."""
