"""What a search may change in a configuration, what for, and on which days: SPACE.yaml."""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import yaml

from pumice.api.conditions import Condition, conditions
from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.decode import decode
from pumice.api.manifests import documents_in
from pumice.api.named_files import read_conf_file
from pumice.api.wording import EMPTY_FILE, name_hint
from pumice.errors import InputError, ManifestError, Words
from pumice.sim.figures import NAMES

_HEADS: Final = ("actions", "tiers", "plugins", "configurations")
_ARGUMENTS: Final = "arguments"
_HINT: Final = (
    "such as actions, tiers, plugins.binpack, plugins.drf.enablePreemptable, "
    "plugins.binpack.arguments.binpack.weight, configurations.allocate.arguments.KEY"
)
Count = Annotated[int, msgspec.Meta(ge=1)]


class Dimension(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"whole": "int", "real": "float"},
):
    """One value of the configuration that the search sets."""

    at: str
    """Its place: ``plugins.binpack.arguments.binpack.weight``."""
    whole: tuple[int, int] | None = None
    real: tuple[float, float] | None = None
    log: bool = False
    choice: list[Any] = []

    def has(self, value: Any) -> bool:
        """Return whether a value is one of those that may be tried."""
        if self.choice:
            return value in self.choice
        low, high = self.whole or self.real or (0.0, 0.0)
        return isinstance(value, (int, float)) and low <= value <= high


class Days(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Workloads: traces, or one record, cut into days."""

    trace: str = ""
    record: str = ""
    nodes: str = ""
    format: str = ""
    speed: Annotated[float, msgspec.Meta(gt=0)] = 1.0
    train: str = "0"
    """Days by number: "0-6", "0,2,4"."""
    held: str = ""
    """Days that the search never sees, on which its result is judged."""
    hours: Annotated[float, msgspec.Meta(gt=0)] = 24.0
    """How long a day is."""


class Space(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole file."""

    workload: Days
    search: list[Dimension]
    minimise: list[str] = []
    maximise: list[str] = []
    require: list[str] = []
    """Conditions against the base on the same days: ``wait.p99 <= 1.1 * old``."""
    base: str = ""
    """A configuration file; empty: that of the record, or the built-in one."""
    seeds: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] = (0,)
    trials: Count = 50

    @property
    def objectives(self) -> list[tuple[str, int]]:
        """The figures to improve, and 1 for less or -1 for more."""
        return [*((name, 1) for name in self.minimise), *((name, -1) for name in self.maximise)]

    @property
    def constraints(self) -> list[Condition]:
        """The conditions that a result must meet."""
        return [each for text in self.require for each in conditions(text, NAMES)]


_DIGITS: Final = 4
"""Of a day: searches are about some hundred."""


def numbers(text: str, field: str = "") -> list[int]:
    """Read days as people write them.

    Raises:
        InputError: they are something else.
    """
    found: list[int] = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise InputError(wanted='days such as "0-6" or "0,2,4"', found=text, field=field)
        if max(len(first), len(last)) > _DIGITS:
            wanted = f"days before day {10**_DIGITS:,}"
            raise InputError(wanted=wanted, found=text, field=field)
        found += range(int(first), int(last if dash else first) + 1)
        if len(found) > 10**_DIGITS:
            raise InputError(wanted="each day once", found=text, field=field)
    return found


def read_space(path: Path, text: str) -> Space:
    """Read the description of a search.

    Raises:
        InputError: it is none.
    """
    documents = documents_in(text, str(path))
    if not documents:
        raise InputError(wanted="the description of a search", found=EMPTY_FILE, file=str(path))
    try:
        space = decode(documents[0].content, Space, source=str(path))
    except ManifestError as error:
        error.subject, error.file = "a search", documents[0].place_of(error.path)
        raise
    try:
        _check(space)
    except InputError as error:
        error.file = str(path)
        raise
    return space


def space_of(content: Mapping[str, Any]) -> Space:
    """Take a description that a program has made.

    Raises:
        InputError: it is none.
    """
    space = decode(content, Space, source="space")
    _check(space)
    return space


def _check(space: Space) -> None:
    """Check what the types of fields do not show."""
    if not space.search or not space.objectives:
        raise InputError(wanted="search, and minimise or maximise", found=Words("none"))
    for name, _ in space.objectives:
        if not {name.partition("@")[0], f"{name.partition('.')[0]}."} & {*NAMES}:
            raise InputError(wanted="a known figure", found=name, hint=name_hint(name, NAMES))
    _ = space.constraints  # reading them finds mistakes
    days = space.workload
    if bool(days.trace) == bool(days.record):
        raise InputError(
            wanted="a trace or a record", found=Words("none or both"), field="workload"
        )
    both = {*numbers(days.train, "train")} & {*numbers(days.held, "held")}
    if both:
        raise InputError(wanted="days that are not searched", found=min(both), field="held")
    for each in space.search:
        _check_dimension(each)


_CHOICES: Final = {
    "actions": "names of actions: a text or a list",
    "tiers": "tiers, each a list of names of plugins",
}


