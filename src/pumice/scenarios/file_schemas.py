"""JSON schemas of the files that users write: scenarios, configurations, lists of changes.

For editors; made of the tables by which the files are read, so that they know the same keys,
plugins, arguments and invariants.  The readers check more, and say it better.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

from pumice.actions import ACTIONS
from pumice.api.codes import Cause
from pumice.api.conf import CONF_KEYS, SWITCHES, TIER_KEYS
from pumice.api.short_forms import NODE_KEYS, QUEUE_KEYS, WORKLOAD_KEYS
from pumice.diagnosis.explanation import CHANGE, EXPLANATION
from pumice.framework.arguments import ACTION_ARGUMENTS, describe_arguments
from pumice.plugins import builtin_plugins
from pumice.scenarios.expectations import EXPECT_KEYS, LIST_KEYS, MAPPING_KEYS
from pumice.scenarios.invariants import INVARIANTS
from pumice.scenarios.scenario import GATES, TOP_KEYS
from pumice.scenarios.steps import DOES, WHEN

Schema = dict[str, Any]
_DRAFT: Final = "http://json-schema.org/draft-07/schema#"
"""The newest that editors of YAML know in full."""
_TEXT: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": ["integer", "string"]}
"""A number; a text where cases of a matrix or times differ in it."""
_AMOUNT: Final[Schema] = {"type": ["number", "string"]}
_MAP: Final[Schema] = {"type": "object"}
_TEXTS: Final[Schema] = {"type": ["array", "string"], "items": _TEXT}
_OBJECT: Final[Schema] = {
    "type": ["object", "null"],
    "required": ["apiVersion", "kind"],
    "properties": {"apiVersion": _TEXT, "kind": _TEXT, "metadata": _MAP},
}
_OF_ARGUMENTS: Final[Mapping[str, Schema]] = {
    "integer": {"type": "integer"},
    "number": {"type": "number"},
    "true or false": {"type": ["boolean", "string"]},
    "text": _TEXT,
    "duration": _TEXT,
    "quantity": _AMOUNT,
    "list": {"type": "array"},
    "mapping": _MAP,
}
"""By the name of the type of an argument; others may be anything."""


def _mapping(properties: Mapping[str, Schema], *required: str) -> Schema:
    """Return the schema of a mapping that has no other keys."""
    found = {"type": "object", "properties": dict(properties), "additionalProperties": False}
    return {**found, "required": [*required]} if required else found


def _keys(keys: Iterable[str], types: Mapping[str, Schema], otherwise: Schema) -> dict[str, Schema]:
    return {key: types.get(key, otherwise) for key in keys}


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _arguments(cls: type) -> Schema:
    """Return the schema of the arguments that a plugin or an action declares."""
    known: dict[str, Schema] = {}
    patterns: dict[str, Schema] = {}
    for row in describe_arguments(cls):
        schema = {**_OF_ARGUMENTS.get(row.type, {}), "description": row.doc}
        section, is_inside, key = row.key.rpartition(": ")
        if is_inside:
            known.setdefault(section, _mapping({}))["properties"][key] = schema
        elif "*" in key:
            parts = (re.escape(part) for part in key.split("*"))
            patterns[f"^{'.+'.join(parts)}$"] = schema
        else:
            known[key] = schema
    return {**_mapping(known), "patternProperties": patterns}


def _named(arguments: Mapping[str, type], more: Mapping[str, Schema]) -> Schema:
    """Return the schema of an entry with a name and the arguments of what has that name."""
    name = {"anyOf": [{"enum": sorted(arguments)}, _TEXT]}
    entry = _mapping({"name": name, "arguments": {"type": ["object", "null"]}, **more}, "name")
    entry["allOf"] = [
        {
            "if": {"properties": {"name": {"const": each}}},
            "then": {"properties": {"arguments": _arguments(cls)}},
        }
        for each, cls in sorted(arguments.items())
        if describe_arguments(cls)
    ]
    return entry


def _conf() -> Schema:
    switch = {"type": "boolean"}
    switches = {
        name: {**switch, "description": each.doc, "default": each.default}
        for each in SWITCHES
        for name in (each.key, each.alias)
    }
    plugins = _list(_named(builtin_plugins(), switches))
    known = ", ".join(ACTIONS)
    types = {
        "actions": {**_TEXT, "description": f"names with commas between them: {known}"},
        "tiers": _list(_mapping(_keys(TIER_KEYS, {"plugins": plugins}, {"const": "strict"}))),
        "configurations": _list(_named(ACTION_ARGUMENTS, {})),
        "metrics": _MAP,
    }
    return _mapping(_keys(CONF_KEYS, types, {}), "actions")


def _expect() -> Schema:
    types: dict[str, Schema] = {
        **{key: {"type": ["object", "array", "integer", "string"]} for key in MAPPING_KEYS},
        **{key: {"type": ["array", "object", "integer", "string"]} for key in LIST_KEYS},
        "causes": {"type": "object", "additionalProperties": _cause()},
    }
    record = _keys(EXPECT_KEYS, types, {})
    record["cycles"] = _list(_mapping({key: record[key] for key in record if key != "cycles"}))
    return _mapping(record)


def _cause() -> Schema:
    code = {"enum": [each.value for each in Cause]}
    return {"anyOf": [code, _list(code), _MAP]}


def _by_name(entry: Schema) -> Schema:
    return {"type": "object", "additionalProperties": entry}


def _with_resources(keys: Iterable[str], types: Mapping[str, Schema]) -> Schema:
    """Return the schema of a mapping that may name further resources: ``example.com/npu``."""
    found = _mapping(_keys(keys, types, {}))
    return {**found, "patternProperties": {"/": _AMOUNT}}


def _scenario() -> Schema:
    amounts = dict.fromkeys(("cpu", "memory", "gpu"), _AMOUNT)
    words = dict.fromkeys(("name", "namespace", "queue"), _TEXT)
    pool = _with_resources(NODE_KEYS, {**amounts, "name": _TEXT, "labels": _MAP})
    parts = dict.fromkeys(("deserved", "guarantee", "capability"), _MAP)
    queue = {**_mapping(_keys(QUEUE_KEYS, parts, {})), "type": ["object", "null"]}
    workloads = _list(_with_resources(WORKLOAD_KEYS, {**amounts, **words, "labels": _MAP}))
    forms = {
        "nodes": {"anyOf": [pool, _list(pool), _by_name(pool)]},
        "queues": {"anyOf": [_list(_TEXT), _by_name(queue)]},
        "workloads": workloads,
        "objects": {"anyOf": [_TEXT, _list(_OBJECT)]},
    }
    forms["conf"] = {"anyOf": [_TEXT, _conf()]}
    shared = {name: {"$ref": f"#/definitions/{name}"} for name in forms}
    step = _keys((*WHEN, *DOES), shared, {})
    expect = _expect()
    goal = _mapping({"within": {}, **expect["properties"]})
    invariants = _by_name({})
    invariants["properties"] = {name: {} for name in INVARIANTS}
    types = {
        **shared,
        **dict.fromkeys(("name", "family", "description", "now", "confFrom"), _TEXT),
        **dict.fromkeys(("nodeUsage", "hidden", "matrix", "draw"), _MAP),
        "seed": _NUMBER,
        "cycles": {**_NUMBER, "minimum": 1},
        "stable": {"enum": [True, "counts"]},
        "featureGates": _mapping({key: {"type": "boolean"} for key in GATES}),
        "objectsFrom": _TEXTS,
        "priorities": _by_name({"type": "integer"}),
        "at": {"anyOf": [_list(_mapping(step)), _by_name(_mapping(step))]},
        "evicted": {"enum": ["gone", "requeue"]},
        "expect": expect,
        "always": {"anyOf": [_TEXT, _list({}), invariants]},
        "eventually": {"anyOf": [goal, _list(goal)]},
    }
    return {"definitions": forms, **_mapping(_keys(TOP_KEYS, types, {}))}


def _changes() -> Schema:
    """Return the schema of a list of changes; a namespace may be left out."""
    kinds = [
        {**one, "required": [key for key in one["required"] if key != "namespace"]}
        for one in CHANGE["oneOf"]
    ]
    changes = _list({"oneOf": kinds})
    return {"anyOf": [changes, {"type": "object", "required": ["changes"]}]}


_MADE: Final[Mapping[str, tuple[str, Callable[[], Schema]]]] = {
    "changes": ("Changes to a cluster, for pumice whatif --changes", _changes),
    "conf": ("Configuration of the scheduler", _conf),
    "explanation": ("Output of pumice explain -o json", lambda: EXPLANATION),
    "scenario": ("Scenario: a cluster, a configuration, expected decisions", _scenario),
}
FILES: Final = tuple(_MADE)
"""What there are schemas of."""


@cache
def file_schema(name: str) -> Schema:
    """Return the schema of a kind of file."""
    title, make = _MADE[name]
    return {"$schema": _DRAFT, "title": title, **make()}
