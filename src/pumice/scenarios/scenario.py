"""Load and validate scenario files: a small cluster, a configuration, the expected decisions.

Used by the runner, the command line and the project's own tests.
A scenario is data: nothing here runs a scheduler.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml

from pumice.api.conf import DEFAULT_CONF
from pumice.api.kinds import Manifest
from pumice.api.manifests import ObjectLine, load_values, object_lines
from pumice.api.named_files import named_conf, named_manifests
from pumice.api.objects import from_manifest, in_namespace
from pumice.api.times import lenient_epoch
from pumice.api.wording import EMPTY_FILE, nearest
from pumice.api.yaml_text import parse_yaml
from pumice.errors import ABSENT, ManifestError, ScenarioError

Record = dict[str, Any]

DEFAULT_NOW = "2026-01-01T00:00:00Z"
SUFFIXES = frozenset({".json", ".yaml", ".yml"})

TOP_KEYS = (
    *("name", "family", "description", "seed", "now", "cycles", "stable", "negative"),
    *("conf", "confFrom", "featureGates", "nodeUsage", "hidden", "objects", "objectsFrom"),
    "expect",
)
_MOST_CYCLES = 100_000
_OBJECT = re.compile(r"objects\[(\d+)\]")
_MARKS = frozenset({"objects", "objectsFrom", "conf", "confFrom", "expect", "nodeUsage"})
_GATES = ("SchedulingGatesQueueAdmission",)
_NUMBER_KEYS = ("bindsNum", "evictNum", "evicted")
_NODE_KEYS = ("binds", "pipelined", "nominated")
"""Keys of expectations that map pods to nodes."""
_LIST_KEYS = ("bindOrder", "evictions", "bindNumsInHyperNode", "openedGates")
_MAPPING_KEYS = (
    *("binds", "pipelined", "podGroups", "nominated", "queues", "unschedulable"),
    *("claims", "pipelinedOnOneOf", "taskStatusNums"),
    *("boundPerPodGroup", "pipelinedPerPodGroup", "phases"),
)
EXPECT_KEYS = (
    *_MAPPING_KEYS,
    *_LIST_KEYS,
    *_NUMBER_KEYS,
    *("evictionsUnordered", "counts", "cycles"),
)


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """One validated scenario; `expect` has one record for each cycle, or none at all."""

    path: Path
    name: str
    objects: list[Manifest]
    conf: str = DEFAULT_CONF
    """Text of the scheduler configuration."""
    conf_source: str = ""
    """The place of the configuration, for messages about it."""
    now: float
    """Epoch seconds of the first cycle."""
    cycles: int = 1
    stable: Literal[True, "counts"] = True
    seed: int = 0
    node_usage: dict[str, dict[str, float]] = field(default_factory=dict)
    """Node to cpu and memory percent, and `metricsTime` in epoch seconds where it is stated."""
    hidden: dict[str, str] = field(default_factory=dict)
    """Kinds that the cluster of a snapshot did not show, with its reason."""
    queue_gates: bool = False
    """Whether the feature SchedulingGatesQueueAdmission is on."""
    expect: list[Record] = field(default_factory=list)

    @cached_property
    def _lines(self) -> list[ObjectLine]:
        return object_lines(self.path)

    def line(self, index: int, path: Sequence[str | int] = ()) -> str:
        """Return file and line of an object, or of a field of it; the file alone if unknown."""
        known = len(self._lines) == len(self.objects)
        return self._lines[index].at(path) if known else str(self.path)

    def placed(self, error: ManifestError) -> ManifestError:
        """Return an error about one of the objects with the place of that object."""
        for index, manifest in enumerate(self.objects):
            try:
                from_manifest(manifest)
            except ManifestError as found:
                if (found.subject, found.path) == (error.subject, error.path):
                    error.file = self.line(index, error.path)
                    break
        return error


def load_scenario(path: Path) -> Scenario:
    """Read the scenario in a JSON or YAML file.

    Raises:
        ScenarioError: The file cannot be read, is not a scenario or breaks the format.
    """
    return located_scenario(read_document(path), path)


def located_scenario(document: Any, path: Path) -> Scenario:
    """Make the scenario of a document; an error about an object names its line.

    Raises:
        ScenarioError: The document is not a scenario or breaks the format.
    """
    try:
        return scenario_from(document, path)
    except ScenarioError as error:
        found = _OBJECT.match(error.field)
        lines = object_lines(path) if found else []
        if found and int(found[1]) < len(lines):
            error.file = lines[int(found[1])].at()
        raise


def read_document(path: Path) -> Any:
    """Read one JSON or YAML file; several YAML documents come back as a list."""
    with _as_scenario_error(path):
        return _only(load_values(path))


def _only(documents: list[Any]) -> Any:
    """Return the one document, or all of several."""
    return documents[0] if len(documents) == 1 else documents


def is_scenario(document: Any) -> bool:
    """Return whether a document is a scenario, not manifests, a configuration or other data."""
    return isinstance(document, dict) and "kind" not in document and not _MARKS.isdisjoint(document)


def are_manifests(document: Any) -> bool:
    """Return whether the documents of a file are manifests, not a scenario."""
    documents = document if isinstance(document, list) else [document]
    return bool(documents) and all(isinstance(one, dict) and "kind" in one for one in documents)


def scenario_from(document: Any, path: Path) -> Scenario:
    """Validate a document that was read from `path` and fill in the defaults.

    Raises:
        ScenarioError: The document is not a scenario or breaks the format.
    """
    if not isinstance(document, dict):
        found = EMPTY_FILE if document is None else document
        raise _problem(path, "", found, "manifests, or a scenario with the key 'objects'")
    _refuse_unknown(path, "", document, TOP_KEYS)
    conf, conf_source = conf_of(path, document)
    cycles, expect = expectations_from(path, document)
    seed = _typed(path, "seed", document.get("seed", 0), (int, str), "a whole number")
    return Scenario(
        path=path,
        name=str(document.get("name", path.stem)),
        objects=_objects(path, document),
        conf=conf,
        conf_source=conf_source,
        now=_instant(path, "now", document.get("now", DEFAULT_NOW)),
        cycles=cycles,
        stable=_stable(path, document.get("stable", True)),
        seed=seed if isinstance(seed, int) else 0,  # a text names the case it comes from
        node_usage=_node_usage(path, document),
        hidden=_typed(path, "hidden", document.get("hidden", {}), dict, "kinds to reasons"),
        queue_gates=_feature_gates(path, document).get(_GATES[0], False),
        expect=expect,
    )


def conf_of(path: Path, document: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text of the configuration of a scenario and a name for its place.

    Raises:
        ScenarioError: It is not a text or a mapping, or its file cannot be read.
    """
    inside = f"{path}: conf"
    if "conf" in document and "confFrom" in document:
        raise _problem(path, "confFrom", document["confFrom"], "either conf or confFrom, not both")
    if "confFrom" in document:
        name = _typed(path, "confFrom", document["confFrom"], str, "a file name")
        return named_conf(path, name, ScenarioError)
    conf = document.get("conf", DEFAULT_CONF)
    if isinstance(conf, dict):
        return yaml.safe_dump(conf, sort_keys=False), inside
    return _typed(path, "conf", conf, str, "the text of a configuration or a mapping"), inside


