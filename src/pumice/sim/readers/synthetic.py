"""Made-up workloads: arrivals, gang sizes and run times drawn at random, the same for one seed.

A file of kind SyntheticWorkload names the distributions.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pumice.api.decode import decode
from pumice.api.manifests import documents_in
from pumice.api.meta import KubeObject
from pumice.api.objects import ObjectMeta, PriorityClass, Queue, QueueSpec, QueueStatus
from pumice.api.quantity import Quantity, check_amounts
from pumice.api.wording import EMPTY_FILE
from pumice.errors import InputError, ManifestError
from pumice.sim.options import (
    MAX_DESCRIPTION_BYTES,
    MAX_JOB_PODS,
    MAX_JOBS,
    MAX_PODS,
    MAX_SECONDS,
    check_at_most,
    check_nodes,
    within_limits,
)
from pumice.sim.readers.table_files import read_text
from pumice.sim.workload import JobSpec, NodeHint, PodSpecs, TaskSpec, Workload, expected, in_order

KIND = "SyntheticWorkload"

_MOST_PART = 1e12
Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Arrivals(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """When jobs arrive: at random, evenly, or many at once."""

    process: Literal["poisson", "uniform", "bursts"] = "poisson"
    mean_seconds: Positive = 30.0
    """Between two jobs, on average."""
    burst: Count = 20
    """Jobs that arrive together, for bursts."""


class Durations(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How long pods run."""

    distribution: Literal["lognormal", "exponential", "uniform", "constant"] = "lognormal"
    median: Positive = 600.0
    """Or the mean, for exponential; the middle, for uniform."""
    sigma: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    minimum: Positive = 1.0
    maximum: Positive = 7 * 86400.0


class Walltimes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """How long users say that their jobs run: longer than they do."""

    factor: Annotated[float, msgspec.Meta(ge=1, le=1e6)] = 1.0
    """The stated time is up to so many times the run time."""
    distribution: Literal["uniform", "constant"] = "uniform"
    """Drawn between the run time and ``factor`` times it, or always ``factor`` times it."""
    step: Annotated[float, msgspec.Meta(ge=0, le=MAX_SECONDS)] = 0.0
    """Stated times are rounded up to a multiple of so many seconds; 0: they are not."""


