"""How timing an arm can fail."""

from __future__ import annotations

from kernelab.records.timing import ArmStatus


class ArmFault(Exception):
    """An arm cannot be timed; the experiment goes on without it.

    member: the member's name, empty until it is known.
    sticky: the process can do nothing more with the card.
    """

    def __init__(self, status: ArmStatus, note: str, member: str = "", *, sticky: bool = True) -> None:
        super().__init__(note)
        self.sticky = sticky
        self.status: ArmStatus = status
        self.note = note
        self.member = member
