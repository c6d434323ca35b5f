"""HyperNodes: made from node labels or from a fabric manager, and counted."""

import base64
import binascii
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from pumice import logs
from pumice.api.kinds import HYPER_NODE, Manifest
from pumice.api.nodes import HyperNode, MemberSelector
from pumice.api.objects import from_manifest
from pumice.api.patterns import occurrences
from pumice.api.times import rfc3339
from pumice.api.wording import first_of
from pumice.cluster.ufm import BackgroundUfm, Fabric, UfmAccess
from pumice.controllers.base import SOURCE, Create, Delete, Effect, Key, Patch, Plan, Record, View
from pumice.controllers.hypernode_discovery import (
    CONF_KEY,
    SOURCE_LABEL,
    DiscoveryConf,
    UfmSource,
    from_labels,
    from_ports,
    read_discovery,
)
from pumice.core.labels import selects
from pumice.errors import ClusterError, InputError


class Members(msgspec.Struct):
    """The nodes of one HyperNode, by name."""

    tier: int
    nodes: set[str] = msgspec.field(default_factory=set)
    missing: list[str] = msgspec.field(default_factory=list)
    """Named members that do not exist, as "Node n"."""


def resolve_members(
    hyper_nodes: Iterable[Manifest], nodes: Sequence[Manifest]
) -> dict[str, Members]:
    """Find the nodes of all HyperNodes; one that cannot be read is left out."""
    labels = {str(each["metadata"]["name"]): each["metadata"].get("labels") or {} for each in nodes}
    read = sorted(_readable(hyper_nodes), key=lambda each: (each.spec.tier, each.metadata.name))
    selectors = [one.selector for each in read for one in each.spec.members]
    patterns = {one.regex_match.pattern for one in selectors if one.regex_match is not None}
    names = [*labels]
    matching = {
        pattern: {names[index] for index in found}
        for pattern, found in occurrences(patterns, names).items()
    }
    found: dict[str, Members] = {}
    for each in read:
        members = Members(each.spec.tier)
        for one in each.spec.members:
            exact = one.selector.exact_match
            if one.type == "Node":
                members.nodes |= _nodes(one.selector, labels, matching)
                if exact is not None and exact.name not in labels:
                    members.missing.append(f"Node {exact.name}")
            elif exact is not None:
                child = found.get(exact.name)
                if child is None or child.tier >= members.tier:
                    members.missing.append(f"HyperNode {exact.name}")
                else:
                    members.nodes |= child.nodes
        found[each.metadata.name] = members
    return found


def _readable(manifests: Iterable[Manifest]) -> Iterable[HyperNode]:
    for manifest in manifests:
        try:
            read = from_manifest(manifest)
        except InputError:
            continue
        if isinstance(read, HyperNode):
            yield read


def _nodes(
    selector: MemberSelector,
    labels: Mapping[str, Mapping[str, str]],
    matching: Mapping[str, set[str]],
) -> set[str]:
    """Find nodes; a label selector that asks for nothing selects nothing."""
    found: set[str] = set()
    if selector.exact_match is not None and selector.exact_match.name in labels:
        found.add(selector.exact_match.name)
    if selector.regex_match is not None:
        found |= matching[selector.regex_match.pattern]
    wanted = selector.label_match
    if wanted is not None and (wanted.match_labels or wanted.match_expressions):
        found |= {name for name, marks in labels.items() if selects(wanted, marks)}
    return found


DISCOVERY_CONFIG: Final = ("volcano-system", "volcano-controller-configmap")
"""Namespace and name of the ConfigMap, as Volcano's chart names it."""
_PAUSE_S: Final = 1.0
"""The least time between two passes over everything: nodes change in bursts."""
_UFM_LOOK_S: Final = 5.0
"""How often it is checked whether the fabric manager has answered."""
_NAMED: Final = 5
_CONDITION: Final = "MembersFound"
_log = logs.get("hypernode")


