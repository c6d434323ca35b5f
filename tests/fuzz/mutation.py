"""Changes to documents by a seeded generator: values, keys and whole branches, then bytes."""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import yaml

from pumice.api.cloning import clone

Rng = np.random.Generator
_DUMPER: Final[Any] = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
ODD: Final[tuple[Any, ...]] = (
    None, True, False, 0, -1, 1, 2**31 - 1, 2**31, -(2**31), 2**53 + 1, 2**63, -(2**63) - 1,
    10**30, 0.5, -0.0, 1e300, 1e-300, float("nan"), float("inf"), "", " ", "x", "0", "-1", "1e9",
    "1e999999999", "9" * 400, "0x10", "1_000", "1Gi", "1.5Ei", "-5m", "1Ki1", "NaN", "inf", "100%",
    "-1%", "9" * 30 + "%", "true", "null", "~", "*", "/", "..", "../../etc/passwd", "a/b/c",
    "a" * 300, "\ud800", "\u0000", "\u202e", "é", "🌋", "{{", "${x}", "<script>",
    "2020-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "0000-00-00T00:00:00Z",
    "1h", "-1h", "1e5h", "^(a+)+$",
    "[", "(?P<a>", "http://[::1", "tcp://x:99999", [], {}, [None], [[]], {"": None}, [[[[[[]]]]]],
    {"a": {"a": {}}},
)  # fmt: skip
"""Values that replace another."""
_TOKENS: Final = (
    b"\x00", b"\xff", b"\xed\xa0\x80", b"{", b"}", b"[", b"]", b":", b",", b'"', b"'", b"&a ",
    b"*a", b"---\n", b"\n", b"\t", b"!!binary ", b"<<: ", b"9" * 25, b"-", b"e", b".", b"NaN",
    b"1e999", b"\\ud800", b"#", b"|\n", b"? ", b"\xef\xbb\xbf", b" ", b"null", b"%",
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of all values inside a value."""
    found = [path] if path else []
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, part in items:
        found += places(part, (*path, key))
    return found


class Mutator:
    """Makes inputs from seeds; the words of all seeds are what keys and texts are made of."""

    def __init__(self, seeds: Sequence[Any]) -> None:
        self._seeds = [json.dumps(seed) for seed in seeds]
        self._branches = [
            json.dumps(_at(seed, path)) for seed in seeds for path in places(seed)[:400]
        ]
        self._words = sorted({str(path[-1]) for seed in seeds for path in places(seed)})

    def value(self, rng: Rng) -> Any:
        """Make a document: a seed with one to a few changes."""
        made = json.loads(_pick(rng, self._seeds))
        for _ in range(1 + int(rng.geometric(0.5))):
            known = places(made)
            if not known:
                return self._new(rng)
            path = _pick(rng, known)
            self._change(rng, _at(made, path[:-1]), path[-1])
        return made

    def _change(self, rng: Rng, holder: Any, key: Any) -> None:
        kind = int(rng.integers(10))
        if kind < 4:
            holder[key] = self._altered(rng, holder[key])
        elif kind < 6:
            holder[key] = self._new(rng)
        elif kind == 6:
            del holder[key]
        elif isinstance(holder, dict):
            holder[_pick(rng, self._words)] = clone(holder[key]) if kind == 7 else self._new(rng)
            if kind == 9:
                holder[self._text(rng, str(key))] = holder.pop(key)
        else:
            holder.insert(int(rng.integers(len(holder) + 1)), self._new(rng))
            if kind == 9:
                holder += clone(holder)

    def _new(self, rng: Rng) -> Any:
        if rng.integers(2):
            return clone(_pick(rng, ODD))
        return json.loads(_pick(rng, self._branches)) if self._branches else None

    def _altered(self, rng: Rng, value: Any) -> Any:
        if isinstance(value, bool) or value is None:
            return clone(_pick(rng, ODD))
        if isinstance(value, int | float):
            changes: tuple[Callable[[Any], Any], ...] = (
                lambda v: -v, lambda v: v + 1, lambda v: v * 2**40, str, float, lambda v: [v],
            )  # fmt: skip
            return _pick(rng, changes)(value)
        if isinstance(value, str):
            return self._text(rng, value)
        return [value] if rng.integers(2) else {"a": value}

    def _text(self, rng: Rng, text: str) -> str:
        kind, at = int(rng.integers(7)), int(rng.integers(len(text) + 1))
        if kind == 0:
            return text[:at] + text[at + 1 :]
        if kind == 1:
            return text[:at] + chr(int(rng.integers(1, 0x2FF))) + text[at:]
        if kind == 2:
            return text[:at] + str(_pick(rng, ODD)) + text[at:]
        if kind == 3:
            return text * int(rng.integers(2, 5))
        if kind == 4:
            return _pick(rng, self._words) if self._words else text
        return text.swapcase() if kind == 5 else f"{text[at:]}{text[:at]}"


def encoded(rng: Rng, value: Any) -> bytes:
    """Write a document as JSON or, now and then, as YAML."""
    if not rng.integers(8):
        try:
            return str(yaml.dump(value, Dumper=_DUMPER)).encode("utf-8", "surrogatepass")
        except (yaml.YAMLError, ValueError):
            pass
    return json.dumps(value).encode("utf-8", "surrogatepass")


def garbled(rng: Rng, data: bytes) -> bytes:
    """Change some bytes."""
    for _ in range(int(rng.geometric(0.6))):
        at, size = int(rng.integers(len(data) + 1)), int(rng.geometric(0.2))
        kind = int(rng.integers(5))
        if kind == 0:
            data = data[:at] + data[at + size :]
        elif kind == 1:
            data = data[:at] + bytes([int(rng.integers(256))]) + data[at + 1 :]
        elif kind == 2:
            data = data[:at] + _pick(rng, _TOKENS) + data[at:]
        elif kind == 3:
            data = data[:at] + data[max(at - size, 0) : at] * int(rng.integers(1, 20)) + data[at:]
        else:
            data = data[:at]
    return data


def _pick(rng: Rng, choices: Sequence[Any]) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        value = value[step]
    return value
