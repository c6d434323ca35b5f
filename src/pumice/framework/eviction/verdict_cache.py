"""A yes or no for each task, good for a whole session; for plugins that protect single pods."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Mask

_UNKNOWN = -1


class Verdicts:
    """Judges every task once, when it is first asked about."""

    def __init__(self, n_tasks: int, judge: Callable[[int], bool]) -> None:
        self._judge = judge
        self._n_tasks = n_tasks

    @cached_property
    def _known(self) -> NDArray[np.int8]:
        return np.full(self._n_tasks, _UNKNOWN, dtype=np.int8)

    def of(self, rows: list[int] | NDArray[np.intp]) -> Mask:
        """Return the verdicts on some tasks (n,)."""
        index, known = np.asarray(rows, dtype=np.intp), self._known
        for row in index[known[index] == _UNKNOWN].tolist():
            known[row] = self._judge(row)
        return known[index] == 1
