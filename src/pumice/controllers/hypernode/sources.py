"""Topology as HyperNodes: from the labels of nodes, and from the ports of a fabric.

Pure; used by the controller.  Names are Volcano's, so that HyperNodes it has made stay in use.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from pumice.api.kinds import Manifest
from pumice.cluster.ufm import Port

SOURCE_LABEL: Final = "volcano.sh/network-topology-source"
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX: Final = 5
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME: Final = 253


class _Group(msgspec.Struct):
    """Nodes, or smaller groups, that have the same value of a label."""

    name: str
    members: set[str] = msgspec.field(default_factory=set)


def from_labels(
    nodes: Iterable[Manifest], known: Sequence[Manifest], types: Mapping[str, tuple[str, ...]]
) -> list[Manifest]:
    """Return the HyperNodes that node labels describe.

    ``known`` are all existing HyperNodes: one that was made for the same value keeps its name.  A
    node that lacks a label is in no group of that tier or of any above it.
    """
    names, groups = _Names(known), dict[tuple[str, str, int], _Group]()
    for node in sorted(nodes, key=lambda each: str(each["metadata"]["name"])):
        labels = node["metadata"].get("labels") or {}
        for type_name, keys in types.items():
            member = str(node["metadata"]["name"])
            for tier, key in enumerate(keys, start=1):
                value = labels.get(key)
                if value is None:
                    break
                group = groups.get((key, value, tier))
                if group is None:
                    name = names.of(f"hypernode-{type_name}-tier{tier}-", key, value)
                    group = groups[key, value, tier] = _Group(name)
                group.members.add(member)
                member = group.name
    return [
        _hyper_node(group.name, tier, group.members, "label", {key: value}, tier_name=key)
        for (key, value, tier), group in groups.items()
    ]


class _Names:
    """Finds the name of a group, or a free one; the same one each time."""

    def __init__(self, known: Sequence[Manifest]) -> None:
        self._taken = {str(each["metadata"]["name"]) for each in known}
        self._known: dict[tuple[str, str], list[str]] = {}
        for each in known:
            labels = each["metadata"].get("labels") or {}
            if labels.get(SOURCE_LABEL) == "label":
                for item in labels.items():
                    self._known.setdefault(item, []).append(str(each["metadata"]["name"]))

    def of(self, stem: str, key: str, value: str) -> str:
        for name in sorted(self._known.get((key, value), ())):
            if name.startswith(stem):
                return name
        attempt = 0
        while (name := stem + _suffix(f"{key}={value}#{attempt}")) in self._taken:
            attempt += 1
        self._taken.add(name)
        return name


def _suffix(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:_SUFFIX])


def from_ports(ports: Iterable[Port]) -> list[Manifest]:
    """Return the HyperNodes of a fabric: leaf switches that share hosts, and the spine over them.

    Hosts whose name cannot be that of a node are left out.
    """
    hosts: dict[str, set[str]] = {}
    for port in ports:
        if "Computer" in (port.description or "") and is_node_name(port.system_name or ""):
            hosts.setdefault(port.peer_node_name or "", set()).add(str(port.system_name))
    groups = _joined(hosts)
    leaves = [
        _hyper_node(f"leaf-hn-{number}", 1, group, "ufm") for number, group in enumerate(groups)
    ]
    if not leaves:
        return []
    names = [str(leaf["metadata"]["name"]) for leaf in leaves]
    return [*leaves, _hyper_node("spine-hn", 2, names, "ufm")]


def is_node_name(text: str) -> bool:
    """Return whether a text can be the name of a node."""
    return len(text) <= _LONGEST_NAME and _SUBDOMAIN.fullmatch(text) is not None


def _joined(hosts: Mapping[str, set[str]]) -> list[set[str]]:
    """Join the hosts of switches that share some, in the order of the switches' names."""
    switches: dict[str, list[str]] = {}
    for switch in sorted(hosts):
        for host in hosts[switch]:
            switches.setdefault(host, []).append(switch)
    groups: list[set[str]] = []
    seen: set[str] = set()
    for first in sorted(hosts):
        reached, group = [first], set[str]()
        while reached:
            switch = reached.pop()
            if switch not in seen:
                seen.add(switch)
                group |= hosts[switch]
                reached += [other for host in hosts[switch] for other in switches[host]]
        if group:
            groups.append(group)
    return groups


def _hyper_node(
    name: str,
    tier: int,
    members: Iterable[str],
    source: str,
    labels: Mapping[str, str] | None = None,
    *,
    tier_name: str = "",
) -> Manifest:
    kind = "Node" if tier == 1 else "HyperNode"
    spec: Manifest = {
        "tier": tier,
        "members": [
            {"type": kind, "selector": {"exactMatch": {"name": member}}}
            for member in sorted(members)
        ],
    }
    if tier_name:
        spec["tierName"] = tier_name
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name, "labels": {**(labels or {}), SOURCE_LABEL: source}},
        "spec": spec,
    }
