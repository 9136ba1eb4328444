"""The one exception that a user can cause."""

from __future__ import annotations


class UserError(Exception):
    """Something that the user can mend.

    The message is one line (or one line per fault) that names the file, key or command, the reason, and
    what to do. The command line prints it without a traceback and exits with status 1.
    """
