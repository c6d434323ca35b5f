"""HyperNodes as their sources describe them: the settings of discovery, node labels, a fabric."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from pumice.api.annotations import HOSTNAME
from pumice.api.duration import parse_duration
from pumice.api.kinds import Manifest
from pumice.api.shown_text import without_secrets
from pumice.api.wording import name_hint
from pumice.api.yaml_text import parse_yaml
from pumice.cluster.ufm import Port
from pumice.errors import ABSENT, InputError

CONF_KEY: Final = "volcano-controller.conf"
_SECTION: Final = "networkTopologyDiscovery"
_ENTRY: Final = ("source", "enabled", "interval", "credentials", "config")
_SOURCES: Final = ("label", "ufm")
_HOUR_S: Final = 3600.0
_LONGEST_TYPE: Final = 20
_LONGEST_LABEL: Final = 253
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9.-]")
_ADDRESS: Final = re.compile(r"[!-\"$->@-~]+")
"""Printable, without a query or a fragment."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


class UfmSource(msgspec.Struct, frozen=True):
    """A fabric manager."""

    endpoint: str
    verify: bool
    interval_s: float
    secret: tuple[str, str]
    """Namespace and name of the Secret with ``username``, ``password`` and perhaps ``ca.crt``."""


@dataclass(frozen=True, slots=True)
class DiscoveryConf:
    """The sources of discovery; a source that is None is off."""

    labels: Mapping[str, tuple[str, ...]] | None = None
    """Topology type, as used in names, to node labels from the lowest tier up."""
    has_bad_labels: bool = False
    """Whether some topology type could not be read: HyperNodes that it may have made must stay."""
    ufm: UfmSource | None = None
    problems: tuple[str, ...] = field(default=(), compare=False)


def read_discovery(text: str, source: str) -> DiscoveryConf:
    """Read the configuration; ``source`` is its place, for messages.

    Raises:
        InputError: the text is not a YAML mapping.
    """
    documents = parse_yaml(text, source, unique=False)
    found = documents[0] if documents else None
    if found is not None and not isinstance(found, dict):
        raise InputError(wanted="a mapping", found=found, file=source)
    return _Reader(source).read((found or {}).get(_SECTION))


