"""Shared by all rows with a Kubernetes object behind them: labels, annotations, an age.

Base of the views that hooks receive: ``ObjectRows`` for some rows as columns, ``ObjectRow`` for
one.  Nothing is computed before it is read.
"""

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pumice.core.resources import Column, Resources
from pumice.core.snapshot import Snapshot
from pumice.core.tables import JobTable, NodeTable, QueueTable, TaskTable

Texts = NDArray[np.object_]
"""A column of texts (n,); ``column == "text"`` compares each."""
ObjectTable = NodeTable | TaskTable | JobTable | QueueTable


def texts(values: Sequence[str]) -> Texts:
    """Make a column of texts."""
    column = np.empty(len(values), dtype=np.object_)
    column[:] = values
    return column


class ObjectRows:
    """Some rows of a table; every column is an array whose last axis is the row."""

    __slots__ = ("_table", "rows", "snapshot")
    snapshot: Snapshot
    """The cluster these rows belong to."""
    rows: slice | NDArray[np.intp]
    _table: ObjectTable

    def __len__(self) -> int:
        rows = self.rows
        return len(range(self._table.n)[rows] if isinstance(rows, slice) else rows)

    @property
    def index(self) -> NDArray[np.intp]:
        """Row numbers in the whole table (n,)."""
        rows = self.rows
        return rows if isinstance(rows, np.ndarray) else np.arange(self._table.n)[rows]

    def part(self, chosen: slice) -> Self:
        """Return some of these rows, counted among them."""
        part = copy(self)
        part.rows = self.index[chosen]
        return part

    @property
    def resources(self) -> Resources:
        """Resource names and their rows: ``resources.row("nvidia.com/gpu")``."""
        return self.snapshot.resources

    @property
    def objects(self) -> list[Any]:
        """Their objects as the cluster has them, None where there is none."""
        return self._pick(self._table.objects)

    @property
    def labels(self) -> list[dict[str, str]]:
        """Their labels."""
        return [{} if each is None else each.metadata.labels for each in self.objects]

    @property
    def annotations(self) -> list[dict[str, str]]:
        """Their annotations."""
        return [{} if each is None else each.metadata.annotations for each in self.objects]

    def label(self, key: str, absent: str = "") -> Texts:
        """Return one label of each (n,); ``absent`` where it is not set."""
        return texts([labels.get(key, absent) for labels in self.labels])

    def annotation(self, key: str, absent: str = "") -> Texts:
        """Return one annotation of each (n,); ``absent`` where it is not set."""
        return texts([notes.get(key, absent) for notes in self.annotations])

    @property
    def created(self) -> Column:
        """When they were created, in seconds since 1970; 0 where it is not stated (n,)."""
        return self._table.created[self.rows]

    def _pick(self, values: Sequence[Any]) -> list[Any]:
        return [values[i] for i in self.index.tolist()]


class NamespacedRows(ObjectRows):
    """Some rows of a table whose objects live in namespaces."""

    __slots__ = ()
    _table: TaskTable | JobTable

    @property
    def keys(self) -> Texts:
        """``namespace/name`` (n,)."""
        return texts(self._pick(self._table.keys))

    @property
    def names(self) -> Texts:
        """Their names (n,)."""
        return texts([key.partition("/")[2] for key in self._pick(self._table.keys)])

    @property
    def namespaces(self) -> Texts:
        """Their namespaces (n,)."""
        return texts([key.partition("/")[0] for key in self._pick(self._table.keys)])


class HoldingRows(ObjectRows):
    """Some jobs or queues, with what their tasks hold and ask for."""

    __slots__ = ()
    _table: JobTable | QueueTable

    @property
    def allocated(self) -> Column:
        """What their tasks hold (R, n)."""
        return self._table.allocated[:, self.rows]

    @property
    def allocated_or_pipelined(self) -> Column:
        """What their tasks hold or were promised (R, n)."""
        return self._table.allocated_or_pipelined[:, self.rows]

    @property
    def pending(self) -> Column:
        """What their pending tasks ask for (R, n)."""
        return self._table.pending[:, self.rows]


class ObjectRow:
    """One row of a table."""

    __slots__ = ("_table", "row")
    row: int
    _table: ObjectTable

    @property
    def object(self) -> Any:
        """The object as the cluster has it, None if there is none."""
        return self._table.objects[self.row]

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        thing = self.object
        return {} if thing is None else thing.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        """Its annotations."""
        thing = self.object
        return {} if thing is None else thing.metadata.annotations

    @property
    def created(self) -> float:
        """When it was created, in seconds since 1970; 0 if it is not stated."""
        return float(self._table.created[self.row])


class NamespacedRow(ObjectRow):
    """One row of a table whose objects live in namespaces."""

    __slots__ = ()
    _table: TaskTable | JobTable

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return self._table.keys[self.row]

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.partition("/")[2]

    @property
    def namespace(self) -> str:
        """Its namespace."""
        return self.key.partition("/")[0]


class HoldingRow(ObjectRow):
    """One job or queue, with what its tasks hold and ask for."""

    __slots__ = ()
    _table: JobTable | QueueTable

    @property
    def allocated(self) -> Column:
        """What its tasks hold (R,)."""
        return self._table.allocated[:, self.row]

    @property
    def allocated_or_pipelined(self) -> Column:
        """What its tasks hold or were promised (R,)."""
        return self._table.allocated_or_pipelined[:, self.row]

    @property
    def pending(self) -> Column:
        """What its pending tasks ask for (R,)."""
        return self._table.pending[:, self.row]
