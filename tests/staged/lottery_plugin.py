"""A plugin that closes nodes by their names."""

from dataclasses import dataclass

import numpy as np

from pumice.plugin import Codes, NodeFacts, Plugin, Reason, Shape, arg


@dataclass(kw_only=True)
class Lottery(Plugin, name="lottery"):
    """Closes nodes whose name begins with a text; by default all of them."""

    reasons = (Reason("node(s) drew a blank", curable=False),)
    prefix: str = arg("lottery.prefix", default="", doc="how names of closed nodes begin")

    def filter_shape(self, shape: Shape, facts: NodeFacts) -> Codes:
        names = facts.label("kubernetes.io/hostname")
        return np.array([not str(name).startswith(self.prefix) for name in names])