class _Reader:
    """One reading; an unusable value becomes a problem."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._problems: list[str] = []

    def read(self, entries: Any) -> DiscoveryConf:
        enabled: dict[str, tuple[str, dict[str, Any]]] = {}
        for index, entry in enumerate(
            self._typed(entries or [], list, _SECTION, "a list", instead=[])
        ):
            path = f"{_SECTION}[{index}]"
            name = self._source_of(entry, path)
            if name in enabled:
                self._note(f"{path}.source", f"{name} once; the first one counts", name)
            elif name:
                enabled[name] = path, entry
        labels, is_bad = self._labels(*enabled["label"]) if "label" in enabled else (None, False)
        ufm = self._ufm(*enabled["ufm"]) if "ufm" in enabled else None
        return DiscoveryConf(labels, is_bad, ufm, tuple(self._problems))

    def _source_of(self, entry: Any, path: str) -> str:
        """Return the source of an entry, nothing if it is off or cannot be used."""
        if not isinstance(entry, dict):
            self._note(path, "a mapping with source and enabled", entry)
            return ""
        for key in entry:
            if key not in _ENTRY:
                self._note(path, "a known key", key, name_hint(str(key), _ENTRY))
        if not self._truth(entry, "enabled", path):
            return ""
        name = entry.get("source", ABSENT)
        if name not in _SOURCES:
            self._note(f"{path}.source", "label or ufm", name)
            return ""
        return str(name)

    # Labels

    def _labels(self, path: str, entry: dict[str, Any]) -> tuple[dict[str, tuple[str, ...]], bool]:
        """Return the topology types, and whether there are others that cannot be used."""
        config = self._typed(
            entry.get("config") or {}, dict, f"{path}.config", "a mapping", instead={}
        )
        where = f"{path}.config.networkTopologyTypes"
        given = config.get("networkTopologyTypes", ABSENT)
        types = self._typed(given, dict, where, "topology types, each with node labels", instead={})
        found: dict[str, tuple[str, ...]] = {}
        for name in sorted(map(str, types)):
            keys = self._node_labels(types.get(name), f"{where}.{name}")
            clean = _NOT_IN_NAMES.sub("-", name.lower())
            if len(name) > _LONGEST_TYPE or not _NAME.fullmatch(f"hypernode-{clean}-tier1-x"):
                wanted = f"a name of at most {_LONGEST_TYPE} letters, digits and dashes"
                self._note(where, wanted, name)
            elif clean in found:
                self._note(where, "types whose names differ by more than case and signs", name)
            elif keys is not None:
                found[clean] = keys
        return found, len(found) < len(types) or not isinstance(given, dict)

    def _node_labels(self, entries: Any, where: str) -> tuple[str, ...] | None:
        """Return the labels from the lowest tier up, None if they cannot be used.

        The last one in the file is the node itself and makes no HyperNode.
        """
        levels = self._typed(entries, list, where, "a list of nodeLabel entries", instead=None)
        if levels is None:
            return None
        keys = [one.get("nodeLabel") if isinstance(one, dict) else None for one in levels]
        for index, key in enumerate(keys):
            if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_LABEL:
                self._note(f"{where}[{index}].nodeLabel", "the name of a label", key or ABSENT)
                return None
        if len(set(keys)) != len(keys):
            self._note(where, "each label once", ", ".join(map(str, keys)))
            return None
        if keys and keys[-1] != HOSTNAME:
            hint = "the last label is the node itself and makes no HyperNode"
            self._note(f"{where}[{len(keys) - 1}].nodeLabel", HOSTNAME, keys[-1], hint)
        return tuple(str(key) for key in reversed(keys[:-1]))

    # UFM

    def _ufm(self, path: str, entry: dict[str, Any]) -> UfmSource | None:
        before = len(self._problems)
        config = self._typed(
            entry.get("config") or {}, dict, f"{path}.config", "a mapping", instead={}
        )
        endpoint = self._endpoint(config.get("endpoint", ABSENT), f"{path}.config.endpoint")
        skip = self._truth(config, "insecureSkipVerify", f"{path}.config")
        interval_s = self._interval(entry.get("interval"), f"{path}.interval")
        secret = self._secret(entry.get("credentials"), f"{path}.credentials.secretRef")
        if len(self._problems) > before:
            return None
        return UfmSource(endpoint, verify=not skip, interval_s=interval_s, secret=secret)

    def _endpoint(self, given: Any, where: str) -> str:
        text = given if isinstance(given, str) else ""
        text = text if "://" in text else f"https://{text}"
        try:
            parts = urlsplit(text)
            usable = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
            usable = usable and parts.scheme in ("http", "https")
        except ValueError:
            usable = False
        if not usable or not _ADDRESS.fullmatch(text):
            shown = "one with a user" if "@" in text else without_secrets(str(given))
            self._note(where, "an address such as https://ufm:8080", shown)
        return text.rstrip("/")

    def _interval(self, given: Any, where: str) -> float:
        if given is None:
            return _HOUR_S
        try:
            seconds = parse_duration(str(given))
        except InputError:
            self._note(where, "a duration such as 10m", given)
            return _HOUR_S
        return max(seconds, 1.0) if seconds > 0 else _HOUR_S

    def _secret(self, given: Any, where: str) -> tuple[str, str]:
        reference = given.get("secretRef") if isinstance(given, dict) else None
        names = reference if isinstance(reference, dict) else {}
        found = names.get("namespace"), names.get("name")
        if not all(isinstance(each, str) and _NAME.fullmatch(each) for each in found):
            self._note(where, "name and namespace of a Secret", reference or ABSENT)
        return str(found[0]), str(found[1])

    def _truth(self, given: dict[str, Any], key: str, path: str) -> bool:
        value = given.get(key, False)
        return bool(self._typed(value, bool, f"{path}.{key}", "true or false", instead=False))

    def _typed(self, value: Any, kind: type, where: str, wanted: str, *, instead: Any) -> Any:
        if isinstance(value, kind):
            return value
        self._note(where, wanted, value)
        return instead

    def _note(self, where: str, wanted: str, found: Any, hint: str = "") -> None:
        error = InputError(wanted=wanted, found=found, field=where, file=self._source, hint=hint)
        self._problems.append(str(error))


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
