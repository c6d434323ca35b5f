"""The rules of an API server for Kubernetes' own kinds, in its words.

Volcano's kinds have rules of their own; see ``admission_chain``. Used by the embedded cluster,
which has no API server to ask.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pumice.api.kinds import CUSTOM_KIND, PRIORITY_CLASS, STORAGE_CLASS, Kind, Manifest
from pumice.api.quantity import amounts
from pumice.webhooks.custom_schemas import check_definition
from pumice.webhooks.fields import (
    FieldError,
    Key,
    Path,
    forbidden,
    invalid,
    required,
    too_long,
    unsupported,
)
from pumice.webhooks.metadata import check_metadata, check_metadata_update
from pumice.webhooks.names import (
    Messages,
    config_key,
    dns_label,
    dns_subdomain,
    each,
    label_value,
    labels,
    qualified_name,
)
from pumice.webhooks.pods.resources import NOT_NEGATIVE, check_amount
from pumice.webhooks.pods.template import check_pod_content

_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LARGEST_DATA: Final = 1 << 20
_HIGHEST_PRIORITY: Final = 1_000_000_000
_SCOPES: Final = (
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
)
_SCOPE_OPERATORS: Final = ("DoesNotExist", "Exists", "In", "NotIn")
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_PERCENT: Final = re.compile("[0-9]+%")

Rule = Callable[[Manifest], Iterator[FieldError]]


def check_built_in(
    kind: Kind, manifest: Manifest, old: Manifest | None = None
) -> Iterator[FieldError]:
    """Check an object whose types are right; ``old`` is the stored one of an update."""
    yield from check_head(kind, manifest, old)
    if kind.name == "Pod" and old is None:
        yield from check_pod_content(manifest)
    elif kind.name in _RULES:
        yield from _RULES[kind.name](manifest)


def check_head(kind: Kind, manifest: Manifest, old: Manifest | None = None) -> Iterator[FieldError]:
    """Check the metadata alone of an object whose types are right."""
    metadata = manifest["metadata"]
    if old is None:
        rule = _NAME_RULES.get(kind.name, dns_subdomain)
        yield from check_metadata(metadata, namespaced=kind.namespaced, name_rule=rule)
    else:
        yield from check_metadata_update(metadata, old["metadata"])


def _service_name(value: str) -> Messages:
    if re.fullmatch(_LABEL_1035, value) and len(value) <= 63:
        return []
    text = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "
        "an alphabetic character, and end with an alphanumeric character"
    )
    return [f"{text} (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_LABEL_1035}')"]


def _config_map(given: Manifest) -> Iterator[FieldError]:
    size = 0
    for field in ("data", "binaryData"):
        part: Mapping[str, str] = given.get(field) or {}
        for key in sorted(part):
            yield from each(config_key(key), (field, Key(key)), key)
            size += len(part[key].encode())
    if size > _LARGEST_DATA:
        yield too_long((), _LARGEST_DATA)


def _budget(given: Manifest) -> Iterator[FieldError]:
    spec = given.get("spec") or {}
    bounds = [name for name in ("minAvailable", "maxUnavailable") if spec.get(name) is not None]
    if len(bounds) > 1:
        text = "minAvailable and maxUnavailable cannot be both set"
        yield invalid(("spec",), spec, text)
    for name in bounds:
        yield from _bound(spec[name], ("spec", name))
    yield from _selector(spec.get("selector"), ("spec", "selector"))


def _bound(value: int | str, path: Path) -> Iterator[FieldError]:
    """Check a number of pods or a percentage of them."""
    if isinstance(value, int):
        if value < 0:
            yield invalid(path, value, NOT_NEGATIVE)
    elif not _PERCENT.fullmatch(value):
        text = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',"
            "  or '93%', regex used for validation is '[0-9]+%')"
        )
        yield invalid(path, value, text)
    elif len(value) > 4 or int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def _selector(given: Mapping[str, Any] | None, path: Path) -> Iterator[FieldError]:
    for key, value in sorted(((given or {}).get("matchLabels") or {}).items()):
        yield from each(qualified_name(key), (*path, "matchLabels"), key)
        yield from each(label_value(value), (*path, "matchLabels", Key(key)), value)
    for number, term in enumerate((given or {}).get("matchExpressions") or ()):
        place = (*path, "matchExpressions", number)
        operator, values = term.get("operator", ""), term.get("values") or []
        if operator in ("In", "NotIn"):
            if not values:
                text = "must be specified when `operator` is 'In' or 'NotIn'"
                yield required((*place, "values"), text)
        elif operator in ("Exists", "DoesNotExist"):
            if values:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden((*place, "values"), text)
        else:
            yield invalid((*place, "operator"), operator, "not a valid selector operator")
        yield from each(qualified_name(term.get("key", "")), (*place, "key"), term.get("key", ""))


def _quota(given: Manifest) -> Iterator[FieldError]:
    spec = given.get("spec") or {}
    hard = amounts(spec.get("hard"))
    for name in sorted(hard):
        place = ("spec", "hard", Key(name))
        yield from each(qualified_name(name), place, name)
        yield from check_amount(name, hard[name], place)
    for number, scope in enumerate(spec.get("scopes") or ()):
        if scope not in _SCOPES:
            yield invalid(("spec", "scopes", number), scope, "unsupported scope")
    terms = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    for number, term in enumerate(terms):
        yield from _scope(term, ("spec", "scopeSelector", "matchExpressions", number))


def _scope(term: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    name, operator = term.get("scopeName", ""), term.get("operator", "")
    values = term.get("values") or []
    if name not in _SCOPES:
        yield invalid((*path, "scopeName"), name, "unsupported scope")
    if operator not in _SCOPE_OPERATORS:
        yield invalid((*path, "operator"), operator, "not a valid selector operator")
    elif operator in ("In", "NotIn") and not values:
        text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        yield required((*path, "values"), text)
    elif operator in ("Exists", "DoesNotExist") and values:
        text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        yield invalid((*path, "values"), values, text)


def _node(given: Manifest) -> Iterator[FieldError]:
    for number, taint in enumerate((given.get("spec") or {}).get("taints") or ()):
        place = ("spec", "taints", number)
        key, value = taint.get("key", ""), taint.get("value", "")
        yield from each(qualified_name(key), (*place, "key"), key)
        yield from each(label_value(value), (*place, "value"), value)
        if taint.get("effect") not in _EFFECTS:
            yield unsupported((*place, "effect"), taint.get("effect", ""), _EFFECTS)
    for field in ("capacity", "allocatable"):
        given_amounts = amounts((given.get("status") or {}).get(field))
        for name in sorted(given_amounts):
            yield from check_amount(name, given_amounts[name], ("status", field, Key(name)))


def _priority_class(given: Manifest) -> Iterator[FieldError]:
    name, value = given["metadata"].get("name", ""), given.get("value", 0)
    if name.startswith("system-"):
        text = "priority class names with 'system-' prefix are reserved for system use only"
        yield forbidden(("metadata", "name"), text)
    if value > _HIGHEST_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        yield forbidden(("value",), text)


def _claim(given: Manifest) -> Iterator[FieldError]:
    spec = given.get("spec") or {}
    if not spec.get("accessModes"):
        yield required(("spec", "accessModes"), "at least 1 access mode is required")
    asked = amounts((spec.get("resources") or {}).get("requests"))
    if "storage" not in asked:
        yield required(("spec", "resources", "requests", "storage"))
    for name in sorted(asked):
        yield from check_amount(name, asked[name], ("spec", "resources", "requests", Key(name)))


def _storage_class(given: Manifest) -> Iterator[FieldError]:
    if not given.get("provisioner"):
        yield required(("provisioner",))


def _replicated(given: Manifest) -> Iterator[FieldError]:
    spec = given.get("spec") or {}
    if (spec.get("replicas") or 0) < 0:
        yield invalid(("spec", "replicas"), spec["replicas"], NOT_NEGATIVE)
    yield from _selector(spec.get("selector"), ("spec", "selector"))
    metadata = (spec.get("template") or {}).get("metadata") or {}
    yield from labels(metadata.get("labels"), ("spec", "template", "labels"))


def _path_segment(value: str) -> Messages:
    """Check a name that only has to fit into an address."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in value]


