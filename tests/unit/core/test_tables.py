"""The tables: layers of books and sums, and the values of an empty row."""

import numpy as np

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
