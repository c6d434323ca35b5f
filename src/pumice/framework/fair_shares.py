"""How much of the cluster accounts used, as a plugin that remembers it reports it."""

from collections.abc import Mapping

import msgspec


class AccountShare(msgspec.Struct, frozen=True):
    """One namespace, user or queue."""

    kind: str
    name: str
    weight: float
    usage: Mapping[str, float]
    """Resource to the mean amount, in the units of the tables; recent time counts more."""
    share: float
    """That of the cluster, for the resource that counts."""
    factor: float
    """1: used nothing; 0.5: its part by weight of what all of its kind used; 0: far more."""