def _batch_job(given: Manifest) -> Iterator[FieldError]:
    spec = (given.get("spec") or {}).get("template") or {}
    policy = (spec.get("spec") or {}).get("restartPolicy") if isinstance(spec, dict) else None
    if policy not in ("OnFailure", "Never"):
        path = ("spec", "template", "spec", "restartPolicy")
        text = 'valid values: "OnFailure", "Never"'
        yield unsupported(path, policy, ("OnFailure", "Never")) if policy else required(path, text)


_RIGHTS: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_NAME_RULES: Final[Mapping[str, Callable[[str], Messages]]] = {
    "Namespace": dns_label,
    "Service": _service_name,
    **dict.fromkeys((f"{kind}.rbac.authorization.k8s.io" for kind in _RIGHTS), _path_segment),
}
_RULES: Final[Mapping[str, Rule]] = {
    "ConfigMap": _config_map,
    "Secret": _config_map,
    "PodDisruptionBudget.policy": _budget,
    "ResourceQuota": _quota,
    "Node": _node,
    "PersistentVolumeClaim": _claim,
    PRIORITY_CLASS: _priority_class,
    STORAGE_CLASS: _storage_class,
    CUSTOM_KIND: check_definition,
    "Job.batch": _batch_job,
    **dict.fromkeys(("Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps"), _replicated),
}