class QueueShare(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A queue: its part of the jobs, and its limits."""

    name: str
    share: float = 1.0
    weight: int = 1
    deserved: dict[str, Quantity] = {}
    guarantee: dict[str, Quantity] = {}
    capability: dict[str, Quantity] = {}

    def __post_init__(self) -> None:
        check_amounts(self.deserved, "deserved")
        check_amounts(self.guarantee, "guarantee")
        check_amounts(self.capability, "capability")


class Nodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """The cluster: a number of equal nodes."""

    count: Count
    allocatable: dict[str, Quantity]

    def __post_init__(self) -> None:
        check_amounts(self.allocatable, "allocatable")


class Synthetic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A whole file."""

    api_version: str
    kind: Literal["SyntheticWorkload"]
    jobs: Count
    pod: dict[str, Quantity]
    arrivals: Arrivals = Arrivals()
    durations: Durations = Durations()
    walltimes: Walltimes | None = None
    """The times that users ask for; None: they state none."""
    sizes: dict[Count, float] = msgspec.field(default_factory=lambda: {1: 1.0})
    """Pods of a job to how often."""
    priorities: dict[str, float] = {}
    """Priority class to how often; what is left has none."""
    priority_values: dict[str, int] = {}
    queues: list[QueueShare] = []
    nodes: Nodes | None = None

    def __post_init__(self) -> None:
        check_amounts(self.pod, "pod")


def read(path: Path, *, seed: int) -> Workload:
    """Draw the workload that a file describes.

    Raises:
        InputError: The file is not such a description.
    """
    documents = documents_in(read_text(path, MAX_DESCRIPTION_BYTES), str(path))
    if not documents:
        raise InputError(wanted=f"a {KIND}", found=EMPTY_FILE, file=str(path))
    try:
        spec = decode(documents[0].content, Synthetic, source=str(path), strict=False)
    except ManifestError as error:
        error.subject, error.file = KIND, documents[0].place_of(error.path)
        raise
    _check(spec, str(path))
    return generate(spec, name=path.name, seed=seed)


def _check(spec: Synthetic, file: str) -> None:
    """Check the combination of values, and the limits."""
    check_at_most(spec.jobs, MAX_JOBS, "jobs", file=file, field="jobs")
    _check_parts(spec, file)
    check_at_most(max(spec.sizes), MAX_JOB_PODS, "pods of a job", file=file, field="sizes")
    if spec.nodes is not None:
        check_nodes(spec.nodes.count, file, "nodes.count")
    mean_size = sum(n * part for n, part in spec.sizes.items()) / (sum(spec.sizes.values()) or 1.0)
    for found, most, what, field in (
        (spec.jobs * mean_size, MAX_PODS, "pods in all", "jobs and sizes"),
        (spec.jobs * spec.arrivals.mean_seconds, MAX_SECONDS, "seconds", "jobs and arrivals"),
        (spec.durations.minimum, MAX_SECONDS, "seconds", "durations.minimum"),
        (min(spec.durations.median, spec.durations.maximum), MAX_SECONDS, "seconds", "durations"),
    ):
        check_at_most(found, most, what, file=file, field=field)
    times = spec.durations
    highest = times.median if times.distribution == "uniform" else times.maximum
    if times.minimum > min(highest, times.maximum):
        raise InputError(
            wanted=f"at most {min(highest, times.maximum):g}",
            found=times.minimum,
            field="durations.minimum",
            file=file,
        )
    names = [queue.name for queue in spec.queues]
    if len(set(names)) < len(names):
        raise InputError(
            wanted="queues with different names", found=names, field="queues", file=file
        )


def _check_parts(spec: Synthetic, file: str) -> None:
    """Check frequencies; a text may contain NaN."""
    for field, parts in (
        ("sizes", list(spec.sizes.values())),
        ("queues.share", [queue.share for queue in spec.queues] or [1.0]),
        ("priorities", [1.0, *spec.priorities.values()]),
    ):
        if not all(0 <= part <= _MOST_PART for part in parts) or not sum(parts) > 0:
            raise InputError(
                wanted="parts from 0 up, not all 0", found=parts, field=field, file=file
            )


def generate(spec: Synthetic, *, name: str, seed: int) -> Workload:
    """Draw jobs; equal seeds produce equal jobs."""
    rng = np.random.default_rng(seed)
    n = spec.jobs
    queues = spec.queues or [QueueShare(name="default")]
    arrivals = _arrivals(spec.arrivals, n, rng)
    seconds = _durations(spec.durations, n, rng)
    sizes = rng.choice(list(spec.sizes), n, p=_parts(list(spec.sizes.values())))
    shares = rng.choice(len(queues), n, p=_parts([queue.share for queue in queues]))
    classes = ["", *spec.priorities]
    rest = max(0.0, 1.0 - sum(spec.priorities.values()))
    ranks = rng.choice(len(classes), n, p=_parts([rest, *spec.priorities.values()]))
    walltimes = _walltimes(spec.walltimes, seconds, rng)  # last: other draws stay as they are
    pod = PodSpecs().spec({name: str(amount) for name, amount in spec.pod.items()})
    jobs = (
        JobSpec(
            name=f"job-{i:06d}",
            arrival=float(arrivals[i]),
            tasks=(TaskSpec(pod, int(sizes[i]), float(seconds[i])),),
            min_member=int(sizes[i]),
            queue=queues[int(shares[i])].name,
            priority_class=classes[int(ranks[i])],
            annotations=expected(None if walltimes is None else float(walltimes[i])),
        )
        for i in range(n)
    )
    hint = None
    if spec.nodes is not None:
        amounts = {name: str(amount) for name, amount in spec.nodes.allocatable.items()}
        hint = NodeHint({"pods": "110", **amounts}, spec.nodes.count)
    return Workload(
        name=name,
        format="synthetic",
        jobs=in_order(within_limits(jobs, name)),
        objects=(*map(_queue, queues), *_classes(spec)),
        node_hint=hint,
    )


def _parts(weights: list[float]) -> NDArray[np.float64]:
    column = np.asarray(weights, dtype=float)
    return column / column.sum()


def _arrivals(spec: Arrivals, n: int, rng: Generator) -> NDArray[np.float64]:
    """Return times in whole milliseconds, so that they print the same everywhere."""
    if spec.process == "uniform":
        times = np.arange(n) * spec.mean_seconds
    elif spec.process == "bursts":
        size = max(spec.burst, 1)
        gaps = rng.exponential(spec.mean_seconds * size, -(-n // size))
        times = np.repeat(gaps.cumsum(), min(size, n))[:n]
    else:
        times = rng.exponential(spec.mean_seconds, n).cumsum()
    return np.asarray(np.round(times, 3), dtype=np.float64)


def _durations(spec: Durations, n: int, rng: Generator) -> NDArray[np.float64]:
    match spec.distribution:
        case "lognormal":
            drawn = rng.lognormal(np.log(spec.median), spec.sigma, n)
        case "exponential":
            drawn = rng.exponential(spec.median, n)
        case "uniform":
            drawn = rng.uniform(spec.minimum, 2 * spec.median - spec.minimum, n)
        case _:
            drawn = np.full(n, spec.median)
    clipped = np.round(np.clip(drawn, spec.minimum, spec.maximum), 3)
    return np.asarray(clipped, dtype=np.float64)


def _walltimes(
    spec: Walltimes | None, seconds: NDArray[np.float64], rng: Generator
) -> NDArray[np.float64] | None:
    """Return what users ask for: never less than their jobs run."""
    if spec is None:
        return None
    factors = rng.uniform(1.0, spec.factor, len(seconds))
    if spec.distribution == "constant":
        factors = np.full(len(seconds), spec.factor)
    asked = np.maximum(np.round(seconds * factors, 3), seconds)
    if spec.step > 0:
        asked = np.ceil(asked / spec.step) * spec.step
    return np.asarray(asked, dtype=np.float64)


def _queue(share: QueueShare) -> KubeObject:
    spec: dict[str, Any] = {
        "weight": share.weight,
        "deserved": share.deserved,
        "capability": share.capability,
        "guarantee": {"resource": share.guarantee},
    }
    return Queue(
        metadata=ObjectMeta(name=share.name),
        spec=_queue_spec(share.name, spec),
        status=QueueStatus(state="Open"),
    )


def _queue_spec(name: str, spec: dict[str, Any]) -> QueueSpec:
    try:
        return msgspec.convert(spec, QueueSpec)
    except msgspec.ValidationError as error:
        wanted = "amounts that Kubernetes accepts"
        raise InputError(wanted=wanted, found=str(error), field=f"queues: {name}") from None


def _classes(spec: Synthetic) -> list[KubeObject]:
    """Assign a value to every priority class: the stated one, or ten, twenty, …, as listed."""
    return [
        PriorityClass(
            metadata=ObjectMeta(name=name), value=spec.priority_values.get(name, 10 * (i + 1))
        )
        for i, name in enumerate(spec.priorities)
    ]
