"""The common part of equal pods: the request and everything that filters and scores read.

Tasks of one shape get the same answer from every node hook, so answers are kept by shape.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, is_coarse, is_empty, need_of
from pumice.core.tables import ALLOCATED, BOOKED, IDLE, PENDING, PIPELINED, RELEASING, USED, VIEW

Delta = NDArray[np.float64]


@dataclass(slots=True)
class Shape:
    """One distinct pod specification.

    ``request`` is (R, 1) so that it broadcasts against node columns; ``nonzero`` (2, 1) is cpu and
    memory with Kubernetes' defaults for containers without requests, ``waiting_nonzero`` what
    scores by amounts assume before the pod is on a node.
    """

    id: int
    request: Column
    nonzero: Column
    waiting_nonzero: Column
    namespace: str
    spec: Any
    annotations: dict[str, str]
    memo: dict[str, Any] = field(default_factory=dict)
    """What plugins derived from the spec, under their own names."""
    best_effort: bool = field(init=False)
    """Whether it requests nothing."""
    coarse: bool = field(init=False)
    """Whether it requests so much that sums are not exact any more."""
    _need: Column | None = None
    _steps: dict[tuple[str, int, bool], tuple[Delta, Delta]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.best_effort = is_empty(self.request[:, 0])
        self.coarse = is_coarse(self.request[:, 0])

    def widen(self, n_resources: int) -> None:
        """Follow a longer resource axis."""
        pad = n_resources - len(self.request)
        if pad > 0:
            self.request = np.concatenate([self.request, np.zeros((pad, 1))])
            self._need = None
            self._steps.clear()

    @property
    def need(self) -> Column:
        """What a node must have left (R, 1): a scalar that is not requested fits any room."""
        if self._need is None:
            self._need = need_of(self.request)
        return self._need

    def step(self, name: str, sign: int, *, live: bool) -> tuple[Delta, Delta]:
        """Return the change of the node's books (5, R) and of the sums (3, R) by a move.

        Sessions place, bind, pipeline and evict; ingest finds tasks that hold, leave or wait, that
        stray (they hold their node and count for no job) or that are gone.

        ``sign`` -1 is the move undone; without a ``live`` view the view's layer stays.
        """
        key = (name, sign, live)
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = _step(name, sign * self.request[:, 0], live=live)
        return found

    def change(self, before: str, after: str) -> tuple[Delta, Delta]:
        """Return what is added when a task that was found one way is found another way."""
        key = (f"{before}, {after}", 1, True)
        found = self._steps.get(key)
        if found is None:
            old, new = self.step(before, -1, live=True), self.step(after, 1, live=True)
            found = self._steps[key] = (old[0] + new[0], old[1] + new[1])
        return found


_BOOKS: dict[str, dict[int, int]] = {
    "place": {IDLE: -1, USED: 1, VIEW: 1},
    "bind": {IDLE: -1, USED: 1, VIEW: 1},
    "pipeline": {PIPELINED: 1, VIEW: 1},
    "unpipeline": {PIPELINED: -1, VIEW: -1},
    "evict": {RELEASING: 1, VIEW: -1},
    "hold": {IDLE: -1, USED: 1, VIEW: 1},
    "leave": {IDLE: -1, USED: 1, VIEW: 1, RELEASING: 1},
    "stray": {IDLE: -1, USED: 1, VIEW: 1},
    "wait": {},
    "gone": {},
}
_SUMS: dict[str, dict[int, int]] = {
    "place": {ALLOCATED: 1, BOOKED: 1, PENDING: -1},
    "bind": {ALLOCATED: 1, BOOKED: 1, PENDING: -1},
    "pipeline": {BOOKED: 1, PENDING: -1},
    "unpipeline": {BOOKED: -1, PENDING: 1},
    "evict": {ALLOCATED: -1, BOOKED: -1},
    "hold": {ALLOCATED: 1, BOOKED: 1},
    "leave": {},
    "stray": {},
    "wait": {PENDING: 1},
    "gone": {},
}


def layers_of(name: str) -> tuple[list[int], list[int]]:
    """Return how often a step adds the request to each layer of the books and of the sums."""
    books, sums = _BOOKS[name], _SUMS[name]
    return [books.get(i, 0) for i in range(5)], [sums.get(i, 0) for i in range(3)]


def _step(name: str, request: Column, *, live: bool) -> tuple[Delta, Delta]:
    books = np.zeros((5, len(request)))
    for layer, sign in _BOOKS[name].items():
        if live or layer != VIEW:
            books[layer] = sign * request
    sums = np.zeros((3, len(request)))
    for layer, sign in _SUMS[name].items():
        sums[layer] = sign * request
    return books, sums