def _objects(path: Path, document: Mapping[str, Any]) -> list[Manifest]:
    if "objects" not in document and "objectsFrom" not in document:
        raise _problem(path, "objects", None, "a list of manifests (or objectsFrom)")
    given = document.get("objects", [])
    if isinstance(given, str):
        with _as_scenario_error(path, "objects "):
            given = parse_yaml(given, str(path))
    found = [(path, f"objects[{i}]", item) for i, item in enumerate(_list(path, "objects", given))]
    for name in _list(path, "objectsFrom", document.get("objectsFrom", [])):
        _typed(path, "objectsFrom", name, str, "file names")
        items = _only([root.content for root in named_manifests(path, name, ScenarioError)])
        for i, item in enumerate(items if isinstance(items, list) else [items]):
            found.append((path.parent / name, f"document[{i}]", item))
    return [manifest for item in found if item[2] is not None for manifest in _manifests(*item)]


def _manifests(path: Path, where: str, item: Any) -> list[Manifest]:
    """Check one manifest; a `kind: …List` yields its items."""
    manifest = _typed(path, where, item, dict, "a manifest")
    kind = _typed(path, f"{where}.kind", manifest.get("kind"), str, "the kind of the object")
    if kind.endswith("List") and "items" in manifest:
        items = _list(path, f"{where}.items", manifest["items"])
        return [m for i, one in enumerate(items) for m in _manifests(path, f"{where}[{i}]", one)]
    metadata = _typed(path, f"{where}.metadata", manifest.get("metadata"), dict, "a mapping")
    _typed(path, f"{where}.metadata.name", metadata.get("name"), str, "the name of the object")
    for part in ("labels", "annotations"):
        if metadata.get(part) is not None:
            _typed(path, f"{where}.metadata.{part}", metadata[part], dict, "a mapping")
    return [dict(in_namespace(manifest))]


