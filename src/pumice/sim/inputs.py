"""From files to a simulation: which reader, which nodes.

Used by commands and sweeps: ``load`` the input, ``simulate`` it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pumice.api.annotations import HOSTNAME
from pumice.api.conf import SchedulerConf, parse_conf
from pumice.api.manifests import load_manifests
from pumice.api.meta import KubeObject
from pumice.api.named_files import read_conf_file
from pumice.api.objects import Node, NodeStatus, ObjectMeta, Pod, ResourceList
from pumice.api.wording import EMPTY_FILE, counted
from pumice.cache.requests import pod_request, resource_lists
from pumice.core.resources import Resources
from pumice.errors import InputError, Words
from pumice.framework.registry import PluginSource, load_plugins
from pumice.sim.engine import Engine, simulated_scheduler
from pumice.sim.job_classes import above_zero
from pumice.sim.job_run import Outcome
from pumice.sim.options import FORMATS, SimulationOptions, check_arrivals, check_nodes
from pumice.sim.readers import openb
from pumice.sim.readers.node_sizes import outlier_notes
from pumice.sim.readers.registry import READERS, recognised
from pumice.sim.readers.table_files import columns_of, first_row, is_parquet, read_text
from pumice.sim.workload import NodeHint, Workload

_LOAD = 0.8
"""The part of a cluster that is sized for a trace which the trace's work would fill."""


@dataclass(frozen=True, slots=True)
class SimulationInput:
    """A workload and the cluster it runs on."""

    workload: Workload
    cluster: tuple[KubeObject, ...]
    notes: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    """Those of the notes that are about a probable mistake of the trace."""


def recognise(path: Path) -> str:
    """Return the format of a trace by its content.

    Raises:
        InputError: it is unknown.
    """
    text = "" if is_parquet(path) else read_text(path)
    columns = set(first_row(text) if text else columns_of(path))
    found = recognised(columns, text)
    if not found:
        raise InputError(
            wanted="a trace of a known format",
            found=text[:60].strip() or _columns(columns),
            file=str(path),
            hint=f"known: {', '.join(FORMATS)}; name it with --format",
        )
    return found


def _columns(names: set[str]) -> str:
    return f"the columns {', '.join(sorted(names))}" if names else EMPTY_FILE


def read_workload(path: Path, *, trace_format: str = "", seed: int = 0) -> Workload:
    """Read a trace; the format is recognised unless it is named.

    Raises:
        InputError: The file cannot be read as such a trace, or has no jobs.
    """
    name = trace_format or recognise(path)
    if name not in READERS:
        raise InputError(wanted=f"a format: {', '.join(FORMATS)}", found=name, field="--format")
    workload = READERS[name].read(path, seed)
    if not workload.jobs:
        hint = "; ".join(note for note in workload.notes if "left out" in note)
        raise InputError(wanted="at least one job", found=Words("none"), file=str(path), hint=hint)
    return workload


def read_configuration(path: Path, name: str = "") -> SchedulerConf:
    """Read a scheduler configuration; ``name`` is the name of the file in errors.

    Raises:
        InputError: The file cannot be read, or is not a configuration.
    """
    text, source = read_conf_file(path)
    return parse_conf(text, source=name or source)


def read_cluster(path: Path) -> list[KubeObject]:
    """Read a cluster: manifests of nodes, queues and more, or a list of nodes of openb.

    Raises:
        InputError: The file is neither, or has no node.
    """
    if set(columns_of(path)) >= openb.NODE_COLUMNS:
        things: list[KubeObject] = [*openb.read_nodes(path)]
    else:
        things = [thing for thing in load_manifests(path) if not isinstance(thing, Pod)]
    if not any(isinstance(thing, Node) for thing in things):
        raise InputError(wanted="at least one node", found=Words("none"), file=str(path))
    check_nodes(sum(isinstance(thing, Node) for thing in things), str(path))
    return things


def load(
    trace: Path,
    *,
    nodes: Path | None = None,
    trace_format: str = "",
    seed: int = 0,
    limit: int | None = None,
    speed: float = 1.0,
    late_pods: bool = False,
) -> SimulationInput:
    """Read a trace and its cluster; without one, nodes are made to fit the trace.

    Args:
        trace: The file of the jobs.
        nodes: The file of the cluster; takes the place of nodes in the trace.
        trace_format: One of ``FORMATS``; empty: recognised.
        seed: For a workload that is drawn.
        limit: How many jobs, from the first.
        speed: How many times faster than in the trace jobs arrive.
        late_pods: Whether pods are created only once their job is admitted.
    """
    workload = read_workload(trace, trace_format=trace_format, seed=seed)
    cluster = None if nodes is None else read_cluster(nodes)
    return prepare(
        workload, cluster, file=str(trace), limit=limit, speed=speed, late_pods=late_pods
    )


