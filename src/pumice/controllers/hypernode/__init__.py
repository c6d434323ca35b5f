"""HyperNodes: made from node labels or from a fabric manager, and counted."""

from pumice.controllers.hypernode.controller import DISCOVERY_CONFIG, HyperNodeController

__all__ = ["DISCOVERY_CONFIG", "HyperNodeController"]
