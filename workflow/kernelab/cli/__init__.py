"""The command line: one subcommand per step, and the tools that people call by hand."""
