"""Changes of one line of a scheduler configuration, to see which of them a test notices."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import yaml

from pumice.api.yaml_text import compose_all, line_at, parse_yaml

_NAMED: Final = ("name", "plugins")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A configuration with one change."""

    line: int
    change: str
    """In words."""
    text: str


def mutants_of(text: str, source: str = "") -> list[Mutant]:
    """List the configurations that differ by one change: an action, a plugin, a switch, a value.

    Raises:
        ManifestError: the text is not YAML.
    """
    documents = parse_yaml(text, source)
    roots = list(compose_all(text, source))
    if len(documents) != 1 or not isinstance(documents[0], dict):
        return []
    made = _Mutants(documents[0], roots[0])
    found = [*made.of_actions(), *made.of_tiers(), *made.of_configurations()]
    return sorted(found, key=lambda each: each.line)


class _Mutants:
    def __init__(self, conf: dict[str, Any], root: yaml.Node) -> None:
        self._conf, self._root = conf, root

    def _made(self, path: tuple[str | int, ...], change: str, conf: Any) -> Mutant:
        text = yaml.safe_dump(conf, sort_keys=False)
        return Mutant(line=line_at(self._root, path), change=change, text=text)

    def of_actions(self) -> Iterator[Mutant]:
        """Leave out an action, or take two in the other order."""
        given = self._conf.get("actions")
        names = [name.strip() for name in given.split(",")] if isinstance(given, str) else []
        for i, name in enumerate(names):
            others = [*names[:i], *names[i + 1 :]]
            if others:
                yield self._actions(others, f"without the action {name}")
            if i + 1 < len(names):
                swapped = [*names[:i], names[i + 1], name, *names[i + 2 :]]
                yield self._actions(swapped, f"{names[i + 1]} before {name}")

    def _actions(self, names: list[str], change: str) -> Mutant:
        return self._made(("actions",), change, {**self._conf, "actions": ", ".join(names)})

    def of_tiers(self) -> Iterator[Mutant]:
        """Leave out a plugin or a field of it, flip its switches, join two tiers."""
        tiers = self._conf.get("tiers") or []
        for t, tier in enumerate(tiers):
            plugins = (tier or {}).get("plugins") or []
            for p, plugin in enumerate(plugins):
                yield self._edited(
                    ("tiers", t, "plugins", p), f"without the plugin {plugin['name']}"
                )
                yield from self._fields(("tiers", t, "plugins", p), plugin, str(plugin["name"]))
            for key in (tier or {}).keys() - {"plugins"}:
                yield self._edited(("tiers", t, key), f"without {key} in tier {t + 1}")
            if t + 1 < len(tiers):
                yield self._joined(t)

    def _joined(self, t: int) -> Mutant:
        conf = deepcopy(self._conf)
        after = conf["tiers"].pop(t + 1)
        conf["tiers"][t]["plugins"] += after.get("plugins") or []
        return self._made(("tiers", t + 1), f"tiers {t + 1} and {t + 2} as one", conf)

    def of_configurations(self) -> Iterator[Mutant]:
        """Leave out an argument of an action."""
        for c, entry in enumerate(self._conf.get("configurations") or []):
            yield from self._fields(("configurations", c), entry, str(entry.get("name")))

    def _fields(
        self, path: tuple[str | int, ...], fields: dict[str, Any], owner: str
    ) -> Iterator[Mutant]:
        for key, value in fields.items():
            if key in _NAMED:
                continue
            if isinstance(value, dict):
                yield from self._fields((*path, key), value, owner)
            elif isinstance(value, bool):
                change = f"{key}: {str(not value).lower()} of {owner}"
                yield self._edited((*path, key), change, not value)
            else:
                yield self._edited((*path, key), f"without {key} of {owner}")

    def _edited(self, path: tuple[str | int, ...], change: str, value: Any = None) -> Mutant:
        """Set the value at a path; None leaves it out."""
        conf: Any = deepcopy(self._conf)
        inside = conf
        for step in path[:-1]:
            inside = inside[step]
        if value is None:
            del inside[path[-1]]
        else:
            inside[path[-1]] = value
        return self._made(path, change, conf)
