"""The scheduler configuration (``volcano-scheduler.conf``) as frozen values; parsed once.

Used wherever sessions start and by ``pumice config check``. Key names and defaults are
Volcano's, but mistakes are reported, all at once, instead of ignored in silence. Knows
no action and no plugin: ``api.conf_checks`` receives their names.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import yaml

from pumice.api.conf_lines import Entry, Problem, Severity, YamlReader
from pumice.api.wording import name_hint, nearest
from pumice.api.yaml_text import line_of
from pumice.errors import ConfError, Words

__all__ = [
    "DEFAULT_CONF",
    "SWITCHES",
    "PluginConf",
    "Problem",
    "SchedulerConf",
    "Severity",
    "Switch",
    "Tier",
    "is_switch",
    "parse_conf",
    "read_conf",
]

DEFAULT_CONF: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - {name: overcommit}
  - {name: drf}
  - {name: predicates}
  - {name: proportion}
  - {name: nodeorder}
"""


class Switch(msgspec.Struct, frozen=True):
    """A yes or no that every plugin entry may have: one group of hooks on or off."""

    key: str
    doc: str
    default: bool = True

    @property
    def alias(self) -> str:
        """The same key in the other spelling; Volcano mixes ``enable…`` and ``enabled…``."""
        stem = self.key.removeprefix("enable").removeprefix("d")
        return f"enable{stem}" if self.key.startswith("enabled") else f"enabled{stem}"


SWITCHES: Final = (
    Switch("enableJobOrder", "which job of a queue goes first"),
    Switch("enableHierarchy", "queues form a tree", default=False),
    Switch("enableJobReady", "whether a job has enough tasks to start"),
    Switch("enableJobPipelined", "whether a job may wait for resources being freed"),
    Switch("enableTaskOrder", "which task of a job goes first"),
    Switch("enablePreemptable", "which tasks a job of the same queue may evict"),
    Switch("enableReclaimable", "which tasks another queue may evict"),
    Switch("enablePreemptive", "whether a queue may reclaim at all"),
    Switch("enableQueueOrder", "which queue goes first"),
    Switch("enabledClusterOrder", "which cluster goes first", default=False),
    Switch("enablePredicate", "which nodes a task may use"),
    Switch("enableBestNode", "the final choice among the scored nodes"),
    Switch("enableNodeOrder", "scores of nodes"),
    Switch("enableTargetJob", "the job that nodes are reserved for"),
    Switch("enableReservedNodes", "the nodes that are reserved"),
    Switch("enableJobEnqueued", "whether a pending job is admitted to its queue"),
    Switch("enabledVictim", "tasks to evict although no job asks for their place"),
    Switch("enableJobStarving", "whether a job may evict others"),
    Switch("enabledOverused", "whether a queue has its share and must wait"),
    Switch("enabledAllocatable", "whether a queue may take one more task"),
    Switch("enabledHyperNodeOrder", "scores of network domains"),
    Switch("enabledSubJobReady", "whether a part of a job has enough tasks to start"),
    Switch("enabledSubJobPipelined", "whether a part of a job may wait for resources being freed"),
    Switch("enabledSubJobOrder", "which part of a job goes first"),
    Switch("enabledHyperNodeGradient", "the order in which network domains are tried"),
)
_STRICT: Final = "strict"
CONF_KEYS: Final = ("actions", "tiers", "configurations", "metrics")
TIER_KEYS: Final = ("plugins", "victims")
_ACTIONS: Final = 'actions separated by commas, such as "enqueue, allocate"'
_MOST_ENTRIES: Final = 1000
"""Actions, and tiers with their plugins: a cycle asks each of them again and again."""
_SPELLINGS: Final = {name: switch for switch in SWITCHES for name in (switch.key, switch.alias)}
_ERROR: Final[Severity] = "error"
_IGNORED: Final[Severity] = "ignored"
_DEFAULTS: Final = {switch.key: switch.default for switch in SWITCHES}


