"""Placement of a pod: selectors, affinity, tolerations, spreading."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from pumice.webhooks.field_rules import (
    Rule,
    Struct,
    all_pass,
    items,
    label_map,
    needed,
    one_of,
    part,
    passes,
    walk,
)
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
    Messages,
    at_least,
    dns_label,
    dns_subdomain,
    each,
    label_value,
    qualified_name,
)

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_BAD_OPERATOR: Final = "not a valid selector operator"
_NO_SELECTOR: Final = "must not be specified when labelSelector is not set"
_IN_BOTH: Final = "exists in both matchLabelKeys and"


def toleration(one: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    """Check a toleration."""
    key, operator, effect = (one.get(name, "") for name in ("key", "operator", "effect"))
    if key:
        yield from each(qualified_name(key), (*path, "key"), key)
    elif operator != "Exists":
        text = (
            "operator must be Exists when `key` is empty, "
            'which means "match all values and all keys"'
        )
        yield invalid((*path, "operator"), operator, text)
    if one.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        yield invalid((*path, "effect"), effect, text)
    yield from _toleration_value(operator, one.get("value", ""), (*path, "operator"))
    if effect and effect not in EFFECTS:
        yield unsupported((*path, "effect"), effect, EFFECTS)


def _toleration_value(operator: str, value: str, path: Path) -> Iterator[FieldError]:
    if operator in ("Equal", ""):
        messages = label_value(value)
        if messages:
            yield invalid(path, value, ";".join(messages))
    elif operator != "Exists":
        numeric = ("Lt", "Gt") if operator in ("Lt", "Gt") else ()
        yield unsupported(path, operator, ("Equal", "Exists", *numeric))
    elif value:
        yield invalid(path, value, "value must be empty when `operator` is 'Exists'")


def expression(*, numbers: bool = False) -> Rule:
    """Return the rule for the operator and the key of a requirement; with ``Gt`` and ``Lt``."""

    def check(one: Struct, path: Path, _: Any) -> Iterator[FieldError]:
        operator, count = one.get("operator", ""), len(one.get("values") or ())
        place = (*path, "values")
        if operator in ("In", "NotIn"):
            if not count:
                yield required(place, "must be specified when `operator` is 'In' or 'NotIn'")
        elif operator in ("Exists", "DoesNotExist"):
            if count:
                text = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
                yield forbidden(place, text)
        elif not (numbers and operator in ("Gt", "Lt")):
            yield invalid((*path, "operator"), operator, _BAD_OPERATOR)
        elif count != 1:
            text = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            yield required(place, text)
        yield from each(qualified_name(one.get("key", "")), (*path, "key"), one.get("key", ""))

    return check


_VALUES: Final = all_pass(label_value, "values")
SELECTOR: Final = (label_map("matchLabels"), items("matchExpressions", expression(), _VALUES))


def _node_field(one: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    if one["operator"] not in ("In", "NotIn"):
        yield invalid((*path, "operator"), one["operator"], _BAD_OPERATOR)
    elif len(one.get("values") or ()) != 1:
        text = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield required((*path, "values"), text)
    if one["key"] != "metadata.name":
        yield invalid((*path, "key"), one["key"], "not a valid field selector key")
    else:
        yield from all_pass(dns_subdomain, "values")(one, path, None)


def _namespaces(term: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    for namespace in term.get("namespaces") or ():
        yield from each(dns_label(namespace), (*path, "namespace"), namespace)


def _label_keys(term: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    selector = term.get("labelSelector")
    matched = term.get("matchLabelKeys") or []
    for name in ("matchLabelKeys", "mismatchLabelKeys"):
        if term.get(name) and selector is None:
            yield forbidden((*path, name), _NO_SELECTOR)
        else:
            yield from all_pass(qualified_name, name)(term, path, None)
    known = set((selector or {}).get("matchLabels") or ())
    last = {key: index for index, key in enumerate(matched)}
    for one in (selector or {}).get("matchExpressions") or ():
        if one["key"] in last and one["key"] in known:
            yield invalid((*path, last[one["key"]]), one["key"], f"{_IN_BOTH} labelSelector")
        known.add(one["key"])
    others = set(term.get("mismatchLabelKeys") or ())
    for index, key in enumerate(matched):
        if key in others:
            yield invalid((*path, "matchLabelKeys", index), key, f"{_IN_BOTH} mismatchLabelKeys")


def _weight(value: int) -> Messages:
    return [] if 0 < value <= 100 else ["must be in the range 1-100"]


_TOPOLOGY_KEY: Final = needed("topologyKey", detail="can not be empty")
_POD_TERM: Final = (
    part("labelSelector", *SELECTOR),
    part("namespaceSelector", *SELECTOR),
    _namespaces,
    _label_keys,
    _TOPOLOGY_KEY,
    passes(qualified_name, "topologyKey"),
)
_POD_AFFINITY: Final = (
    items(_REQUIRED, *_POD_TERM),
    items(_PREFERRED, passes(_weight, "weight"), part("podAffinityTerm", *_POD_TERM)),
)
_FIELDS: Final = items("matchFields", _node_field)
_EXPRESSION: Final = expression(numbers=True)
AFFINITY: Final = part(
    "affinity",
    part(
        "nodeAffinity",
        part(
            _REQUIRED,
            needed("nodeSelectorTerms", detail="must have at least one node selector term"),
            items("nodeSelectorTerms", items("matchExpressions", _EXPRESSION, _VALUES), _FIELDS),
        ),
        items(
            _PREFERRED,
            passes(_weight, "weight"),
            part("preference", items("matchExpressions", _EXPRESSION), _FIELDS),
        ),
    ),
    part("podAffinity", *_POD_AFFINITY),
    part("podAntiAffinity", *_POD_AFFINITY),
)


def _domains(one: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    fewest, action = one.get("minDomains"), one["whenUnsatisfiable"]
    if fewest is not None and action != "DoNotSchedule":
        text = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield invalid((*path, "minDomains"), fewest, text)


def _spread_keys(one: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    keys, selector = one.get("matchLabelKeys") or [], one.get("labelSelector")
    place = (*path, "matchLabelKeys")
    if keys and selector is None:
        yield forbidden(place, _NO_SELECTOR)
    known = set((selector or {}).get("matchLabels") or ())
    known |= {term["key"] for term in (selector or {}).get("matchExpressions") or ()}
    for index, key in enumerate(keys):
        yield from each(qualified_name(key), (*place, index), key)
        if key in known:
            yield invalid((*place, index), key, f"{_IN_BOTH} labelSelector")


_POSITIVE: Final = at_least(1, "must be greater than zero")
_POLICIES: Final = ("Honor", "Ignore")
_SPREAD: Final = (
    passes(_POSITIVE, "maxSkew"),
    _TOPOLOGY_KEY,
    one_of("whenUnsatisfiable", ("DoNotSchedule", "ScheduleAnyway")),
)
_SPREAD_FURTHER: Final = (
    passes(_POSITIVE, "minDomains"),
    _domains,
    one_of("nodeAffinityPolicy", _POLICIES),
    one_of("nodeTaintsPolicy", _POLICIES),
    _spread_keys,
    part("labelSelector", *SELECTOR),
)


def spreading(spec: Struct, path: Path, _: Any) -> Iterator[FieldError]:
    """Check the topology spread constraints of a pod."""
    given = spec.get("topologySpreadConstraints") or []
    left = Counter((one["topologyKey"], one["whenUnsatisfiable"]) for one in given)
    for index, one in enumerate(given):
        place = (*path, "topologySpreadConstraints", index)
        yield from walk(_SPREAD, one, place)
        key, action = one["topologyKey"], one["whenUnsatisfiable"]
        left[key, action] -= 1
        if left[key, action]:
            both = (*place, "{topologyKey, whenUnsatisfiable}")
            yield duplicate(both, f"{{{key}, {action}}}")
        yield from walk(_SPREAD_FURTHER, one, place)