def prepare(
    workload: Workload,
    cluster: Sequence[KubeObject] | None = None,
    *,
    file: str = "",
    limit: int | None = None,
    speed: float = 1.0,
    late_pods: bool = False,
) -> SimulationInput:
    """Join a workload and its cluster; without one, nodes are made to fit the workload.

    Raises:
        InputError: Jobs or nodes are beyond a limit, or no node is known.
    """
    if limit is not None:
        workload = workload.first(limit)
    if speed != 1.0:
        workload = workload.faster(speed)
    if late_pods:
        workload = workload.with_late_pods()
    check_arrivals(workload.jobs, file or workload.name)
    objects = list(workload.objects)
    notes = list(workload.notes)
    odd: list[str] = []
    if cluster is not None:
        names = {(type(thing), thing.metadata.name) for thing in cluster}
        objects = [
            thing
            for thing in objects
            if not isinstance(thing, Node) and (type(thing), thing.metadata.name) not in names
        ]
        objects += cluster
    elif not any(isinstance(thing, Node) for thing in objects):
        hint = _hint_of(workload)
        load = _load(workload, hint)
        made = _made_nodes(workload, hint, load)
        notes.append(_describe_nodes(made, hint, load))
        odd = outlier_notes(workload.jobs, hint)
        objects += made
    return SimulationInput(workload, tuple(objects), (*notes, *odd), tuple(odd))


def simulate(
    setup: SimulationInput,
    conf: SchedulerConf,
    options: SimulationOptions,
    *,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
    plugins: Sequence[PluginSource] = (),
) -> Outcome:
    """Run a workload to its end; ``plugins`` are further plugins: classes, files or modules."""
    engine = Engine(
        setup.workload,
        setup.cluster,
        conf,
        scheduler=simulated_scheduler(conf, seed=seed, plugins=load_plugins(plugins)),
        period=options.period,
        evicted=options.evicted,
        start=options.start,
    )
    return engine.run(progress)


def make_nodes(workload: Workload) -> list[Node]:
    """Make equal nodes, as stated in the trace or as many as its work would fill well.

    Raises:
        InputError: The trace does not describe a node.
    """
    hint = _hint_of(workload)
    return _made_nodes(workload, hint, _load(workload, hint))


def _hint_of(workload: Workload) -> NodeHint:
    """Return what a trace states about its nodes.

    Raises:
        InputError: It states nothing.
    """
    if workload.node_hint is None:
        raise InputError(
            wanted="nodes", found=Words("none"), file=workload.name, hint="name a file with --nodes"
        )
    return workload.node_hint


def _made_nodes(workload: Workload, hint: NodeHint, load: "_Load") -> list[Node]:
    count = hint.count
    if count is None:
        count = max(1, math.ceil(load.while_coming / _LOAD), math.ceil(load.largest))
    check_nodes(count, workload.name)
    return equal_nodes(count, hint.allocatable)


def equal_nodes(count: int, allocatable: Mapping[str, str]) -> list[Node]:
    """Make a number of equal nodes, named by number."""
    digits = len(str(count - 1))
    amounts: ResourceList = {**allocatable}
    return [
        Node(
            metadata=ObjectMeta(name=name, labels={HOSTNAME: name}),
            status=NodeStatus(allocatable=amounts, capacity=amounts),
        )
        for name in (f"node-{i:0{digits}d}" for i in range(count))
    ]


def _describe_nodes(made: Sequence[Node], hint: NodeHint, load: "_Load") -> str:
    amounts = ", ".join(f"{amount} {name}" for name, amount in hint.allocatable.items())
    n = len(made)
    why = ", as many as the largest job needs" if load.largest > load.while_coming / _LOAD else ""
    source = "" if hint.count is None else " as the trace states"
    each = ", each" if n > 1 else "," * bool(source)
    return (
        f"{counted(n, 'node')}{source}{each} with {amounts}{'' if source else why}: "
        "if no job waited, "
        f"{100 * load.while_coming / n:.3g} % of them would be in use while jobs arrive, "
        f"{100 * load.until_end / n:.3g} % until the last job ends"
    )


@dataclass(frozen=True, slots=True)
class _Load:
    """How many of equal nodes a workload fills, on average, if no job waits."""

    while_coming: float
    """From the first arrival to the last."""
    until_end: float
    """From the first arrival to the last end."""
    largest: float
    """By its largest job."""


def _load(workload: Workload, hint: NodeHint) -> _Load:
    resources = Resources()
    resources.learn(hint.allocatable)
    specs = {id(task.spec): task.spec for job in workload.jobs for task in job.tasks}
    for spec in specs.values():
        for amounts in resource_lists(spec):
            resources.learn(amounts)
    node = resources.vector(hint.allocatable)
    whole = np.where(node > 0, node, np.inf)
    parts = {  # of a node that a pod fills
        key: above_zero(pod_request(spec, resources) / whole) for key, spec in specs.items()
    }
    while_coming, in_all, largest = ([0.0] * len(resources) for _ in range(3))
    coming = last = max(workload.jobs[-1].arrival, 1.0)
    for job in workload.jobs:
        asked = [0.0] * len(resources)
        for task in job.tasks:
            seconds = task.run_seconds
            for at, amount in parts[id(task.spec)]:
                part = amount * task.count
                asked[at] += part
                while_coming[at] += part * min(seconds, coming - job.arrival)
                in_all[at] += part * seconds
        largest = [*map(max, largest, asked)]
        last = max(last, job.arrival + job.run_seconds)
    return _Load(max(while_coming) / coming, max(in_all) / last, max(largest))