def is_switch(key: str) -> bool:
    """Return whether a key is a switch, in either spelling."""
    return key in _SPELLINGS


@dataclass(frozen=True, slots=True)
class PluginConf:
    """One plugin of a tier; ``switches`` is complete and keyed by Volcano's spelling."""

    name: str
    switches: Mapping[str, bool]
    arguments: Mapping[str, Any]
    line: int = field(default=0, compare=False)
    argument_lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    path: str = field(default="", compare=False)
    """Its place, as in ``tiers[0].plugins[1]``; entries that cannot be read count, too."""


class Tier(msgspec.Struct, frozen=True):
    """Plugins that are asked together, before those of the next tier."""

    plugins: tuple[PluginConf, ...]
    is_strict: bool = False
    """Whether victims are those that all plugins of this tier permit, and nobody else."""


@dataclass(frozen=True, slots=True)
class SchedulerConf:
    """A whole configuration. Equality is about meaning: lines and problems do not count."""

    actions: tuple[str, ...]
    tiers: tuple[Tier, ...]
    configurations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    metrics: Mapping[str, str] = field(default_factory=dict)
    queue_gates: bool = False
    """Whether queue gates are opened; a feature gate of the process, not part of the file."""
    metrics_lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    problems: tuple[Problem, ...] = field(default=(), compare=False)
    actions_line: int = field(default=0, compare=False)
    configuration_lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    configuration_argument_lines: Mapping[str, Mapping[str, int]] = field(
        default_factory=dict, compare=False
    )

    def names_plugin(self, name: str) -> bool:
        """Return whether a plugin is in one of the tiers."""
        return any(plugin.name == name for tier in self.tiers for plugin in tier.plugins)


def parse_conf(text: str, *, source: str = "<conf>") -> SchedulerConf:
    """Read a configuration; ignored parts are listed in its ``problems``.

    Raises:
        ConfError: with every problem of severity "error", not only the first.
    """
    conf = read_conf(text)
    errors = [problem for problem in conf.problems if problem.severity == "error"]
    if errors:
        raise ConfError(errors, file=source)
    return conf


def read_conf(text: str) -> SchedulerConf:
    """Read what can be read and list every problem, sorted by line; never raises."""
    return _ConfReader().read(text)


