"""The exceptions that end a command with one line: the user's mistake, and a broken machine."""

from __future__ import annotations


class UserError(Exception):
    """Something that the user can mend.

    The message is one line (or one line per fault) that names the file, key or command, the reason, and
    what to do. The command line prints it without a traceback and exits with status 1.
    """


class BrokenMachine(RuntimeError):
    """The machine, not the kernel, is at fault: no memory, no driver, a process killed from outside.

    Nothing may be recorded about the kernel. The command exits with status 2, and Snakemake tries again.
    """
