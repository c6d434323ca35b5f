"""The schema of the chart's values, by which Helm refuses misspelt names and unusable values.

Types follow from ``values.yaml``.  Names of Volcano's chart that have no meaning here are accepted,
so that its values files can be kept; the notes after installation name them.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from pumice.serve.options import FEATURE_GATES
from pumice.webhooks.registry import SERVICES

Schema = dict[str, Any]
_OF_VOLCANO: Final[Mapping[str, tuple[str, ...]]] = {
    "basic": ("crd_version",),
    "custom": (
        "colocation_enable",
        "go_memlimit_enable",
        "kube_state_metrics_ns",
        "map_enable",
        "metrics_enable",
        "scheduler_node_worker_threads",
        "scheduler_plugins_dir",
        "scheduler_pprof_enable",
        "vap_enable",
    ),
}
_OF_ITS_OTHER_PROGRAMS: Final = "^(agent|hypernode_controller)_"
_PORT: Final = {"type": "integer", "minimum": 1, "maximum": 65535}
_COUNT: Final = {"type": "integer", "minimum": 0}
_UNSET: Final[Mapping[str, tuple[str, ...]]] = {
    "_(affinity|labels|podLabels|ns|sc|csc)$": ("object",),
    "_(tolerations|expressions)$": ("array",),
    "_percentage_nodes_to_find$": ("integer",),
    "ignored_provisioners$": ("array", "string"),
    "controller_config_override$": ("object", "string"),
    "": ("string",),
}
"""Types of unset values, by the suffix of their name; the first match counts."""
_PATHS: Final = "|".join(map(re.escape, SERVICES))
_KUBERNETES_GATES: Final = (
    "AllAlpha",
    "AllBeta",
    "DRA[A-Za-z]+",
    "DynamicResourceAllocation",
    "InPlacePodVerticalScaling",
    "MatchLabelKeysInPod(Affinity|TopologySpread)",
    "NodeInclusionPolicyInPodTopologySpread",
    "PodLevelResources",
    "SidecarContainers",
    "StorageCapacityScoring",
    "VolumeCapacityPriority",
)
"""Gates of Kubernetes that Volcano's processes take too; values files name them."""
_SWITCH: Final = "(true|True|TRUE|false|False|FALSE)"
_GATE: Final = rf"({'|'.join((*FEATURE_GATES, *_KUBERNETES_GATES))})={_SWITCH}"
_GATES: Final[Schema] = {
    "type": ["string", "null"],
    "pattern": rf"^\s*({_GATE}(\s*,\s*{_GATE})*)?\s*$",
    "description": f"gates such as Name=true,Other=false, of: {', '.join(FEATURE_GATES)}",
}
_UNIT: Final = "(ns|us|µs|ms|s|m|h)"
_PART: Final = rf"[0-9]+(\.[0-9]+)?{_UNIT}"
_PERIOD: Final[Schema] = {
    "type": ["string", "null"],
    "pattern": rf"^(({_PART})*[0-9.]*[1-9][0-9]*{_UNIT}({_PART})*)?$",
    "description": "a duration above 0 with its unit, such as 500ms or 1s",
}
_QUANTITY: Final[Schema] = {
    "type": ["string", "number"],
    "pattern": r"^[0-9]+(\.[0-9]+)?([numkMGTPE]|[KMGTPE]i|[eE][0-9]+)?$",
    "minimum": 0,
    "description": "a quantity such as 500m, 2 or 512Mi",
}
_AMOUNTS: Final[Schema] = {"type": ["object", "null"], "additionalProperties": _QUANTITY}
_RESOURCES: Final[Schema] = {
    "type": ["object", "null"],
    "properties": {"requests": _AMOUNTS, "limits": _AMOUNTS, "claims": {"type": "array"}},
    "additionalProperties": False,
}
_SPECIAL: Final[Mapping[str, Schema]] = {
    "admission_port": _PORT,
    "image_pull_policy": {"enum": ["Always", "IfNotPresent", "Never"]},
    "hypernode_controller_mode": {"enum": ["controller-manager", "standalone", "disabled"]},
    "ipFamilyPolicy": {"enum": ["", None, "SingleStack", "PreferDualStack", "RequireDualStack"]},
    "runbook_url": {
        "type": ["string", "null"],
        "pattern": "^(https?://.+)?$",
        "description": "an absolute address, such as https://wiki.example/pumice/runbook",
    },
    "scheduler_schedule_period": _PERIOD,
    "scheduler_sharding_mode": {"enum": ["", None, "none", "hard", "soft"]},
    "service_monitor_interval": {**_PERIOD, "pattern": r"^([0-9]+(ms|s|m|h|d|w|y))*$"},
    "ui_port": _PORT,
    "ui_hosts": {"type": ["array", "null"], "items": {"type": "string"}},
    "enabled_admissions": {
        "type": "string",
        "pattern": rf"^\s*({_PATHS})?(\s*,\s*({_PATHS})?)*\s*$",
        "description": f"paths of webhooks, separated by commas: {', '.join(SERVICES)}",
    },
}


def values_schema(values: Mapping[str, Mapping[str, Any]]) -> Schema:
    """Write the schema of values whose defaults are given."""
    sections = {section: _section(section, given) for section, given in values.items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {**sections, "global": {}},
        "additionalProperties": False,
    }


def _section(section: str, defaults: Mapping[str, Any]) -> Schema:
    known = {name: _special(name) or _of(name, value) for name, value in defaults.items()}
    theirs: Schema = {name: {} for name in _OF_VOLCANO.get(section, ())}
    return {
        "type": ["object", "null"],
        "properties": dict(sorted((theirs | known).items())),
        "patternProperties": {_OF_ITS_OTHER_PROGRAMS: {}},
        "additionalProperties": False,
    }


def _special(name: str) -> Schema | None:
    if name.endswith("_feature_gates"):
        return _GATES
    return _RESOURCES if name.endswith("_resources") else _SPECIAL.get(name)


def _of(name: str, default: Any) -> Schema:
    """Write the schema of a value."""
    if isinstance(default, bool):
        return {"type": "boolean"}
    if isinstance(default, int):
        return dict(_COUNT)
    if isinstance(default, str):
        return {"type": ["string", "number", "null"]}
    if isinstance(default, dict | list):
        return {"type": ["object" if isinstance(default, dict) else "array", "null"]}
    kinds = next(kinds for end, kinds in _UNSET.items() if re.search(end, name))
    return {"type": [*kinds, "null"]}
