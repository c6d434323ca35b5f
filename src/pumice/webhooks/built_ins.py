"""The rules of an API server for Kubernetes' own kinds, in its words.

Volcano's kinds have rules of their own; see ``admission_chain``. Used by the embedded cluster,
which has no API server to ask.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from pumice.api.kinds import (
    CUSTOM_KIND,
    KUBE_POD_GROUP,
    PRIORITY_CLASS,
    RESOURCE_CLAIM,
    RESOURCE_CLAIM_TEMPLATE,
    STORAGE_CLASS,
    Kind,
    Manifest,
)
from pumice.api.quantity import amounts
from pumice.webhooks.custom_schemas import check_definition
from pumice.webhooks.field_rules import (
    Rule,
    Struct,
    inside,
    items,
    needed,
    one_of,
    part,
    passes,
    walk,
)
from pumice.webhooks.fields import (
    OMITTED,
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
    at_least,
    config_key,
    dns_label,
    dns_subdomain,
    each,
    label_value,
    labels,
    qualified_name,
)
from pumice.webhooks.pods.placement import EFFECTS, expression
from pumice.webhooks.pods.resources import NOT_NEGATIVE, check_amount
from pumice.webhooks.pods.template import check_pod_content

_LABEL_1035: Final = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LARGEST_DATA: Final = 1 << 20
_HIGHEST_PRIORITY: Final = 1_000_000_000
_SCOPES: Final = (
    "BestEffort", "CrossNamespacePodAffinity", "NotBestEffort", "NotTerminating", "PriorityClass",
    "Terminating", "VolumeAttributesClass",
)  # fmt: skip
_PERCENT: Final = re.compile("[0-9]+%")


def check_built_in(
    kind: Kind, manifest: Manifest, old: Manifest | None = None
) -> Iterator[FieldError]:
    """Check an object whose types are right; ``old`` is the stored one of an update."""
    yield from check_head(kind, manifest, old)
    if kind.name == "Pod" and old is None:
        yield from check_pod_content(manifest)
    elif kind.name == CUSTOM_KIND:
        yield from check_definition(manifest)
    else:
        yield from walk(_RULES.get(kind.name, ()), manifest, ())


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


def _path_segment(value: str) -> Messages:
    """Check a name that only has to fit into an address."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in value]