class _ConfReader(YamlReader):
    """One reading of one configuration: the methods follow the structure of the file."""

    def read(self, text: str) -> SchedulerConf:
        root = self.compose(text)
        if not isinstance(root, yaml.MappingNode):
            if root is not None:
                self.note(line_of(root), "", "a mapping", found=self.value(root, ""))
            elif not self.problems:
                self.note(1, "actions", _ACTIONS)
            return SchedulerConf(actions=(), tiers=(), problems=tuple(self.problems))
        top = self.known_entries(root, "", CONF_KEYS)
        actions, actions_line = self.actions(root, top.get("actions"))
        tiers = self.tiers(top.get("tiers"))
        arguments, lines, argument_lines = self.configurations(top.get("configurations"))
        metrics, metrics_lines = self.metrics(top.get("metrics"))
        return SchedulerConf(
            actions=actions,
            tiers=tiers,
            configurations=arguments,
            metrics=metrics,
            metrics_lines=metrics_lines,
            problems=tuple(sorted(self.problems, key=lambda problem: problem.line)),
            actions_line=actions_line,
            configuration_lines=lines,
            configuration_argument_lines=argument_lines,
        )

    def known_entries(
        self, node: yaml.Node, path: str, known: Collection[str], kind: str = "a known key"
    ) -> dict[str, Entry]:
        """Return the entries of a mapping; an unknown key is an error."""
        entries = self.entries(node, path)
        for key, entry in entries.items():
            if key not in known:
                self.note(entry.line, path, kind, found=key, hint=name_hint(key, known))
        return entries

    def actions(self, root: yaml.Node, entry: Entry | None) -> tuple[tuple[str, ...], int]:
        if entry is None:
            misspelt = (nearest(key, CONF_KEYS) == "actions" for key in self.entries(root, ""))
            if not any(misspelt):  # it was reported
                self.note(line_of(root), "actions", _ACTIONS)
            return (), 0
        line = entry.line
        if not isinstance(entry.node, yaml.ScalarNode):
            found = self.value(entry.node, "actions")
            self.note(line, "actions", _ACTIONS, found=found, hint="write them as one text")
            return (), line
        text = self.text(entry.node, "actions") or ""
        names = tuple(name.strip().lower() for name in text.split(","))  # some write gangPreempt
        if not all(names):
            hint = "a comma too many" if any(names) else ""
            self.note(line, "actions", _ACTIONS, found=text, hint=hint)
        if len(names) > _MOST_ENTRIES:
            self.note(line, "actions", f"at most {_MOST_ENTRIES:,} actions", found=len(names))
        return tuple(filter(None, names[:_MOST_ENTRIES])), line

    def tiers(self, entry: Entry | None) -> tuple[Tier, ...]:
        if entry is None:
            return ()
        tiers = []
        count = 0
        for path, node in self.items(entry.node, "tiers"):
            tiers.append(self.tier(node, path))
            count += 1 + len(tiers[-1].plugins)
            if count > _MOST_ENTRIES:
                wanted = f"at most {_MOST_ENTRIES:,} tiers and plugins"
                self.note(line_of(node), path, wanted, found=Words("more"))
                break
        return tuple(tiers)

    def tier(self, node: yaml.Node, path: str) -> Tier:
        entries = self.known_entries(node, path, TIER_KEYS)
        is_strict = self.is_strict(entries.pop("victims", None), path)
        entry = entries.get("plugins")
        if entry is None:
            if not entries and (self.is_null(node) or isinstance(node, yaml.MappingNode)):
                self.note(line_of(node), path, "the key plugins")
            return Tier(())
        found = (self.plugin(item, at) for at, item in self.items(entry.node, f"{path}.plugins"))
        plugins = tuple(plugin for plugin in found if plugin is not None)
        names = {plugin.name: plugin for plugin in plugins}
        tree = names.get("drf")
        if "proportion" in names and tree is not None and tree.switches["enableHierarchy"]:
            self.note(
                tree.line,
                path,
                "either proportion or drf with enableHierarchy in one tier",
                found=Words("both"),
                hint="move one of them to another tier",
            )
        return Tier(plugins, is_strict=is_strict)

    def is_strict(self, entry: Entry | None, path: str) -> bool:
        if entry is None:
            return False
        value = self.value(entry.node, f"{path}.victims")
        if value != _STRICT:
            hint = "leave the key out for Volcano's rule"
            self.note(entry.line, f"{path}.victims", _STRICT, found=value, hint=hint)
        return value == _STRICT

    def plugin(self, node: yaml.Node, path: str) -> PluginConf | None:
        if not isinstance(node, yaml.MappingNode):
            found = self.value(node, path)
            hint = f"write it as name: {found}" if isinstance(found, str) else ""
            self.note(line_of(node), path, "a mapping", found=found, hint=hint)
            return None
        entries = self.plugin_entries(node, path)
        name = self.name(node, entries, path)
        switches = self.switches(entries, path)
        arguments, lines = self.arguments(entries.get("arguments"), f"{path}.arguments")
        if not name:
            return None
        return PluginConf(name, switches, arguments, line_of(node), lines, path)

    def name(self, node: yaml.Node, entries: Mapping[str, Entry], path: str) -> str:
        entry = entries.get("name")
        name = self.text(entry.node, f"{path}.name") if entry is not None else None
        if not name:
            self.note(line_of(node), path, "a name", hint="write it as name: …")
        return name or ""

    def plugin_entries(self, node: yaml.Node, path: str) -> dict[str, Entry]:
        """Return the keys of a plugin; keys from Volcano's own examples only cause a warning."""
        known = {"name", "arguments", *_SPELLINGS}
        wanted = "name, arguments or a switch"
        entries = self.entries(node, path)
        for key, entry in entries.items():
            if key in known:
                continue
            hint, severity = name_hint(key, known), _ERROR
            if "." in key:
                hint, severity = "write it under arguments", _IGNORED
            elif f"enable{key.removeprefix('disable')}" in _SPELLINGS:
                hint = f"write enable{key.removeprefix('disable')}: false"
                severity = _IGNORED
            self.note(entry.line, path, wanted, found=key, hint=hint, severity=severity)
        return entries

    def switches(self, entries: Mapping[str, Entry], path: str) -> dict[str, bool]:
        given: dict[str, Entry] = {}
        switches = dict(_DEFAULTS)
        for name, entry in entries.items():
            switch = _SPELLINGS.get(name)
            if switch is None:
                continue
            if switch.key in given:
                first = f"also as {switch.alias}, the other on line {given[switch.key].line}"
                self.note(entry.line, path, f"{switch.key} once", found=name, hint=first)
            given[switch.key] = entry
            value = self.value(entry.node, f"{path}.{name}")
            if isinstance(value, bool):
                switches[switch.key] = value
            else:
                self.note_switch(entry.line, f"{path}.{name}", value, switch)
        return switches

    def note_switch(self, line: int, path: str, value: object, switch: Switch) -> None:
        """Report a switch without a usable value: a left-out one is only ignored."""
        if value is None:
            hint = f"{str(switch.default).lower()} is kept"
            self.note(line, path, "true or false", hint=hint, severity="ignored")
            return
        quoted = isinstance(value, str) and value.lower() in {"true", "false"}
        hint = "without quotes" if quoted else ""
        self.note(line, path, "true or false", found=value, hint=hint)

    def arguments(self, entry: Entry | None, path: str) -> tuple[dict[str, Any], dict[str, int]]:
        if entry is None:
            return {}, {}
        entries = self.entries(entry.node, path)
        values = {key: self.value(each.node, f"{path}.{key}") for key, each in entries.items()}
        return values, {key: each.line for key, each in entries.items()}

    def configurations(
        self, entry: Entry | None
    ) -> tuple[dict[str, dict[str, Any]], dict[str, int], dict[str, dict[str, int]]]:
        arguments: dict[str, dict[str, Any]] = {}
        lines: dict[str, int] = {}
        argument_lines: dict[str, dict[str, int]] = {}
        nodes = self.items(entry.node, "configurations") if entry is not None else ()
        for path, node in nodes:
            entries = self.known_entries(node, path, ("name", "arguments"))
            name = self.name(node, entries, path).lower()
            values, value_lines = self.arguments(entries.get("arguments"), f"{path}.arguments")
            if name in arguments:
                hint = f"the entry on line {lines[name]} counts"
                wanted = "one entry for each action"
                line = line_of(node)
                self.note(line, path, wanted, found=name, hint=hint, severity="ignored")
            elif name:
                arguments[name], lines[name] = values, line_of(node)
                argument_lines[name] = value_lines
        return arguments, lines, argument_lines

    def metrics(self, entry: Entry | None) -> tuple[dict[str, str], dict[str, int]]:
        if entry is None:
            return {}, {}
        entries: dict[str, Entry] = {}
        for key, each in self.entries(entry.node, "metrics").items():
            inner = {key: each}
            if isinstance(each.node, yaml.MappingNode):  # as Volcano's own examples write it
                parts = self.entries(each.node, f"metrics.{key}")
                inner = {f"{key}.{name}": one for name, one in parts.items()}
            for name, one in inner.items():
                if name in entries:
                    first = f"first on line {entries[name].line}"
                    self.note(one.line, "metrics", "each key once", found=name, hint=first)
                entries[name] = one
        texts = {key: self.text(each.node, f"metrics.{key}") or "" for key, each in entries.items()}
        return texts, {"": entry.line, **{key: each.line for key, each in entries.items()}}
