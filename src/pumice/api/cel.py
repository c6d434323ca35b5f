"""Selectors of devices in CEL, read by the CEL project's own library: compiled once, bounded.

``device`` is the one variable.  Amounts and versions have types of their own, as in Kubernetes,
with its functions.  The library is loaded with the first selector.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from pumice.api.devices import BasicDevice, DeviceAttribute
from pumice.api.quantity import QuantityFormError, amount

LONGEST: Final = 10 * 1024
"""Bytes of an expression, as an API server allows."""
_COSTLIEST: Final = 10**8
"""Upper bound, roughly estimated, of the characters that the values of an expression may have."""
_COMPILED: Final = 4096
"""Expressions remembered."""
_QUANTITY: Final = "kubernetes.Quantity"
_SEMVER: Final = "kubernetes.Semver"
"""The keys that distinguish amounts and versions from each other and from everything else."""
_VERSION: Final = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-((?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*)"
    r"(?:\.(?:0|[1-9][0-9]*|[0-9]*[A-Za-z-][0-9A-Za-z-]*))*))?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_DOMAIN: Final = re.compile(r"""(attributes|capacity)\s*\[\s*(?:"([^"\\]*)"|'([^'\\]*)')\s*\]""")
_REPEATING: Final = re.compile(
    r"\b(all|exists|exists_one|existsOne|map|filter|bind|transform[A-Za-z]*)\s*\("
)
_MULTIPLYING: Final = re.compile(r"\b(replace|join|format)\s*\(")

Value = dict[str, str]
"""An amount or a version, as the library sees it: equal ones are equal mappings."""


class SelectorError(ValueError):
    """An expression that cannot be used, or fails for a device; the message has the reason."""


class Selector(NamedTuple):
    """A compiled expression."""

    text: str
    program: Any
    domains: tuple[tuple[str, str], ...]
    """Domains of attributes and capacity that it reads: those of no device are empty."""

    def matches(self, device: Mapping[str, Any]) -> bool:
        """Return whether a device, made by ``device_value``, matches.

        Raises:
            SelectorError: The expression fails for it, or is not true or false.
        """
        missing = [each for each in self.domains if each[1] not in device[each[0]]]
        if missing:
            device = {**device}
            for field, domain in missing:
                device[field] = {**device[field], domain: {}}
        try:
            found = self.program.eval(data={"device": device})
        except RuntimeError as error:
            raise SelectorError(_plain(str(error))) from None
        answer = found.value()
        if isinstance(answer, bool):
            return answer
        if found.type().name() == "ERROR":
            raise SelectorError(_plain(str(answer)))
        raise SelectorError(f"expected true or false, got {answer!r:.60}")


def device_value(driver: str, device: BasicDevice) -> Mapping[str, Any]:
    """Return a device as expressions see it; names without a domain are in the driver's."""
    return {
        "driver": driver,
        "attributes": _by_domain(
            driver, ((name, _attribute(each)) for name, each in device.attributes.items())
        ),
        "capacity": _by_domain(
            driver, ((name, _quantity(str(each.value))) for name, each in device.capacity.items())
        ),
        "allowMultipleAllocations": device.allow_multiple_allocations,
    }


@lru_cache(maxsize=_COMPILED)
def compiled(expression: str) -> Selector:
    """Compile an expression.

    Raises:
        SelectorError: It is too long, may cost too much, or is not an expression about a device.
    """
    size = len(expression.encode())
    if size > LONGEST:
        raise SelectorError(f"the expression is {size} bytes long; expected at most {LONGEST}")
    if _cost(expression) > _COSTLIEST:
        raise SelectorError("the expression may cost too much")
    try:
        program = _environment().compile(expression)
    except RuntimeError as error:
        raise SelectorError(_plain(str(error))) from None
    if program.return_type().name() not in ("BOOL", "DYN"):
        found = program.return_type().name().lower()
        raise SelectorError(f"expected an expression that is true or false, got one of {found}")
    domains = {(field, one or other) for field, one, other in _DOMAIN.findall(expression)}
    return Selector(expression, program, tuple(sorted(domains)))


def _cost(expression: str) -> float:
    """Bound the size of the largest text or list that an expression can make.

    Each loop can repeat a value as often as it has plus signs, each text function can multiply
    two.  The library bounds how often loops run and how deep expressions nest.
    """
    loops = len(_REPEATING.findall(expression))
    grown = (1 + expression.count("+") / loops) ** loops if loops else 1.0
    return float(len(expression) ** (1 + len(_MULTIPLYING.findall(expression))) * grown)


def _plain(message: str) -> str:
    """Return the first line of the library's message, without its codes and marks."""
    text = message.partition("\n")[0]
    text = re.sub(r"^[A-Z_]+: (ERROR: <input>:)?", "", text)
    return re.sub(r" ?\(in container ''\)| ?\[[A-Z_]+\]$", "", text).replace(" : ", ": ")


def _by_domain(driver: str, named: Iterator[tuple[str, Any]]) -> dict[str, dict[str, Any]]:
    domains: dict[str, dict[str, Any]] = {}
    for name, found in named:
        domain, slash, last = name.rpartition("/")
        domains.setdefault(domain if slash else driver, {})[last] = found
    return domains