def _data(given: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    size = 0
    for field in ("data", "binaryData"):
        held: Mapping[str, str] = given.get(field) or {}
        for key in sorted(held):
            yield from each(config_key(key), (*path, field, Key(key)), key)
            size += len(held[key].encode())
    if size > _LARGEST_DATA:
        yield too_long((), _LARGEST_DATA)


def _one_bound(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        yield invalid(path, spec, "minAvailable and maxUnavailable cannot be both set")


def _bound(value: int | str) -> Messages:
    """Check a number of pods or a percentage of them."""
    if isinstance(value, int):
        return [] if value >= 0 else [NOT_NEGATIVE]
    if not _PERCENT.fullmatch(value):
        text = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',"
            "  or '93%', regex used for validation is '[0-9]+%')"
        )
        return [text]
    return ["must not be greater than 100%"] if len(value) > 4 or int(value[:-1]) > 100 else []


def _match_labels(selector: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    for key, value in sorted((selector.get("matchLabels") or {}).items()):
        yield from each(qualified_name(key), (*path, "matchLabels"), key)
        yield from each(label_value(value), (*path, "matchLabels", Key(key)), value)


def _amounts(key: str, *, named: bool = False) -> Rule:
    """Return the rule for amounts by resource, and for the names of resources if ``named``."""

    def check(given: Struct, path: Path, _: Any) -> Iterator[FieldError]:
        found = amounts(given.get(key))
        for name in sorted(found):
            place = (*path, key, Key(name))
            if named:
                yield from each(qualified_name(name), place, name)
            yield from check_amount(name, found[name], place)

    return check


def _scopes(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    for number, scope in enumerate(spec.get("scopes") or ()):
        if scope not in _SCOPES:
            yield invalid((*path, "scopes", number), scope, "unsupported scope")


def _scope(term: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    name, operator = term.get("scopeName", ""), term.get("operator", "")
    values = term.get("values") or []
    if name not in _SCOPES:
        yield invalid((*path, "scopeName"), name, "unsupported scope")
    if operator not in ("DoesNotExist", "Exists", "In", "NotIn"):
        yield invalid((*path, "operator"), operator, "not a valid selector operator")
    elif operator in ("In", "NotIn") and not values:
        text = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        yield required((*path, "values"), text)
    elif operator in ("Exists", "DoesNotExist") and values:
        text = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        yield invalid((*path, "values"), values, text)


def _priority(given: Struct, _path: Path, _: Any) -> Iterator[FieldError]:
    name, value = given["metadata"].get("name", ""), given.get("value", 0)
    if name.startswith("system-"):
        text = "priority class names with 'system-' prefix are reserved for system use only"
        yield forbidden(("metadata", "name"), text)
    if value > _HIGHEST_PRIORITY:
        text = f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}"
        yield forbidden(("value",), text)


def _template_labels(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    metadata = (spec.get("template") or {}).get("metadata") or {}
    return labels(metadata.get("labels"), (*path, "template", "labels"))


def _restart_policy(given: Struct, _path: Path, _: Any) -> Iterator[FieldError]:
    template = (given.get("spec") or {}).get("template") or {}
    policy = (template.get("spec") or {}).get("restartPolicy")
    if policy not in ("OnFailure", "Never"):
        path = ("spec", "template", "spec", "restartPolicy")
        text = 'valid values: "OnFailure", "Never"'
        yield unsupported(path, policy, ("OnFailure", "Never")) if policy else required(path, text)


def _policy(policy: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    given = [name for name in ("basic", "gang") if policy.get(name) is not None]
    if len(given) != 1:
        text = f"must specify {'exactly ' * bool(given)}one of: `basic`, `gang`"
        yield invalid(path, f"{{{', '.join(given)}}}", text)


def _one_topology(constraints: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    if len(constraints.get("topology") or ()) > 1:
        yield FieldError("Too many", (*path, "topology"), OMITTED, "must have at most 1 item")


def _one_way(request: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    ways = ("exactly", "firstAvailable", "deviceClassName")  # the last as v1beta1 writes it
    given = [name for name in ways if request.get(name)]
    if len(given) != 1:
        text = "exactly one of `exactly` or `firstAvailable` is required"
        yield invalid(path, OMITTED, text) if given else required(path, text)


_ASKED: Final = (
    needed("deviceClassName"),
    one_of("allocationMode", ("All", "ExactCount"), when="filled"),
    passes(at_least(0, "must be greater than zero"), "count"),
)
_CLAIM: Final = inside(
    "spec",
    inside(
        "devices",
        items(
            "requests",
            needed("name", test=dns_label),
            _one_way,
            part("exactly", *_ASKED),
            items("firstAvailable", needed("name", test=dns_label), *_ASKED),
        ),
    ),
)
_GANG: Final = (
    inside(
        "schedulingPolicy",
        _policy,
        part("gang", passes(at_least(1, "must be greater than or equal to 1"), "minCount")),
    ),
    part("schedulingConstraints", _one_topology, items("topology", needed("key"))),
)
_RIGHTS: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_NAME_RULES: Final[Mapping[str, Callable[[str], Messages]]] = {
    "Namespace": dns_label,
    "Service": _service_name,
    **dict.fromkeys((f"{kind}.rbac.authorization.k8s.io" for kind in _RIGHTS), _path_segment),
}
_SELECTOR: Final = part("selector", _match_labels, items("matchExpressions", expression()))
_REPLICATED: Final = inside(
    "spec", passes(at_least(0, NOT_NEGATIVE), "replicas"), _SELECTOR, _template_labels
)
_RULES: Final[Mapping[str, tuple[Rule, ...]]] = {
    "ConfigMap": (_data,),
    "Secret": (_data,),
    "PodDisruptionBudget.policy": (
        inside("spec", _one_bound, passes(_bound, "minAvailable", "maxUnavailable"), _SELECTOR),
    ),
    "ResourceQuota": (
        inside(
            "spec",
            _amounts("hard", named=True),
            _scopes,
            inside("scopeSelector", items("matchExpressions", _scope)),
        ),
    ),
    "Node": (
        inside(
            "spec",
            items(
                "taints",
                passes(qualified_name, "key", when="always"),
                passes(label_value, "value", when="always"),
                one_of("effect", EFFECTS, when="always"),
            ),
        ),
        inside("status", _amounts("capacity"), _amounts("allocatable")),
    ),
    "PersistentVolumeClaim": (
        inside(
            "spec",
            needed("accessModes", detail="at least 1 access mode is required"),
            inside("resources", inside("requests", needed("storage")), _amounts("requests")),
        ),
    ),
    PRIORITY_CLASS: (_priority,),
    KUBE_POD_GROUP: (inside("spec", *_GANG),),
    "Workload.scheduling.k8s.io": (
        inside("spec", needed("podGroupTemplates"), items("podGroupTemplates", *_GANG)),
    ),
    STORAGE_CLASS: (needed("provisioner"),),
    RESOURCE_CLAIM: (_CLAIM,),
    RESOURCE_CLAIM_TEMPLATE: (inside("spec", _CLAIM),),
    "ResourceSlice.resource.k8s.io": (
        inside("spec", needed("driver"), inside("pool", needed("name"))),
    ),
    "Job.batch": (_restart_policy,),
    **dict.fromkeys(("Deployment.apps", "ReplicaSet.apps", "StatefulSet.apps"), (_REPLICATED,)),
}
