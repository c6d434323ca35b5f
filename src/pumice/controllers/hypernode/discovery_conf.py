"""The section ``networkTopologyDiscovery`` of the controllers' ConfigMap: what to discover, how.

Keys and defaults are Volcano's.  An unusable entry is reported and left out; others count.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from pumice.api.annotations import HOSTNAME
from pumice.api.duration import parse_duration
from pumice.api.shown_text import without_secrets
from pumice.api.wording import name_hint
from pumice.api.yaml_text import parse_yaml
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
