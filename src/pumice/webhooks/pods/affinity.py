"""Placement of a pod: selectors, affinity, tolerations, spreading."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pumice.webhooks.fields import (
    FieldError,
    Path,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from pumice.webhooks.names import (
    dns_label,
    dns_subdomain,
    each,
    label_value,
    labels,
    qualified_name,
)

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NEEDS_VALUES: Final = "must be specified when `operator` is 'In' or 'NotIn'"
_NO_VALUES: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_BAD_OPERATOR: Final = "not a valid selector operator"
_POLICIES: Final = ("Honor", "Ignore")
_WEIGHT: Final = "must be in the range 1-100"
_NO_SELECTOR: Final = "must not be specified when labelSelector is not set"


def check_tolerations(given: list[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    """Check the tolerations of a pod."""
    for index, one in enumerate(given):
        place = (*path, index)
        key, operator = one.get("key", ""), one.get("operator", "")
        if key:
            yield from each(qualified_name(key), (*place, "key"), key)
        elif operator != "Exists":
            text = (
                "operator must be Exists when `key` is empty, "
                'which means "match all values and all keys"'
            )
            yield invalid((*place, "operator"), operator, text)
        effect = one.get("effect", "")
        if one.get("tolerationSeconds") is not None and effect != "NoExecute":
            text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid((*place, "effect"), effect, text)
        yield from _toleration_value(operator, one.get("value", ""), (*place, "operator"))
        if effect and effect not in _EFFECTS:
            yield unsupported((*place, "effect"), effect, _EFFECTS)


def _toleration_value(operator: str, value: str, path: Path) -> Iterator[FieldError]:
    if operator in ("Equal", ""):
        messages = label_value(value)
        if messages:
            yield invalid(path, value, ";".join(messages))
    elif operator == "Exists":
        if value:
            yield invalid(path, value, "value must be empty when `operator` is 'Exists'")
    elif operator in ("Lt", "Gt"):
        yield unsupported(path, operator, ("Equal", "Exists", "Lt", "Gt"))
    else:
        yield unsupported(path, operator, ("Equal", "Exists"))


def check_affinity(given: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    """Check the affinities of a pod."""
    node = given.get("nodeAffinity")
    if node is not None:
        yield from _node_affinity(node, (*path, "nodeAffinity"))
    for name in ("podAffinity", "podAntiAffinity"):
        part = given.get(name) or {}
        place = (*path, name)
        for index, term in enumerate(part.get(_REQUIRED) or ()):
            yield from _pod_term(term, (*place, _REQUIRED, index))
        for index, weighted in enumerate(part.get(_PREFERRED) or ()):
            inner = (*place, _PREFERRED, index)
            if not 0 < weighted["weight"] <= 100:
                yield invalid((*inner, "weight"), weighted["weight"], _WEIGHT)
            yield from _pod_term(weighted["podAffinityTerm"], (*inner, "podAffinityTerm"))


def _node_affinity(given: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    wanted = given.get(_REQUIRED)
    if wanted is not None:
        place = (*path, _REQUIRED, "nodeSelectorTerms")
        if not wanted["nodeSelectorTerms"]:
            yield required(place, "must have at least one node selector term")
        for index, term in enumerate(wanted["nodeSelectorTerms"] or ()):
            yield from _node_term(term, (*place, index), strict=True)
    for index, weighted in enumerate(given.get(_PREFERRED) or ()):
        place = (*path, _PREFERRED, index)
        if not 0 < weighted["weight"] <= 100:
            yield invalid((*place, "weight"), weighted["weight"], _WEIGHT)
        yield from _node_term(weighted["preference"], (*place, "preference"), strict=False)


def _node_term(term: Mapping[str, Any], path: Path, *, strict: bool) -> Iterator[FieldError]:
    for index, one in enumerate(term.get("matchExpressions") or ()):
        place = (*path, "matchExpressions", index)
        yield from _operator(one, place, numbers=True)
        yield from each(qualified_name(one["key"]), (*place, "key"), one["key"])
        if strict:
            yield from _values(one, place)
    for index, one in enumerate(term.get("matchFields") or ()):
        yield from _node_field(one, (*path, "matchFields", index))


def _node_field(one: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    values = one.get("values") or []
    if one["operator"] not in ("In", "NotIn"):
        yield invalid((*path, "operator"), one["operator"], _BAD_OPERATOR)
    elif len(values) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required((*path, "values"), text)
    if one["key"] != "metadata.name":
        yield invalid((*path, "key"), one["key"], "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from each(dns_subdomain(value), (*path, "values", index), value)


def _operator(one: Mapping[str, Any], path: Path, *, numbers: bool) -> Iterator[FieldError]:
    operator, values = one["operator"], one.get("values") or []
    if operator in ("In", "NotIn"):
        if not values:
            yield required((*path, "values"), _NEEDS_VALUES)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden((*path, "values"), _NO_VALUES)
    elif numbers and operator in ("Gt", "Lt"):
        if len(values) != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required((*path, "values"), text)
    else:
        yield invalid((*path, "operator"), operator, _BAD_OPERATOR)


def _values(one: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for index, value in enumerate(one.get("values") or ()):
        yield from each(label_value(value), (*path, "values", index), value)


def check_selector(given: Mapping[str, Any] | None, path: Path) -> Iterator[FieldError]:
    """Check a label selector."""
    if given is None:
        return
    yield from labels(given.get("matchLabels"), (*path, "matchLabels"))
    for index, one in enumerate(given.get("matchExpressions") or ()):
        place = (*path, "matchExpressions", index)
        yield from _operator(one, place, numbers=False)
        yield from each(qualified_name(one["key"]), (*place, "key"), one["key"])
        yield from _values(one, place)


def _pod_term(term: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    for name in ("labelSelector", "namespaceSelector"):
        yield from check_selector(term.get(name), (*path, name))
    for namespace in term.get("namespaces") or ():
        yield from each(dns_label(namespace), (*path, "namespace"), namespace)
    yield from _label_keys(term, path)
    key = term["topologyKey"]
    if not key:
        yield required((*path, "topologyKey"), "can not be empty")
    yield from each(qualified_name(key), (*path, "topologyKey"), key)


def _label_keys(term: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    selector = term.get("labelSelector")
    matched = term.get("matchLabelKeys") or []
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        keys = term.get(name) or []
        if keys and selector is None:
            yield forbidden((*path, name), _NO_SELECTOR)
            continue
        for index, key in enumerate(keys):
            yield from each(qualified_name(key), (*path, name, index), key)
    known = set((selector or {}).get("matchLabels") or ())
    last = {key: index for index, key in enumerate(matched)}
    for one in (selector or {}).get("matchExpressions") or ():
        if one["key"] in last and one["key"] in known:
            text = "exists in both matchLabelKeys and labelSelector"
            yield invalid((*path, last[one["key"]]), one["key"], text)
        known.add(one["key"])
    others = set(term.get("mismatchLabelKeys") or ())
    for index, key in enumerate(matched):
        if key in others:
            text = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield invalid((*path, "matchLabelKeys", index), key, text)


def check_spreading(given: list[Mapping[str, Any]], path: Path) -> Iterator[FieldError]:
    """Check the topology spread constraints of a pod."""
    left = Counter((one["topologyKey"], one["whenUnsatisfiable"]) for one in given)
    for index, one in enumerate(given):
        place = (*path, index)
        if one["maxSkew"] <= 0:
            yield invalid((*place, "maxSkew"), one["maxSkew"], "must be greater than zero")
        key, action = one["topologyKey"], one["whenUnsatisfiable"]
        if not key:
            yield required((*place, "topologyKey"), "can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            known = ("DoNotSchedule", "ScheduleAnyway")
            yield unsupported((*place, "whenUnsatisfiable"), action, known)
        left[key, action] -= 1
        if left[key, action]:
            place_of_both = (*place, "{topologyKey, whenUnsatisfiable}")
            yield duplicate(place_of_both, f"{{{key}, {action}}}")
        yield from _domains(one, place)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if one.get(name) is not None and one[name] not in _POLICIES:
                yield unsupported((*place, name), one[name], _POLICIES)
        yield from _spread_keys(one, (*place, "matchLabelKeys"))
        yield from check_selector(one.get("labelSelector"), (*place, "labelSelector"))


def _domains(one: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    fewest, place = one.get("minDomains"), (*path, "minDomains")
    if fewest is None:
        return
    if fewest <= 0:
        yield invalid(place, fewest, "must be greater than zero")
    action = one["whenUnsatisfiable"]
    if action != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid(place, fewest, text)


def _spread_keys(one: Mapping[str, Any], path: Path) -> Iterator[FieldError]:
    keys, selector = one.get("matchLabelKeys") or [], one.get("labelSelector")
    if keys and selector is None:
        yield forbidden(path, _NO_SELECTOR)
    known = set((selector or {}).get("matchLabels") or ())
    known |= {each_["key"] for each_ in (selector or {}).get("matchExpressions") or ()}
    for index, key in enumerate(keys):
        yield from each(qualified_name(key), (*path, index), key)
        if key in known:
            text = "exists in both matchLabelKeys and labelSelector"
            yield invalid((*path, index), key, text)
