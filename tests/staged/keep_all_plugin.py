"""A plugin that spares every pod."""

from dataclasses import dataclass

import numpy as np

from pumice.plugin import Mask, Plugin, Task


@dataclass(kw_only=True)
class KeepAll(Plugin, name="keep-all"):
    """Keeps all pods."""

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask:
        return np.zeros(len(candidates), dtype=bool)
