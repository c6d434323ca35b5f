"""How a plugin says no: votes, and the reason why no pod or node will do."""

from dataclasses import dataclass

PERMIT, ABSTAIN, REJECT = 1, 0, -1
"""Votes."""


@dataclass(frozen=True)
class Reason:
    """Why a node does not fit, and whether evicting pods could change that."""

    text: str
    curable: bool = True
