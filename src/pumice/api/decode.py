"""Plain mappings to typed objects, and a good sentence when one does not fit.

Used for Kubernetes objects and descriptions of workloads. msgspec reports where a value is wrong;
the wanted type is read from the classes, so that the message is about the file and not about
Python.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import inspect

from pumice.api.quantity import Quantity
from pumice.api.wording import name_hint, nearest
from pumice.errors import ABSENT, InputError, ManifestError

Path: TypeAlias = tuple[str | int, ...]
_T = TypeVar("_T")

_PLACE: Final = re.compile(r" - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`$")
_STEP: Final = re.compile(r"\.(?P<name>\w+)|\[(?P<index>\d+)\]|(?P<any>\[\.\.\.\])")
_MISSING: Final = re.compile(r"missing required field `(?P<name>\w+)`")
_UNKNOWN: Final = re.compile(r"contains unknown field `(?P<name>[^`]*)`")
_WORDS: Final[Mapping[type, str]] = {
    inspect.StrType: "a string",
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.BoolType: "true or false",
    inspect.VarTupleType: "a list",
    inspect.ListType: "a list",
}
_LEVELS: Final = 30  # no field that is read lies deeper
_PLAIN: Final = re.compile(r"\w[\w-]*")


def decode(mapping: Mapping[str, Any], cls: type[_T], *, source: str, strict: bool = True) -> _T:
    """Make a typed object; a null means absent, as it does in Kubernetes.

    Unless ``strict``, a number may be written as text, as keys of a mapping are.

    Raises:
        ManifestError: names ``source``, the field, what was found and wanted.
    """
    try:
        return msgspec.convert(mapping, cls, strict=strict)
    except msgspec.ValidationError:
        cleaned = _without_nulls(mapping)
    try:
        return msgspec.convert(cleaned, cls, strict=strict)
    except msgspec.ValidationError as error:
        raise _explain(error, cleaned, cls, source, strict=strict) from None


def spell_path(path: Sequence[str | int]) -> str:
    """Write a path as Kubernetes does: spec.containers[0].resources.requests[example.com/gpu]."""
    text = ""
    for step in path:
        plain = isinstance(step, str) and _PLAIN.fullmatch(step)
        text += f".{step}" if plain else f"[{step}]"
    return text.removeprefix(".")


def _without_nulls(value: Any, levels: int = _LEVELS) -> Any:
    if isinstance(value, dict) and levels:
        kept = ((key, item) for key, item in value.items() if item is not None)
        return {key: _without_nulls(item, levels - 1) for key, item in kept}
    if isinstance(value, list) and levels:
        return [_without_nulls(item, levels - 1) for item in value]
    return value


def _explain(
    error: msgspec.ValidationError, mapping: Any, cls: type, source: str, *, strict: bool
) -> ManifestError:
    """Turn a msgspec error into ours."""
    place = _PLACE.search(str(error))
    steps = place["path"] if place else ""
    path, value, info = _walk(steps, mapping, inspect.type_info(cls), strict=strict)
    wanted, hint = _describe(info), _advice(value, info)
    missing, unknown = _MISSING.search(str(error)), _UNKNOWN.search(str(error))
    field = ""
    if isinstance(error.__cause__, InputError):
        cause = error.__cause__
        path += tuple(cause.field.split(".", 1))
        wanted, value, hint = cause.wanted, cause.found, cause.hint
    elif missing and isinstance(info, inspect.StructType):
        path += (missing["name"],)
        wanted, value, hint = _describe(_field(info, missing["name"])), ABSENT, ""
    elif unknown and isinstance(info, inspect.StructType):
        value, field = unknown["name"], spell_path(path)
        path += (value,)
        wanted, hint = "a known field", name_hint(value, [each.encode_name for each in info.fields])
    elif place and place["key"] and isinstance(info, inspect.DictType):
        key_type = info.key_type
        value = next((key for key in value if not _fits(key, key_type, strict=False)), value)
        wanted, hint = f"{_describe(info.key_type)} as key", _advice(value, info.key_type)
    return ManifestError(
        wanted=wanted,
        found=value,
        field=field if unknown else spell_path(path),
        file=source,
        hint=hint,
        path=path,
    )


def _walk(
    text: str, value: Any, info: inspect.Type, *, strict: bool
) -> tuple[Path, Any, inspect.Type]:
    """Follow a msgspec path through the value and its type; find the key it stands for."""
    path: Path = ()
    for match in _STEP.finditer(text):
        info = _bare(info)
        step: str | int
        if match["name"]:
            step, info = match["name"], _field(info, match["name"])
        elif match["index"]:
            step, info = int(match["index"]), _element(info)
        else:
            element = _element(info)
            wrong = (key for key, item in value.items() if not _fits(item, element, strict=strict))
            found = next(wrong, None)
            if found is None:  # it is one of these
                return path, value, _bare(info)
            step, info = found, element
        path, value = (*path, step), value[step]
    return path, value, _bare(info)


def _bare(info: inspect.Type) -> inspect.Type:
    """Strip "or absent" from a type."""
    if isinstance(info, inspect.UnionType):
        present = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
        if len(present) == 1:
            return present[0]
    return info


def _field(info: inspect.Type, name: str) -> inspect.Type:
    fields = info.fields if isinstance(info, inspect.StructType) else ()
    return next((f.type for f in fields if f.encode_name == name), inspect.AnyType())


def _element(info: inspect.Type) -> inspect.Type:
    if isinstance(info, inspect.DictType):
        return info.value_type
    if isinstance(info, inspect.VarTupleType | inspect.ListType):
        return info.item_type
    return inspect.AnyType()


def _fits(value: Any, info: inspect.Type, *, strict: bool) -> bool:
    """Return whether one value of a mapping is of the type all its values must have."""
    wanted: Any = Quantity
    if isinstance(info, inspect.StructType):
        wanted = info.cls
    elif isinstance(info, inspect.StrType):
        wanted = str
    elif isinstance(info, inspect.IntType | inspect.FloatType):
        number: Any = int if isinstance(info, inspect.IntType) else float
        from_least = msgspec.Meta(ge=info.ge, le=info.le)
        limits = from_least if info.gt is None else msgspec.Meta(gt=info.gt, le=info.le)
        wanted = Annotated[number, limits]
    try:
        msgspec.convert(value, wanted, strict=strict)
    except msgspec.ValidationError:
        return False
    return True


def _describe(info: inspect.Type) -> str:
    """Describe what a type accepts, in a manifest writer's words."""
    info = _bare(info)
    if isinstance(info, inspect.StrType) and info.min_length:
        return "a non-empty string"
    if isinstance(info, inspect.IntType | inspect.FloatType):
        return _WORDS[type(info)] + _range(info)
    if isinstance(info, inspect.LiteralType):
        return f"one of {', '.join(str(value) for value in info.values if value)}"
    if isinstance(info, inspect.UnionType):
        kinds = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
        return " or ".join(_describe(kind) for kind in kinds)
    return _WORDS.get(type(info), "a mapping")


def _range(info: inspect.IntType | inspect.FloatType) -> str:
    """Describe the limits of a number."""
    if info.gt is not None:
        return f" above {info.gt:g}"
    if info.ge is None:
        return ""
    return f" from {info.ge:,g} up" if info.le is None else f" from {info.ge} to {info.le}"


def _advice(value: Any, info: inspect.Type) -> str:
    """Return the usual reason for a value of the wrong type."""
    if isinstance(info, inspect.StrType) and isinstance(value, int | float):
        return "put it in quotes"
    if isinstance(info, inspect.LiteralType):
        close = nearest(str(value), map(str, info.values))
        return f"did you mean '{close}'?" if close else ""
    return ""
