"""Sources of a cluster state: manifests, `kubectl get` output, scenarios, records, a cluster.

One function, `load_world`, joins any number of sources.  Files are read leniently: kinds that
scheduling does not read are counted and left out.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf
from pumice.api.kinds import CONFIG_MAP, JOB, KUBE_POD_GROUP, SCHEDULER_NAME, Manifest
from pumice.api.manifests import Document, Pack, load_documents, load_packs, object_lines, unpacked
from pumice.api.named_files import is_snapshot, named_conf, named_manifests, read_conf_file
from pumice.api.nodes import Node
from pumice.api.objects import KINDS, from_manifest
from pumice.api.short_forms import SHORT_KEYS, short_objects
from pumice.api.times import epoch
from pumice.api.wording import first_of
from pumice.cluster.base import ReadableCluster
from pumice.cluster.stored_conf import scheduler_configuration
from pumice.controllers.expected import created, is_expected, with_expected
from pumice.diagnosis.cluster_state import ClusterState, key_of
from pumice.diagnosis.missing_pods import creation_errors, lacking_pods
from pumice.diagnosis.object_store import ObjectStore, alike_until, latest_time
from pumice.errors import (
    ClusterError,
    InputError,
    ManifestError,
    NotFoundError,
    PumiceError,
    UnavailableError,
    Words,
)
from pumice.records.history import History
from pumice.records.named_records import read_named_records
from pumice.records.segments import is_record
from pumice.scheduler import Scheduler

_NEEDED: Final = frozenset({"Node", "Pod"})
"""Kinds without which no answer is possible; any other may be missing or hidden."""
_MEASURING: Final = frozenset({"usage", "rescheduling"})
"""Plugins that read the measured use of nodes."""


# What the plugins of a configuration read


def plugin_config_maps(cluster: ReadableCluster, conf: str) -> list[Manifest]:
    """Return those that the plugins of a configuration read, if available."""
    try:
        wanted = Scheduler(parse_conf(conf)).config_maps
    except PumiceError:  # reported where the configuration is used
        return []
    found = []
    for key in wanted:
        with contextlib.suppress(ClusterError):
            found.append(cluster.get(CONFIG_MAP, *key.split("/", 1)))
    return found


# Files and clusters


@dataclass
class Reading:
    """What was read from a cluster."""

    now: float
    objects: list[Manifest] = field(default_factory=list)
    jobs: list[Manifest] = field(default_factory=list)
    events: list[Manifest] = field(default_factory=list)
    """Of namespaces with jobs that are admitted and lack pods."""
    conf: tuple[str, str] | None = None
    """Text of the scheduler configuration and its place."""
    hidden: dict[str, str] = field(default_factory=dict)
    """Kinds that could not be read, with the reason."""


def read_cluster(cluster: ReadableCluster) -> Reading:
    """Read everything that scheduling uses.

    Raises:
        PumiceError: the cluster cannot be reached, or does not show its nodes and pods.
    """
    reading = Reading(now=cluster.now())
    for version, kind in KINDS:
        group, slash, _ = version.partition("/")
        name = f"{kind}.{group}" if slash else kind
        if name not in (CONFIG_MAP, KUBE_POD_GROUP):  # whose pods have a group that follows it
            reading.objects += _listed(cluster, name, reading.hidden)
    reading.jobs = _listed(cluster, JOB, reading.hidden)
    for namespace in sorted(lacking_pods(reading.objects)):
        reading.events += _listed(cluster, "Event", reading.hidden, namespace)
    reading.conf = scheduler_configuration(cluster)
    if reading.conf is not None:
        reading.objects += plugin_config_maps(cluster, reading.conf[0])
    return reading


def _listed(
    cluster: ReadableCluster, kind: str, hidden: dict[str, str], namespace: str = ""
) -> list[Manifest]:
    """List a kind; a kind that is not served is empty, a hidden one is noted."""
    try:
        return cluster.list(kind, namespace)[0]
    except NotFoundError:
        return []
    except ClusterError as error:
        silent = isinstance(error, UnavailableError) and not error.verbatim
        if kind in _NEEDED or silent:  # a server that does not answer would not answer for others
            raise
        hidden[kind] = error.problem
        return []


def measured_use(
    conf: SchedulerConf, objects: Iterable[Manifest], now: float, notes: list[str]
) -> dict[str, dict[str, float]]:
    """Ask the source of measurements that a configuration names, if a plugin reads them."""
    names = {plugin.name for tier in conf.tiers for plugin in tier.plugins}
    if not conf.metrics or not names & _MEASURING:
        return {}
    from pumice.cluster.usage.conf import usage_source  # noqa: PLC0415 - files need no client

    nodes = [from_manifest(one) for one in objects if one["kind"] == "Node"]
    try:
        source = usage_source(conf.metrics)
        return source.read([node for node in nodes if isinstance(node, Node)], now)
    except PumiceError as error:
        notes.append(f"node usage left out: {error}")
        return {}


@dataclass(frozen=True)
class Documents:
    """The documents of a file that was read already."""

    file: Path
    documents: Sequence[Document] = ()
    packs: Sequence[Pack] = ()
    """In place of documents, if they were not taken apart."""


Source = Path | str | Documents | ReadableCluster
"""A file, a folder of files, a text, documents, or anything with the cluster protocol."""

_NO_FILE: Final = Path("<input>")
_SUFFIXES: Final = (".json", ".yaml", ".yml")
_KIND_NAMES: Final = {kind for _, kind in KINDS}
_JOB_PARTS: Final = frozenset(
    {"PodGroup", "Pod", "PriorityClass", "ResourceClaim", "ResourceClaimTemplate"}
)
_JOB: Final = ("batch.volcano.sh/v1alpha1", "Job")


def load_world(
    sources: Sequence[Source], conf: Path | None = None, now: float | None = None
) -> ClusterState:
    """Join sources into one world; of two objects with the same name the later one counts.

    Without a stated time it is the latest in any object, in a cluster not before its own, in a
    record the last.  A record is read as of that time.  A configuration comes from ``conf``, else
    from a scenario, a record or a ConfigMap of a scheduler among the sources.

    Raises:
        InputError: a source cannot be read or used.
        ConfError: the configuration cannot be used.
    """
    pile = ObjectStore()
    for source in sources:
        if isinstance(source, Documents):
            for document in source.documents:
                _take_document(pile, document, source.file)
            for pack in source.packs:
                _take_pack(pile, pack, source.file)
        elif isinstance(source, Path) and is_record(source):
            _take_record(pile, source, now)
        elif isinstance(source, Path | str):
            for pack in _packs(source):
                _take_pack(pile, pack, source)
        else:
            _take_cluster(pile, source)
    if conf is not None:
        pile.conf = read_conf_file(conf)
    if now is None:
        now = pile.now if pile.now is not None else pile.latest_time()
    objects = with_expected(pile.all_objects(now), pile.jobs, now, is_live=pile.is_live)
    text, name = pile.conf or (DEFAULT_CONF, ClusterState.conf_source)
    world = ClusterState(
        objects=tuple(objects),
        jobs={key_of(job): created(job, now) for job in pile.jobs},
        now=now,
        conf=text,
        conf_source=name,
        node_usage={node: {"metricsTime": now, **one} for node, one in pile.usage.items()},
        seed=pile.seed,
        left_out=dict(pile.left_out),
        passed_over=pile.passed_over,
        hidden=pile.hidden,
        other_notes=tuple(pile.notes),
        creation_errors=creation_errors(pile.events),
    )
    _ = world.scheduler_conf  # report a bad configuration before anything else
    world = world.with_counts()
    return _measured(world) if pile.is_live else world


def _measured(world: ClusterState) -> ClusterState:
    """Add the measured use of nodes, if the configuration names a source."""
    notes: list[str] = []
    usage = measured_use(world.scheduler_conf, world.objects, world.now, notes)
    notes = [*world.other_notes, *notes]
    return replace(world, node_usage={**usage, **world.node_usage}, other_notes=tuple(notes))


def load_job(source: Path | str | Documents, now: float) -> list[Manifest]:
    """Read the objects of one job: a Volcano job, or a pod group with pods, or pods alone.

    ``source`` is a file, read or not, or a text that ends with a line break.

    Raises:
        InputError: the file cannot be used, or holds no job.
    """
    world = load_world([source], now=now)
    found = [one for one in world.objects if one["kind"] in _JOB_PARTS]
    found = [*(_ours(one) for one in found if not is_expected(one)), *world.jobs.values()]
    if not any(one["kind"] in ("Job", "PodGroup", "Pod") for one in found):
        wanted = "a Volcano job, a pod group or pods"
        file = source.file if isinstance(source, Documents) else source
        others = Counter(one["kind"] for one in found) + Counter(world.left_out)
        raise InputError(
            wanted=wanted,
            found=Words(", ".join(f"{n} {kind}" for kind, n in others.items()) or "none of them"),
            file=str(file) if isinstance(file, Path) else "",
        )
    return found


def _ours(one: Manifest) -> Manifest:
    """Return a pod that names no scheduler as one that names Volcano."""
    return (
        {**one, "spec": {"schedulerName": SCHEDULER_NAME, **one["spec"]}}
        if one["kind"] == "Pod"
        else one
    )


def _packs(path: Path | str) -> Iterator[Pack]:
    if isinstance(path, Path) and path.is_dir():
        inside = sorted(
            each
            for each in path.iterdir()
            if each.suffix in _SUFFIXES and not (each.is_dir() or each.is_fifo())
        )
        for each in inside:
            yield from load_packs(each)
    else:
        yield from load_packs(path)


def _take_pack(
    pile: ObjectStore, pack: Pack, source: Path | str, *, is_cluster: bool = False
) -> None:
    """Take the objects of one place, those of one kind in a row together.

    Of a cluster, nobody can mend an odd object now: it must not hide all others.
    """
    contents, place = pack.contents, 0
    while place < len(contents):
        end = alike_until(contents, place)
        if end == place or not pile.take_all(contents[place:end]):
            end = max(end, place + 1)
            for document in pack.part(place, end).documents():
                try:
                    _take_document(pile, document, source)
                except ManifestError as error:
                    if not is_cluster:
                        raise
                    pile.notes.append(f"left out: {error}")
        place = end


def _take_document(pile: ObjectStore, document: Document, source: Path | str) -> None:
    content = document.content
    if isinstance(content, (dict, Mapping)) and "kind" not in content:
        if not content.keys().isdisjoint(("objects", "objectsFrom", *SHORT_KEYS)):
            file = Path(document.file) if isinstance(source, Path) else None
            _take_scenario(pile, dict(content), file)
            return
        raise ManifestError(
            wanted="manifests, a scenario or a snapshot",
            found=_keys(content),
            file=document.source,
        )
    for item in unpacked(content, document.source):
        pile.take(item, document.source, fresh=True)


def _keys(content: Mapping[str, Any]) -> Words:
    """Describe a mapping that is nothing known."""
    names = [repr(str(key)) for key in content]
    return Words(f"a mapping with {first_of(names, 4)}" if names else "an empty mapping")


def _take_objects(pile: ObjectStore, content: dict[str, Any], file: Path | None) -> None:
    """Take the objects of a scenario; an error names the line of the object."""
    path = file or _NO_FILE
    given = _part(content, "objects", (list, str), "a list of manifests", path) or []
    if isinstance(given, str):
        given = [document.content for document in load_documents(f"{given}\n")]
    for number, one in enumerate(one for item in given for one in unpacked(item, str(path))):
        try:
            pile.take(one, str(path))
        except ManifestError as error:
            lines = object_lines(path)
            if number < len(lines):
                error.file = lines[number].at(error.path)
            raise
    names = _part(content, "objectsFrom", (list, str), "file names", path) or []
    for name in [names] if isinstance(names, str) else names:
        for root in named_manifests(file, str(name), ManifestError):
            if is_snapshot(root.content):
                _take_scenario(pile, dict(root.content), path.parent / str(name))
                continue
            for document in root.pack().documents():
                pile.apply(document.content, document.source)


def _take_scenario(pile: ObjectStore, content: dict[str, Any], file: Path | None) -> None:
    """Take a scenario or a saved snapshot; ``file`` is None for a text."""
    path = file or _NO_FILE
    records: list[dict[str, Any]] = []
    if file is not None and content.get("objectsFrom"):
        records, rest = read_named_records(path, content)
        content = dict(rest)
    for one in records:
        _take_scenario(pile, one, None)
    _take_objects(pile, content, file)
    if "confFrom" in content:
        pile.conf = named_conf(file, str(content["confFrom"]))
    elif "conf" in content:
        text = _part(content, "conf", (str, dict), "a configuration", path)
        text = text if isinstance(text, str) else yaml.safe_dump(text, sort_keys=False)
        pile.conf = (text, f"{path}: conf")
    if "now" in content:
        pile.now = _instant(str(content["now"]), f"{path}: now")
    if not content.keys().isdisjoint(SHORT_KEYS):
        now = pile.now if pile.now is not None else pile.latest_time()
        for one in short_objects(path, content, list(pile.all_objects(now)), now):
            pile.take(one, str(path))
    seed = _part(content, "seed", (int, str), "a whole number", path)
    pile.seed = seed if isinstance(seed, int) else 0  # a text names the case it comes from
    hidden = _part(content, "hidden", dict, "kinds to reasons", path) or {}
    pile.hidden |= {str(kind): str(problem) for kind, problem in hidden.items()}
    usage = _part(content, "nodeUsage", dict, "node to usage", path) or {}
    for node in usage:
        facts = _part(usage, node, dict, "a mapping", path, within="nodeUsage.") or {}
        pile.usage[node] = {key: _measured_value(facts, key, path, node) for key in facts}


def _measured_value(facts: Mapping[str, Any], key: str, path: Path, node: str) -> float:
    """Return a percentage, or the time of the measurement."""
    within = f"nodeUsage.{node}."
    if key == "metricsTime":
        return _instant(str(facts[key]), f"{path}: {within}{key}")
    return float(_part(facts, key, (int, float), "a percentage", path, within=within) or 0.0)


def _part(
    content: Mapping[str, Any],
    key: str,
    kind: type | tuple[type, ...],
    wanted: str,
    path: Path,
    *,
    within: str = "",
) -> Any:
    """Return a part of a scenario, None if it is missing.

    Raises:
        InputError: it is of another type.
    """
    found = content.get(key)
    if found is not None and not isinstance(found, kind):
        raise InputError(wanted=wanted, found=found, field=f"{within}{key}", file=str(path))
    return found


def _take_record(pile: ObjectStore, folder: Path, when: float | None) -> None:
    """Take the cluster of a record at a time."""
    history = History(folder)
    folder = history.folder
    moment = history.at(when)
    for objects in moment.by_kind().values():
        pack = Pack(objects, str(folder), [0] * len(objects))
        _take_pack(pile, pack, folder, is_cluster=True)
    if moment.conf is not None:
        source = moment.conf.source
        pile.conf = moment.conf.text, f"{folder}: {source}" if source else str(folder)
    pile.now = moment.now
    pile.usage |= moment.usage
    pile.hidden |= moment.hidden
    pile.notes += history.problems


def _take_cluster(pile: ObjectStore, cluster: ReadableCluster) -> None:
    found = read_cluster(cluster)
    for one in (*found.objects, *found.jobs, *found.events):
        try:
            pile.take(one, "cluster")
        except ManifestError as error:  # one odd object must not hide all others
            pile.notes.append(f"left out: {error}")
    pile.conf = pile.conf or found.conf
    pile.hidden |= found.hidden
    # a cluster whose time runs fast is ahead of this machine
    pile.now = max(found.now, latest_time(found.objects, started=True))
    pile.is_live = True


def _instant(text: str, place: str) -> float:
    try:
        return epoch(text if "T" in text else text.replace(" ", "T"))
    except InputError as error:
        raise InputError(wanted=error.wanted, found=text, field=place) from None