def _attribute(attribute: DeviceAttribute) -> Any:
    kind, found = attribute.value or ("", None)
    is_version = kind == "version" and _is(_semver, found)
    return _semver(str(found)) if is_version else found


# Amounts and versions


def _quantity(text: str) -> Value:
    return {_QUANTITY: str(amount(text).nano)}


def _semver(text: str) -> Value:
    found = _VERSION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r:.60} is not a semantic version")
    major, minor, patch, before = found.groups()
    return {_SEMVER: f"{major}.{minor}.{patch}" + (f"-{before}" if before else "")}


def _lenient_semver(text: str, normalize: bool) -> Value:  # noqa: FBT001  as expressions call it
    """Read a version; normalized, ``v1.02`` is 1.2.0."""
    if not normalize:
        return _semver(text)
    core, mark, rest = re.fullmatch(r"v?([0-9.]*)([-+]?)(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
    parts = [part.lstrip("0") or "0" for part in core.split(".")] if core else []
    return _semver(".".join([*parts, "0", "0"][: max(3, len(parts))]) + mark + rest)


def _nano(value: Value) -> int:
    if _QUANTITY not in value:
        raise ValueError("expected a quantity")
    return int(value[_QUANTITY])


def _release(value: Value) -> list[int]:
    if _SEMVER not in value:
        raise ValueError("expected a semantic version")
    return [int(part) for part in value[_SEMVER].partition("-")[0].split(".")]


def _order(value: Value) -> Any:
    """Return the keys by which amounts and versions are compared."""
    if _QUANTITY in value:
        return _nano(value)
    release, before = _release(value), value[_SEMVER].partition("-")[2]
    steps = [(0, int(one), "") if one.isdigit() else (1, 0, one) for one in before.split(".")]
    return (release, not before, steps)


def _compare(one: Value, other: Value) -> int:
    if one.keys() != other.keys():
        raise ValueError("expected two quantities or two semantic versions")
    left, right = _order(one), _order(other)
    return int(left > right) - int(left < right)


def _is(read: Callable[..., Value], *given: Any) -> bool:
    try:
        read(*given)
    except (ValueError, QuantityFormError):
        return False
    return True


def _add(one: Value, other: Value | int, sign: int = 1) -> Value:
    more = other * 10**9 if isinstance(other, int) else _nano(other)
    return {_QUANTITY: str(_nano(one) + sign * more)}


def _as_integer(value: Value) -> int:
    whole, rest = divmod(_nano(value), 10**9)
    if rest or not -(2**63) <= whole < 2**63:
        raise ValueError("cannot convert value to integer")
    return whole


def _is_integer(value: Value) -> bool:
    return _is(lambda: {"": str(_as_integer(value))})


def _sign(value: Value) -> int:
    nano = _nano(value)
    return int(nano > 0) - int(nano < 0)


@cache
def _environment() -> Any:
    """Load the library and declare what Kubernetes adds to it."""
    from cel_expr_python import cel  # noqa: PLC0415
    from cel_expr_python.ext import ext_bindings, ext_math, ext_optional, ext_strings  # noqa: PLC0415

    kind = cel.Type
    own, text, yes = kind.Map(kind.STRING, kind.STRING), kind.STRING, kind.BOOL

    def function(name: str, *overloads: tuple[Any, list[Any], Callable[..., Any]]) -> Any:
        made = [
            cel.Overload(f"{name}_{i}", result, taken, is_member=taken[0] is own, impl=call)
            for i, (result, taken, call) in enumerate(overloads)
        ]
        return cel.FunctionDecl(name, made)

    functions = [
        function("quantity", (own, [text], _quantity)),
        function("isQuantity", (yes, [text], lambda given: _is(_quantity, given))),
        function("semver", (own, [text], _semver), (own, [text, yes], _lenient_semver)),
        function(
            "isSemver",
            (yes, [text], lambda given: _is(_semver, given)),
            (yes, [text, yes], lambda *given: _is(_lenient_semver, *given)),
        ),
        function("compareTo", (kind.INT, [own, own], _compare)),
        function("isLessThan", (yes, [own, own], lambda a, b: _compare(a, b) < 0)),
        function("isGreaterThan", (yes, [own, own], lambda a, b: _compare(a, b) > 0)),
        function("add", (own, [own, own], _add), (own, [own, kind.INT], _add)),
        function(
            "sub",
            (own, [own, own], lambda a, b: _add(a, b, -1)),
            (own, [own, kind.INT], lambda a, b: _add(a, b, -1)),
        ),
        function("sign", (kind.INT, [own], _sign)),
        function("isInteger", (yes, [own], _is_integer)),
        function("asInteger", (kind.INT, [own], _as_integer)),
        function("asApproximateFloat", (kind.DOUBLE, [own], lambda one: _nano(one) / 1e9)),
        *(
            function(name, (kind.INT, [own], lambda one, at=at: _release(one)[at]))
            for at, name in enumerate(("major", "minor", "patch"))
        ),
    ]
    return cel.NewEnv(
        variables={"device": kind.Map(text, kind.DYN)},
        extensions=[
            ext_bindings.ExtBindings(),
            ext_math.ExtMath(),
            ext_optional.ExtOptional(),
            ext_strings.ExtStrings(),
        ],
        functions=functions,
    )
