"""Load and validate scenario files: a small cluster, a configuration, the expected decisions.

Used by the runner, the command line and the project's own tests.
A scenario is data: nothing here runs a scheduler.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml

from pumice.api.conf import DEFAULT_CONF
from pumice.api.kinds import Manifest
from pumice.api.manifests import ObjectLine, load_values, object_lines
from pumice.api.named_files import applied, is_snapshot, named_conf, named_manifests
from pumice.api.objects import KINDS, from_manifest, in_namespace
from pumice.api.scenario_values import (
    listed,
    problem,
    refuse_unknown,
    seconds_from,
    typed,
    with_line,
    within_from,
)
from pumice.api.short_forms import SHORT_KEYS, short_objects
from pumice.api.times import lenient_epoch
from pumice.api.wording import EMPTY_FILE
from pumice.api.yaml_text import parse_yaml
from pumice.errors import ManifestError, ScenarioError, Words
from pumice.scenarios.drawn import Draw, is_drawn
from pumice.scenarios.expectations import (
    EXPECT_KEYS,
    MOST_CYCLES,
    Eventually,
    Record,
    always_from,
    eventually_from,
    expectations_from,
)
from pumice.scenarios.matrix import cases_of
from pumice.scenarios.objects import is_job
from pumice.scenarios.steps import Step, steps_from

__all__ = ["EXPECT_KEYS", "TOP_KEYS", "Scenario", "load_scenario", "scenario_from"]

DEFAULT_NOW = "2026-01-01T00:00:00Z"
SUFFIXES = frozenset({".json", ".yaml", ".yml"})

TOP_KEYS = (
    *("name", "family", "description", "seed", "now", "cycles", "stable", "negative"),
    *("conf", "confFrom", "featureGates", "nodeUsage", "hidden", "objects", "objectsFrom"),
    *("nodes", "queues", "priorities", "workloads", "at", "every", "evicted", "matrix", "draw"),
    *("expect", "always", "eventually"),
)
_OBJECT = re.compile(r"objects\[(\d+)\]")
_MARKS = frozenset(
    {
        *("objects", "objectsFrom", "conf", "confFrom", "expect", "nodeUsage"),
        *("always", "eventually", "workloads", "draw"),
    }
)
_READ = frozenset(kind for _, kind in KINDS)
_OF_SNAPSHOTS = frozenset({"conf", "now", "seed", "nodeUsage", "hidden"})
"""What a snapshot states besides its objects, unless the scenario that names it does."""
_UNTIL_QUIET = 50
"""Cycles after which a scenario that states no number of them, and does not settle, ends."""
GATES = ("SchedulingGatesQueueAdmission",)


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
    until_quiet: bool = False
    """Whether it ends sooner, once nothing changes any more: no number of cycles is stated."""
    stable: Literal[True, "counts"] = True
    seed: int = 0
    node_usage: dict[str, dict[str, float]] = field(default_factory=dict)
    """Node to cpu and memory percent, and `metricsTime` in epoch seconds where it is stated."""
    hidden: dict[str, str] = field(default_factory=dict)
    """Kinds that the cluster of a snapshot did not show, with its reason."""
    queue_gates: bool = False
    """Whether the feature SchedulingGatesQueueAdmission is on."""
    expect: list[Record] = field(default_factory=list)
    always: dict[str, Any] = field(default_factory=dict)
    """Invariants by name, each with its value."""
    eventually: list[Eventually] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    """What changes from outside between cycles."""
    interval: float = 1.0
    """Seconds from one cycle to the next."""
    requeues: bool = False
    """Whether evicted pods come back and wait; else they are gone."""
    stated: int | None = None
    """How many of the objects the file, or those that it names, spells out; None: all."""

    @cached_property
    def _lines(self) -> list[ObjectLine]:
        return object_lines(self.path)

    def line(self, index: int, path: Sequence[str | int] = ()) -> str:
        """Return file and line of an object, or of a field of it; the file alone if unknown."""
        stated = len(self.objects) if self.stated is None else self.stated
        known = len(self._lines) == stated and index < stated
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
        raise with_line(error, path) from None


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


def files_named_in(path: Path) -> list[Path]:
    """List the files that a scenario names; none if it cannot be read."""
    try:
        document = read_document(path)
    except ScenarioError:
        return []
    if not is_scenario(document):
        return []
    matrix = document.get("matrix")
    places = (document, matrix if isinstance(matrix, dict) else {})
    given = [place.get(key) for place in places for key in ("confFrom", "objectsFrom")]
    names = [name for one in given for name in (one if isinstance(one, list) else [one])]
    return [path.parent / name for name in names if isinstance(name, str)]


def scenario_from(document: Any, path: Path) -> Scenario:
    """Validate a document that was read from `path` and fill in the defaults.

    Of several cases it is the first.

    Raises:
        ScenarioError: The document is not a scenario or breaks the format.
    """
    if not isinstance(document, dict):
        found = EMPTY_FILE if document is None else document
        raise problem(path, "", found, "manifests, or a scenario with the key 'objects'")
    refuse_unknown(path, "", document, TOP_KEYS)
    _, document = next(cases_of(path, document, TOP_KEYS))
    if is_drawn(document):
        document = Draw(path, document).document(0)
    objects, document = _objects(path, document)
    conf, conf_source = conf_of(path, document)
    cycles, expect = expectations_from(path, document)
    always, eventually = always_from(path, document), eventually_from(path, document)
    now = _instant(path, "now", document.get("now", DEFAULT_NOW))
    scenario = Scenario(
        path=path,
        name=str(document.get("name", path.stem)),
        objects=[*objects, *short_objects(path, document, objects, now)],
        conf=conf,
        conf_source=conf_source,
        now=now,
        cycles=max(cycles or 1, len(expect)),
        stable=_stable(path, document.get("stable", True)),
        seed=_seed(path, document),
        node_usage=_node_usage(path, document),
        hidden=typed(path, "hidden", document.get("hidden", {}), dict, "kinds to reasons"),
        queue_gates=_feature_gates(path, document).get(GATES[0], False),
        expect=expect,
        always=always,
        eventually=eventually,
        steps=steps_from(path, document),
        interval=_interval(path, document),
        requeues=_requeues(path, document),
        stated=len(objects),
    )
    return scenario if cycles else _open_ended(scenario)


def _open_ended(scenario: Scenario) -> Scenario:
    """Return a scenario that states no number of cycles with the most that it may need."""
    if not (scenario.always or scenario.eventually or scenario.steps):
        return scenario
    spans = [step.at for step in scenario.steps]
    spans += [goal.within for goal in scenario.eventually if goal.within is not None]
    longest = max((span.in_cycles(scenario.interval) for span in spans), default=0)
    settles = scenario.always.get("settles")
    within = settles.get("within") if isinstance(settles, dict) else settles
    if within is not None:
        span = within_from(scenario.path, "always.settles.within", within)
        longest += span.in_cycles(scenario.interval) + 1
    most = longest + _UNTIL_QUIET
    if most > MOST_CYCLES:
        wanted = f"at most {MOST_CYCLES:,} cycles until the last step or goal"
        raise problem(scenario.path, "", Words(f"{longest} cycles"), wanted)
    return replace(scenario, cycles=max(most, scenario.cycles), until_quiet=True)


def _seed(path: Path, document: Mapping[str, Any]) -> int:
    seed = typed(path, "seed", document.get("seed", 0), (int, str), "a whole number")
    return seed if isinstance(seed, int) else 0  # a text names the case it comes from


def _interval(path: Path, document: Mapping[str, Any]) -> float:
    seconds = seconds_from(path, "every", document.get("every", "1s"))
    if seconds <= 0:
        raise problem(path, "every", document["every"], "a time such as 30s")
    return seconds


def _requeues(path: Path, document: Mapping[str, Any]) -> bool:
    given = document.get("evicted", "gone")
    if given not in ("gone", "requeue"):
        raise problem(path, "evicted", given, "gone or requeue")
    return bool(given == "requeue")


def conf_of(path: Path, document: Mapping[str, Any]) -> tuple[str, str]:
    """Return the text of the configuration of a scenario and a name for its place.

    Raises:
        ScenarioError: It is not a text or a mapping, or its file cannot be read.
    """
    inside = f"{path}: conf"
    if "conf" in document and "confFrom" in document:
        raise problem(path, "confFrom", document["confFrom"], "either conf or confFrom, not both")
    if "confFrom" in document:
        name = typed(path, "confFrom", document["confFrom"], str, "a file name")
        return named_conf(path, name, ScenarioError)
    conf = document.get("conf", DEFAULT_CONF)
    if isinstance(conf, dict):
        return yaml.safe_dump(conf, sort_keys=False), inside
    return typed(path, "conf", conf, str, "the text of a configuration or a mapping"), inside


def _objects(path: Path, document: Mapping[str, Any]) -> tuple[list[Manifest], Mapping[str, Any]]:
    """Return the objects that are spelt out, and the document with what a named snapshot states."""
    if not document.keys() & {"objects", "objectsFrom", *SHORT_KEYS}:
        raise problem(path, "objects", None, "a list of manifests (or objectsFrom)")
    given = document.get("objects", [])
    if isinstance(given, str):
        with _as_scenario_error(path, "objects "):
            given = parse_yaml(given, str(path))
    found = [(path, f"objects[{i}]", item) for i, item in enumerate(listed(path, "objects", given))]
    objects = _checked(found)
    if document.get("objectsFrom"):
        from pumice.records.named_records import read_named_records  # noqa: PLC0415  (few name any)

        records, document = read_named_records(path, document)
        for root in records:
            objects, document = _with_file(objects, document, path, [root])
        names = document["objectsFrom"]
        for name in [names] if isinstance(names, str) else listed(path, "objectsFrom", names):
            typed(path, "objectsFrom", name, str, "file names")
            roots = [root.content for root in named_manifests(path, name, ScenarioError)]
            objects, document = _with_file(objects, document, path.parent / name, roots)
    return objects, document


def _with_file(
    objects: list[Manifest], document: Mapping[str, Any], file: Path, roots: Sequence[Any]
) -> tuple[list[Manifest], Mapping[str, Any]]:
    """Add the objects of a file, and what a snapshot states unless the scenario does."""
    stated = {
        key: root[key] for root in roots if is_snapshot(root) for key in _OF_SNAPSHOTS & root.keys()
    }
    if document.keys() & {"conf", "confFrom"}:
        stated.pop("conf", None)
    items = [one for root in roots for one in _items(root)]
    new = _checked([(file, f"document[{i}]", item) for i, item in enumerate(items)])
    return applied(objects, new) if objects else new, {**stated, **document}


def _checked(found: Sequence[tuple[Path, str, Any]]) -> list[Manifest]:
    return [manifest for item in found if item[2] is not None for manifest in _manifests(*item)]


def _items(root: Any) -> list[Any]:
    """Return the objects of a document that another scenario names: those that scheduling reads."""
    found = root["objects"] if is_snapshot(root) else root if isinstance(root, list) else [root]
    return [one for item in found for one in _unpacked(item) if one is None or _is_read(one)]


def _unpacked(item: Any) -> list[Any]:
    is_list = isinstance(item, dict) and str(item.get("kind", "")).endswith("List")
    return [one for each in item["items"] for one in _unpacked(each)] if is_list else [item]


def _is_read(one: Mapping[str, Any]) -> bool:
    return one["kind"] in _READ or is_job(one)


def _manifests(path: Path, where: str, item: Any) -> list[Manifest]:
    """Check one manifest; a `kind: …List` yields its items."""
    manifest = typed(path, where, item, dict, "a manifest")
    kind = typed(path, f"{where}.kind", manifest.get("kind"), str, "the kind of the object")
    if kind.endswith("List") and "items" in manifest:
        items = listed(path, f"{where}.items", manifest["items"])
        return [m for i, one in enumerate(items) for m in _manifests(path, f"{where}[{i}]", one)]
    metadata = typed(path, f"{where}.metadata", manifest.get("metadata"), dict, "a mapping")
    typed(path, f"{where}.metadata.name", metadata.get("name"), str, "the name of the object")
    for part in ("labels", "annotations"):
        if metadata.get(part) is not None:
            typed(path, f"{where}.metadata.{part}", metadata[part], dict, "a mapping")
    return [dict(in_namespace(manifest))]


def _node_usage(path: Path, document: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    given = typed(path, "nodeUsage", document.get("nodeUsage", {}), dict, "node to usage")
    usage: dict[str, dict[str, float]] = {}
    for node, facts in given.items():
        where = f"nodeUsage.{node}"
        typed(path, where, facts, dict, "a mapping with cpu and memory in percent")
        refuse_unknown(path, where, facts, ("cpu", "memory", "metricsTime"))
        usage[node] = {
            key: _instant(path, f"{where}.{key}", value)
            if key == "metricsTime"
            else float(typed(path, f"{where}.{key}", value, (int, float), "a percentage"))
            for key, value in facts.items()
        }
    return usage


def _feature_gates(path: Path, document: Mapping[str, Any]) -> dict[str, bool]:
    given: dict[str, bool] = document.get("featureGates", {})
    typed(path, "featureGates", given, dict, "names of features to true or false")
    refuse_unknown(path, "featureGates", given, GATES)
    for name, value in given.items():
        if not isinstance(value, bool):
            raise problem(path, f"featureGates.{name}", value, "true or false")
    return given


def _stable(path: Path, value: Any) -> Literal[True, "counts"]:
    if value is True:
        return True
    if value == "counts":
        return "counts"
    raise problem(path, "stable", value, "true or 'counts'")


def _instant(path: Path, where: str, value: Any) -> float:
    wanted = f"an RFC 3339 instant such as {DEFAULT_NOW}"
    try:
        return lenient_epoch(typed(path, where, value, str, wanted))
    except ValueError:
        raise problem(path, where, value, wanted) from None


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
