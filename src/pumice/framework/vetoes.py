"""Plugins that keep a task from a node even where an action evicts without asking filters."""

import numpy as np

from pumice.core.views import Nodes, Task
from pumice.framework.placing import Placing


def vetoed(placing: Placing, task: Task, node: int) -> bool:
    """Return whether a task cannot be placed on a node as it is now, evictions included."""
    if not placing.vetoing:
        return False
    fit, rows = placing.judged(task), np.array([node])
    nodes = Nodes(placing.snapshot, rows)
    answers = (each.ask(fit, task, nodes, rows) for each in placing.vetoing)
    return any(codes is not None and codes[0] > 0 for codes in answers)
