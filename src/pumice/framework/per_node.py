"""Node hooks that look at one node at a time."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pumice.core.views import NodeRow, Nodes, Task

_Method = TypeVar("_Method", bound=Callable[..., Any])


def per_node(method: _Method) -> _Method:
    """Make a node hook that looks at one node at a time: ``f(self, task, node: NodeRow)``.

    Slower, for what columns cannot express.
    """

    @functools.wraps(method)
    def loop(self: Any, task: Task, nodes: Nodes) -> NDArray[Any]:
        snapshot = nodes.snapshot
        answers = [method(self, task, NodeRow(snapshot, int(i))) for i in nodes.index]
        return np.asarray(answers, dtype=np.float64 if "score" in method.__name__ else None)

    loop.per_node = True  # type: ignore[attr-defined]
    return loop  # type: ignore[return-value]
