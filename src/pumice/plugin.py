"""All that the author of a plugin needs; docs/writing-plugins.md is the introduction.

To write one
    ``Plugin`` is the base class, each hook documented on it; ``per_node`` makes a node hook look at
    one node at a time; ``arg`` and ``arg_pattern`` declare arguments, of ``Duration`` or ``Amount``
    or any plain type; ``Fault`` names an argument that cannot be used.
What ``on_open`` and ``on_close`` receive
    ``PluginSession``: the clock, the memory between cycles, single rows, columns of a plugin's own.
What other hooks receive
    columns of rows: ``NodeFacts``, ``Nodes``, ``Jobs``, ``Queues``, ``Tasks``;
    single ones: ``Task``, ``Job``, ``Queue``, ``NodeRow``, ``Shape``;
    for network topology and whole jobs: ``SubGroup``, ``Domain``, ``GangEviction``.
What hooks return
    ``Column`` (scores, keys), ``Mask`` (which of them), ``Codes`` (answers of filters), ``Reason``
    (why a node does not fit), ``PERMIT``, ``ABSTAIN`` or ``REJECT`` (votes), ``Refusal`` (a no with
    a ``Why`` and its numbers; ``Verdict`` and ``Vote`` are the types that allow it;
    ``within_quota`` makes one of amounts).
Codes in explanations
    ``Cause`` (why a job waits) and ``Spared`` (why a pod was not evicted): the codes that a
    ``Reason``, a ``Refusal`` and the attribute ``spares`` name.
What ``node_terms`` returns
    ``AmountTerm``, made by ``packed_score``, ``requested_score`` or ``strategy_score``, or
    ``POD_LIMIT``; ``ColumnTerm`` for a score in a column of the plugin's own, ``PodCounts`` for
    refusals by the number of pods in a domain, ``RankTerm`` for scores that compare nodes.
What else a plugin may declare
    ``SimulatorAssumptions``: makes simulations with it fast; ``QueueLimits`` and
    ``AdmissionLimit``: the limits it enforces on queues, for metrics and the simulator;
    ``AccountShare``: what an account used, for the command line and the dashboard.
What policy tests may state
    functions in the attribute ``invariants``, by the names under `always`; they are given
    ``CycleFacts``, what one cycle did, and yield a sentence for each violation.
To read columns
    ``Texts`` is a column of texts, ``Ints`` one of whole numbers; ``CPU``, ``MEMORY`` and ``PODS``
    are rows of the resource axis, ``NOWHERE`` is the row of no node, job or queue; ``Status`` and
    ``ALLOCATED_CLASS`` are states of tasks; ``Snapshot`` has all tables.
To compute
    ``fits``, ``share``, ``dominant_share`` and ``weighted_sum`` compare and add amounts, ``STEP``
    is the smallest that counts; ``epoch`` and ``parse_duration`` read times, and raise
    ``InputError`` on anything else.

To test one: ``check_plugin`` of ``pumice.testing.conformance``, and scenario files.  The names here
are stable; modules beneath may move.
"""

from pumice.api.codes import Cause, Spared
from pumice.api.cycle_facts import CycleFacts
from pumice.api.duration import parse_duration
from pumice.api.times import epoch
from pumice.core.resources import (
    CPU,
    MEMORY,
    PODS,
    STEP,
    Column,
    Mask,
    dominant_share,
    fits,
    share,
    weighted_sum,
)
from pumice.core.snapshot import Snapshot
from pumice.core.status import ALLOCATED_CLASS, Status
from pumice.core.tables import NOWHERE, Ints, Shape
from pumice.core.views import Job, NodeFacts, NodeRow, Nodes, Queue, Task, Texts
from pumice.errors import InputError
from pumice.framework.arguments import Amount, Duration, Fault, arg, arg_pattern
from pumice.framework.columns import Jobs, Queues, Tasks
from pumice.framework.placement.kernel import (
    POD_LIMIT,
    AmountTerm,
    ColumnTerm,
    PodCounts,
    RankTerm,
    packed_score,
    requested_score,
    strategy_score,
)
from pumice.framework.plugin import Codes, Plugin, per_node
from pumice.framework.plugin_declarations import AccountShare, SimulatorAssumptions
from pumice.framework.plugin_session import PluginSession
from pumice.framework.queue_limits.limits import AdmissionLimit, QueueLimits
from pumice.framework.refusals import (
    ABSTAIN,
    PERMIT,
    REJECT,
    Reason,
    Refusal,
    Verdict,
    Vote,
    Why,
    within_quota,
)
from pumice.framework.topology.domains import Domain, GangEviction, SubGroup

__all__ = [
    "ABSTAIN",
    "ALLOCATED_CLASS",
    "CPU",
    "MEMORY",
    "NOWHERE",
    "PERMIT",
    "PODS",
    "POD_LIMIT",
    "REJECT",
    "STEP",
    "AccountShare",
    "AdmissionLimit",
    "Amount",
    "AmountTerm",
    "Cause",
    "Codes",
    "Column",
    "ColumnTerm",
    "CycleFacts",
    "Domain",
    "Duration",
    "Fault",
    "GangEviction",
    "InputError",
    "Ints",
    "Job",
    "Jobs",
    "Mask",
    "NodeFacts",
    "NodeRow",
    "Nodes",
    "Plugin",
    "PluginSession",
    "PodCounts",
    "Queue",
    "QueueLimits",
    "Queues",
    "RankTerm",
    "Reason",
    "Refusal",
    "Shape",
    "SimulatorAssumptions",
    "Snapshot",
    "Spared",
    "Status",
    "SubGroup",
    "Task",
    "Tasks",
    "Texts",
    "Verdict",
    "Vote",
    "Why",
    "arg",
    "arg_pattern",
    "dominant_share",
    "epoch",
    "fits",
    "packed_score",
    "parse_duration",
    "per_node",
    "requested_score",
    "share",
    "strategy_score",
    "weighted_sum",
    "within_quota",
]