class HyperNodeController:
    """Keeps HyperNodes as node labels or a fabric manager describe them, and their status."""

    name = "hypernode"
    watches: tuple[str, ...] = (HYPER_NODE, "Node", "ConfigMap", "Secret")

    def __init__(
        self,
        config: tuple[str, str] = DISCOVERY_CONFIG,
        *,
        fabric: Fabric | None = None,
        poll_s: float | None = None,
    ) -> None:
        """Make one; with ``poll_s`` the ConfigMap is read that often instead of being watched.

        ``config`` is the namespace and the name of the ConfigMap.
        """
        self._everything = Key("ConfigMap", *config)
        self._fabric = fabric or BackgroundUfm()
        self._poll_s = poll_s
        self._node_labels: dict[str, Any] = {}
        self._looked_at = -_PAUSE_S
        self._text: str | None = None
        self._reported: set[str] = set()
        self._conf = DiscoveryConf()
        self._wanted: dict[str, Manifest] = {}
        self._discovered: set[str] = set()
        """Sources whose HyperNodes are all known: those that are not wanted are removed."""
        self._members: dict[str, Members] = {}

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:
        """Reconcile everything when a HyperNode, the labels of a node or the settings change."""
        metadata = manifest["metadata"]
        place = str(metadata.get("namespace", "")), str(metadata["name"])
        ufm = self._conf.ufm
        match kind:
            case "Node":
                concerned = self._has_new_labels(place[1], view)
            case "ConfigMap":
                concerned = place == (self._everything.namespace, self._everything.name)
            case "Secret":
                concerned = ufm is not None and place == ufm.secret
            case _:
                concerned = True
        return (self._everything,) if concerned else ()

    def _has_new_labels(self, name: str, view: View) -> bool:
        node = view.get("Node", "", name)
        labels = None if node is None else node["metadata"].get("labels") or {}
        if name in self._node_labels and self._node_labels[name] == labels:
            return False
        if labels is None:
            self._node_labels.pop(name, None)
        else:
            self._node_labels[name] = labels
        return True

    def reconcile(self, key: Key, view: View) -> Plan:
        """Reconcile everything, or correct one HyperNode."""
        if key != self._everything:
            return Plan(self._effects(key.name, view))
        left_s = self._looked_at + _PAUSE_S - view.now
        if 0 < left_s <= _PAUSE_S:
            return Plan(again_in_s=left_s)
        self._looked_at = view.now
        effects = self._read_conf(view)
        known, nodes = view.list(HYPER_NODE), view.list("Node")
        effects += self._discover(known, nodes, view)
        self._members = resolve_members(known, nodes)
        names = {*self._wanted, *(str(each["metadata"]["name"]) for each in known)}
        wrong = [name for name in sorted(names) if self._effects(name, view)]
        waits = _UFM_LOOK_S if self._conf.ufm is not None else None
        return Plan(
            effects,
            again_in_s=self._poll_s or waits,
            look_at=[Key(HYPER_NODE, "", name) for name in wrong],
        )

    # The wanted state

    def _read_conf(self, view: View) -> list[Effect]:
        """Apply the settings if they changed; a ConfigMap that cannot be read changes nothing."""
        key = self._everything
        found = view.read(key.kind, key.namespace, key.name)
        text = ((found or {}).get("data") or {}).get(CONF_KEY) or ""
        if found is None:
            self._text, self._conf = None, DiscoveryConf()
            return []
        if text == self._text:
            return []
        self._text = text
        self._reported.clear()
        try:
            self._conf = read_discovery(text, key.name)
        except InputError as error:
            return self._report(found, [f"{error}; the last one is kept"])
        return self._report(found, self._conf.problems)

    def _discover(self, known: list[Manifest], nodes: list[Manifest], view: View) -> list[Effect]:
        """Compute the HyperNodes of each source; one without an answer keeps what it has."""
        conf, problems = self._conf, list[str]()
        wanted: dict[str, list[Manifest]] = {}
        if conf.labels is not None:
            wanted["label"] = from_labels(nodes, known, conf.labels)
        if conf.ufm is None:
            self._fabric.forget()
        else:
            found = self._of_fabric(conf.ufm, view, problems)
            if found is not None:
                wanted["ufm"] = found
        self._discovered = {*wanted} - ({"label"} if conf.has_bad_labels else set())
        self._wanted = {
            str(each["metadata"]["name"]): each for some in wanted.values() for each in some
        }
        about = view.get(*_place(self._everything)) if problems else None
        return [] if about is None else self._report(about, problems)

    def _of_fabric(
        self, source: UfmSource, view: View, problems: list[str]
    ) -> list[Manifest] | None:
        """Return the last answer of the fabric manager, None if it lists nothing."""
        try:
            secret = view.read("Secret", *source.secret)
        except ClusterError as error:
            problems.append(f"the credentials of ufm cannot be read: {error}")
            return None
        values = _secret_values(secret)
        place = "/".join(source.secret)
        if not values.get("username") or not values.get("password"):
            problems.append(f"Secret {place}: expected username and password, got none")
            return None
        access = UfmAccess(
            source.endpoint,
            values["username"],
            values["password"],
            verify=source.verify,
            authority=values.get("ca.crt", ""),
            interval_s=source.interval_s,
        )
        reading = self._fabric.latest(access)
        if reading.problem:
            problems.append(reading.problem)
        if reading.ports is None:
            return None
        found = from_ports(reading.ports)
        if not found:
            problems.append(f"{source.endpoint}: named no host; keeping the last answer")
        return found or None

    def _report(self, about: Manifest, problems: Iterable[str]) -> list[Effect]:
        """Report each problem once, as long as the settings stay as they are."""
        new = [problem for problem in problems if problem not in self._reported]
        self._reported.update(new)
        for problem in new:
            _log.warning("topology discovery", problem=problem)
        return [Record(about, "Warning", "TopologyDiscovery", each, SOURCE) for each in new]

    # One HyperNode

    def _effects(self, name: str, view: View) -> list[Effect]:
        """Return the effects that correct a HyperNode."""
        wanted, known = self._wanted.get(name), view.get(HYPER_NODE, "", name)
        if known is None:
            return [] if wanted is None else [Create(wanted)]
        metadata = known["metadata"]
        if metadata.get("deletionTimestamp"):
            return []
        key, labels = Key(HYPER_NODE, "", name), metadata.get("labels") or {}
        source = labels.get(SOURCE_LABEL, "")
        if wanted is None and source in self._discovered:
            return [Delete(key, uid=str(metadata["uid"]))]
        effects: list[Effect] = []
        if wanted is not None and wanted["metadata"]["labels"][SOURCE_LABEL] == source:
            marks = wanted["metadata"]["labels"]
            if known.get("spec") != wanted["spec"] or not marks.items() <= labels.items():
                spec = {"tierName": None, **wanted["spec"]}
                effects.append(Patch(key, {"metadata": {"labels": marks}, "spec": spec}))
        status = self._status(name, known, view.now)
        if status is not None:
            effects.append(Patch(key, {"status": status}, subresource="status"))
        return effects

    def _status(self, name: str, known: Manifest, now: float) -> Manifest | None:
        """Return the status a HyperNode is to have, None if it already has it."""
        members = self._members.get(name)
        if members is None:
            return None
        status = known.get("status") or {}
        conditions: list[dict[str, Any]] = status.get("conditions") or []
        others = [each for each in conditions if each["type"] != _CONDITION]
        old = next((each for each in conditions if each["type"] == _CONDITION), {})
        condition = _condition(members)
        if old.get("status") == condition["status"]:
            condition["lastTransitionTime"] = old.get("lastTransitionTime", rfc3339(now))
        else:
            condition["lastTransitionTime"] = rfc3339(now)
        count = len(members.nodes)
        if status.get("nodeCount", 0) == count and old == condition:
            return None
        return {"nodeCount": count, "conditions": [*others, condition]}


def _condition(members: Members) -> dict[str, Any]:
    if not members.missing:
        return {
            "type": _CONDITION,
            "status": "True",
            "reason": "AllFound",
            "message": "every named member exists",
        }
    return {
        "type": _CONDITION,
        "status": "False",
        "reason": "MembersMissing",
        "message": f"missing: {first_of(sorted(members.missing), _NAMED)}",
    }


def _place(key: Key) -> tuple[str, str, str]:
    return key.kind, key.namespace, key.name


def _secret_values(secret: Manifest | None) -> dict[str, str]:
    """Return the values of a Secret; what is not text is left out."""
    found: dict[str, str] = {}
    for name, value in ((secret or {}).get("data") or {}).items():
        try:
            found[name] = base64.b64decode(value).decode()
        except (binascii.Error, UnicodeDecodeError, TypeError):
            continue
    return found