def _node_usage(path: Path, document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    given = _typed(path, "nodeUsage", document.get("nodeUsage", {}), dict, "node to usage")
    usage: dict[str, dict[str, float]] = {}
    for node, facts in given.items():
        where = f"nodeUsage.{node}"
        _typed(path, where, facts, dict, "a mapping with cpu and memory in percent")
        _refuse_unknown(path, where, facts, ("cpu", "memory", "metricsTime"))
        usage[node] = {
            key: _instant(path, f"{where}.{key}", value)
            if key == "metricsTime"
            else float(_typed(path, f"{where}.{key}", value, (int, float), "a percentage"))
            for key, value in facts.items()
        }
    return usage


def _feature_gates(path: Path, document: Mapping[str, Any]) -> dict[str, bool]:
    given: dict[str, bool] = document.get("featureGates", {})
    _typed(path, "featureGates", given, dict, "names of features to true or false")
    _refuse_unknown(path, "featureGates", given, _GATES)
    for name, value in given.items():
        if not isinstance(value, bool):
            raise _problem(path, f"featureGates.{name}", value, "true or false")
    return given


def expectations_from(path: Path, document: Mapping[str, Any]) -> tuple[int, list[Record]]:
    """Return the number of cycles of a scenario and what is expected of each.

    Raises:
        ScenarioError: they break the format.
    """
    cycles = document.get("cycles")
    if cycles is not None and not (_is_count(cycles) and 1 <= cycles <= _MOST_CYCLES):
        raise _problem(path, "cycles", cycles, f"a number of at least 1, at most {_MOST_CYCLES}")
    if document.get("expect") is None:
        return cycles or 1, []
    expect = _typed(path, "expect", document["expect"], dict, "a mapping")
    if "cycles" not in expect:
        if cycles is not None and cycles > 1:
            raise _problem(path, "expect.cycles", None, f"a list of {cycles} records")
        return 1, [_record(path, "expect", expect)]
    _refuse_unknown(path, "expect", expect, ("cycles",))
    given = _list(path, "expect.cycles", expect["cycles"])
    if not given or len(given) != (cycles or len(given)):
        raise _problem(
            path, "expect.cycles", f"{len(given)} records", f"{cycles or 'at least 1'}, as 'cycles'"
        )
    return len(given), [_record(path, f"expect.cycles[{i}]", one) for i, one in enumerate(given)]


def _record(path: Path, where: str, given: Any) -> Record:
    """Check the expectations for one cycle and lift the entries of `counts` to the top."""
    record = dict(_typed(path, where, given, dict, "a mapping"))
    _refuse_unknown(path, where, record, EXPECT_KEYS)
    counts = _typed(path, f"{where}.counts", record.pop("counts", {}), dict, "a mapping")
    _refuse_unknown(path, f"{where}.counts", counts, EXPECT_KEYS)
    record |= counts
    for key, value in record.items():
        kind, wanted = _kind(key)
        if not kind(value):
            raise _problem(path, f"{where}.{key}", value, wanted)
    for key in _NODE_KEYS:
        for pod, node in (record.get(key) or {}).items():
            _typed(path, f"{where}.{key}.{pod}", node, str, "the name of a node")
    for name, group in record.get("podGroups", {}).items():
        entry = _typed(path, f"{where}.podGroups.{name}", group, dict, "a mapping with phase")
        _refuse_unknown(
            path, f"{where}.podGroups.{name}", entry, ("phase", "conditions", "hyperNode")
        )
    return record


def _kind(key: str) -> tuple[Callable[[Any], bool], str]:
    if key in _NUMBER_KEYS:
        return _is_count, "a number"
    if key in _LIST_KEYS:
        return lambda value: isinstance(value, list), "a list"
    if key in _MAPPING_KEYS:
        return lambda value: isinstance(value, dict), "a mapping"
    return lambda value: isinstance(value, bool), "true or false"


def _stable(path: Path, value: Any) -> Literal[True, "counts"]:
    if value is True:
        return True
    if value == "counts":
        return "counts"
    raise _problem(path, "stable", value, "true or 'counts'")


def _instant(path: Path, where: str, value: Any) -> float:
    wanted = f"an RFC 3339 instant such as {DEFAULT_NOW}"
    try:
        return lenient_epoch(_typed(path, where, value, str, wanted))
    except ValueError:
        raise _problem(path, where, value, wanted) from None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _list(path: Path, where: str, value: Any) -> list[Any]:
    return _typed(path, where, value, list, "a list")


def _typed(path: Path, where: str, value: Any, kind: type | tuple[type, ...], wanted: str) -> Any:
    """Return the value if it has the wanted type; a boolean is not a number."""
    if not isinstance(value, kind) or isinstance(value, bool):
        unquoted = kind is str and isinstance(value, bool)
        raise _problem(path, where, value, wanted, hint="put it in quotes" if unquoted else "")
    return value


def _refuse_unknown(
    path: Path, where: str, given: Mapping[str, Any], known: tuple[str, ...]
) -> None:
    for key in given:
        if key not in known:
            near = nearest(str(key), known)
            raise _problem(
                path,
                where,
                key,
                f"one of the keys {', '.join(known)}",
                hint=f"did you mean '{near}'?" if near else "",
            )


def _problem(path: Path, where: str, found: Any, wanted: str, hint: str = "") -> ScenarioError:
    return ScenarioError(
        wanted=wanted,
        found=ABSENT if found is None else found,
        field=where,
        file=str(path),
        hint=hint,
    )


@contextmanager
def _as_scenario_error(path: Path, part: str = "") -> Iterator[None]:
    """Turn an error of the reader into one about the scenario; ``part`` names what was read."""
    try:
        yield
    except ManifestError as error:
        line = error.file.removeprefix(f"{path}:")
        where = f"{part}line {line}" if line.isdigit() else part.strip()
        raise ScenarioError(
            wanted=error.wanted, found=error.found, field=where, file=str(path), hint=error.hint
        ) from None