def _fits(at: str, value: Any) -> bool:
    """Return whether a value can be put at a place."""
    if at == "actions":
        return isinstance(value, str) or _are_names(value)
    if at == "tiers":
        return isinstance(value, list) and all(map(_are_names, value))
    return at.count(".") != 1 or isinstance(value, bool)


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _check_dimension(each: Dimension) -> None:
    if each.at.partition(".")[0] not in _HEADS:
        raise InputError(wanted=f"a place {_HINT}", found=each.at, field="at")
    if sum((each.whole is not None, each.real is not None, bool(each.choice))) != 1:
        raise InputError(
            wanted="one of int, float and choice", found=Words("others"), field=each.at
        )
    for value in each.choice:
        if not _fits(each.at, value):
            wanted = _CHOICES.get(each.at, "true or false")
            raise InputError(wanted=wanted, found=value, field=each.at)
    if (each.at in _CHOICES or each.at.count(".") == 1) and not each.choice:
        raise InputError(wanted="choice", found=Words("a range"), field=each.at)
    low, high = each.whole or each.real or (0.0, 1.0)
    if not -math.inf < low < high < math.inf or (each.log and low <= 0):
        wanted = "a range from a lower to a higher number, above 0 for log"
        raise InputError(wanted=wanted, found=[low, high], field=each.at)


class Template:
    """A configuration in which values can be set."""

    def __init__(self, text: str) -> None:
        self._root: dict[str, Any] = yaml.safe_load(text)

    @classmethod
    def of(cls, file: Path | None) -> "Template":
        """Read a file; the built-in configuration without one."""
        text = DEFAULT_CONF if file is None else read_conf_file(file)[0]
        parse_conf(text, source=str(file or "built-in"))
        return cls(text)

    def filled(self, values: Mapping[str, Any]) -> str:
        """Return the text of the configuration with values at their places.

        Raises:
            InputError: a place is not one of a configuration.
        """
        root = copy.deepcopy(self._root)
        for at in sorted(values, key=lambda place: _HEADS.index(place.partition(".")[0])):
            _put(root, at, values[at])
        text = yaml.safe_dump(root, sort_keys=False)
        parse_conf(text, source="<search>")
        return text

    def value(self, at: str) -> Any:
        """Return the value at a place, None if there is none."""
        head, _, rest = at.partition(".")
        if not rest:
            return self._root.get(head)
        name, _, field = rest.partition(".")
        owner = next((each for each in _owners(self._root, head) if each["name"] == name), None)
        if not field:
            return owner is not None
        argument = field.removeprefix(f"{_ARGUMENTS}.")
        known = (owner or {}).get(_ARGUMENTS) or {} if argument != field else owner or {}
        return known.get(argument)


def _owners(root: Mapping[str, Any], head: str) -> Iterator[dict[str, Any]]:
    if head == "plugins":
        for tier in root.get("tiers") or ():
            yield from tier.get("plugins") or ()
    else:
        yield from root.get("configurations") or ()


def _put(root: dict[str, Any], at: str, value: Any) -> None:
    head, _, rest = at.partition(".")
    if head == "actions":
        root[head] = value if isinstance(value, str) else ", ".join(value)
    elif head == "tiers":
        _arrange(root, value)
    else:
        name, _, field = rest.partition(".")
        if not name:
            raise InputError(wanted=f"a place of a configuration {_HINT}", found=at)
        if not field:
            _switch(root, name, is_on=bool(value))
            return
        owner = _owner(root, head, name)
        argument = field.removeprefix(f"{_ARGUMENTS}.")
        if argument != field:
            owner[_ARGUMENTS] = inner = owner.get(_ARGUMENTS) or {}
            owner = inner
        owner[argument] = value


def _owner(root: dict[str, Any], head: str, name: str) -> dict[str, Any]:
    """Return a plugin or the settings of an action; a plugin that is left out has none to set."""
    found = next((each for each in _owners(root, head) if each["name"] == name), None)
    if found is None:
        found = {"name": name}
        if head == "configurations":
            root.setdefault(head, []).append(found)
    return found


def _switch(root: dict[str, Any], name: str, *, is_on: bool) -> None:
    known = any(each["name"] == name for each in _owners(root, "plugins"))
    if is_on and not known:
        tiers = root["tiers"] = root.get("tiers") or [{}]
        tiers[-1]["plugins"] = [*(tiers[-1].get("plugins") or ()), {"name": name}]
    elif known and not is_on:
        for tier in root["tiers"]:
            tier["plugins"] = [each for each in tier.get("plugins") or () if each["name"] != name]
        root["tiers"] = [tier for tier in root["tiers"] if tier["plugins"]]


def _arrange(root: dict[str, Any], tiers: Sequence[Sequence[str]]) -> None:
    """Put plugins into tiers by name; those of the base keep their settings."""
    known = {each["name"]: each for each in _owners(root, "plugins")}
    root["tiers"] = [
        {"plugins": [known.get(name, {"name": name}) for name in tier]} for tier in tiers
    ]
