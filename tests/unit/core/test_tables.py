"""The tables: layers of books and sums, and the values of an empty row."""

from typing import Any

import numpy as np
import pytest

from pumice.core.status import N_STATUS
from pumice.core.tables import (
    ALLOCATED,
    BOOKED,
    IDLE,
    NOWHERE,
    PENDING,
    PIPELINED,
    RELEASING,
    USED,
    VIEW,
    JobTable,
    NamespaceTable,
    NodeTable,
    QueueTable,
    TaskTable,
)


def test_books_of_nodes_are_named_layers() -> None:
    nodes = NodeTable(3)
    row = nodes.new_row()
    nodes.books[[IDLE, USED, RELEASING, PIPELINED, VIEW], 0, row] = 10, 20, 3, 4, 50
    named = (nodes.idle, nodes.used, nodes.releasing, nodes.pipelined, nodes.view_used)
    assert [float(layer[0, row]) for layer in named] == [10, 20, 3, 4, 50]


def test_future_idle_counts_leaving_tasks_out_and_pipelined_ones_in() -> None:
    nodes = NodeTable(3)
    row = nodes.new_row()
    nodes.books[[IDLE, RELEASING, PIPELINED], 0, row] = 10, 3, 4
    assert nodes.future_idle[0, row] == 9


def test_sums_are_named_layers() -> None:
    for table in (JobTable(3), QueueTable(3), NamespaceTable(3)):
        row = table.new_row()
        table.sums[[ALLOCATED, BOOKED, PENDING], 1, row] = 1, 2, 3
        named = (table.allocated, table.allocated_or_pipelined, table.pending)
        assert [float(layer[1, row]) for layer in named] == [1, 2, 3]


FILLED: dict[Any, dict[str, Any]] = {
    NodeTable: {},
    TaskTable: {
        **dict.fromkeys(("node", "job", "shape", "label_class", "role", "nominated"), NOWHERE),
        "started": np.nan,
        "index": -1,
    },
    JobTable: {"queue": NOWHERE, "namespace": NOWHERE},
    QueueTable: {"capability": np.inf, "reclaimable": True, "parent": NOWHERE},
    NamespaceTable: {},
}
SHAPES: dict[Any, dict[str, Any]] = {
    NodeTable: {
        "books": (5, 3),
        "allocatable": (3,),
        "capacity_amounts": (3,),
        "view_nonzero": (2,),
    },
    TaskTable: {},
    JobTable: {
        "sums": (3, 3),
        "counts": (N_STATUS,),
        "min_resources": (3,),
        "stated_counts": (3,),
    },
    QueueTable: {
        "sums": (3, 3),
        **dict.fromkeys(("capability", "deserved", "guarantee"), (3,)),
        **dict.fromkeys(("capability_given", "deserved_given", "guarantee_given"), (3,)),
    },
    NamespaceTable: {"sums": (3, 3)},
}


@pytest.mark.parametrize("kind", FILLED, ids=lambda kind: kind.__name__)
def test_a_new_row_holds_nothing_unless_stated(kind: Any) -> None:
    """Also one that was used before, and with resources learnt later."""
    table = kind(2)
    row = table.new_row()
    table.widen(3)
    table.clear_row(row)
    assert table.new_row() == row
    columns = {name: each for name, each in vars(table).items() if isinstance(each, np.ndarray)}
    for name, column in columns.items():
        wanted = np.full(SHAPES[kind].get(name, ()), FILLED[kind].get(name, 0))
        np.testing.assert_array_equal(column[..., row], wanted, err_msg=name)
    assert set(FILLED[kind]) | set(SHAPES[kind]) <= set(columns)
    assert not table.row_of


def test_future_idle_of_one_node_is_that_of_all() -> None:
    nodes = NodeTable(3)
    nodes.add_rows(4)
    nodes.books[:] = np.random.default_rng(0).integers(0, 99, nodes.books.shape)
    for row in range(4):
        assert nodes.future_idle_of(row).tolist() == nodes.future_idle[:, row].tolist()


def test_a_new_task_belongs_nowhere() -> None:
    tasks = TaskTable(3)
    row = tasks.new_row()
    links = (tasks.node, tasks.job, tasks.shape, tasks.role, tasks.nominated)
    assert [int(link[row]) for link in links] == [NOWHERE] * 5


def test_a_new_queue_is_closed_and_without_limit() -> None:
    queues = QueueTable(2)
    row = queues.new_row()
    queues.widen(3)
    assert not queues.open[row]
    assert queues.capability[:, row].tolist() == [np.inf] * 3
    assert queues.deserved[:, row].tolist() == [0] * 3
