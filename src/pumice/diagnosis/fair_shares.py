"""What namespaces, users and queues used of a cluster, as the next cycle compares it."""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from pumice.api.quantity import base_units
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.runner import Replay
from pumice.framework.plugin_declarations import AccountShare
from pumice.framework.session import Session
from pumice.scheduler import Observer


@dataclass
class FairShares(Observer):
    """Asks the plugins when a session opens."""

    accounts: list[AccountShare] = field(default_factory=list)

    def opened(self, ssn: Session) -> None:
        """Ask each plugin."""
        for plugin in ssn.plugins:
            self.accounts += plugin.fair_shares()

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data, amounts in cores, bytes and pieces."""
        return {"accounts": [_plain(each) for each in self.accounts]}


def fair_shares(world: ClusterState) -> FairShares:
    """Return the accounts of the next cycle."""
    found = FairShares()
    Replay(world).decide(found, brief=True)
    return found


def _plain(account: AccountShare) -> dict[str, Any]:
    usage = {name: base_units(name, amount) for name, amount in account.usage.items() if amount}
    return {**msgspec.structs.asdict(account), "usage": usage}
