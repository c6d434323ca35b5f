"""Files that a scenario names: manifests by `objectsFrom`, a configuration by `confFrom`.

Used by every reader of scenarios.  A scenario may be a stranger's and name any file of the machine.
An error about a file that is not what the scenario takes it for names the line, never the content.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.api.manifests import Root, load_roots, load_values
from pumice.api.text_files import is_stdin, read_text, shown_name
from pumice.errors import InputError, ManifestError, Words

_SUFFIX: Final = "scheduler.conf"
"""Suffix of a ConfigMap's key whose text is a scheduler configuration."""


def read_conf_file(file: Path, error: type[InputError] = InputError) -> tuple[str, str]:
    """Return the text of a configuration and the name of its place.

    Raises:
        InputError: The file cannot be read, or is a ConfigMap without one configuration; raised
            as ``error``.
    """
    text, name = read_text(file, error), shown_name(file)
    config_map = _config_map(text) if "ConfigMap" in text else None
    if config_map is None:
        return text, name
    data = config_map.get("data")
    found = conf_entries(data)
    if len(found) != 1 or not isinstance(found[0][1], str):
        wanted = f"one text under a key that ends with {_SUFFIX}"
        keys = sorted(map(str, data)) if isinstance(data, dict) else []
        raise error(wanted=wanted, found=keys, field="data", file=name)
    return found[0][1], f"{name}: {found[0][0]}"


def conf_entries(data: Any) -> list[tuple[str, Any]]:
    """Return the keys and values of a ConfigMap's data that are scheduler configurations."""
    entries = data.items() if isinstance(data, Mapping) else ()
    return [(str(key), value) for key, value in entries if str(key).endswith(_SUFFIX)]


def _config_map(text: str) -> dict[str, Any] | None:
    """Return the only document of a text if it is a ConfigMap."""
    try:
        values = load_values(f"{text}\n")
    except ManifestError:  # whoever reads the configuration names the line
        return None
    if len(values) == 1 and isinstance(values[0], dict) and values[0].get("kind") == "ConfigMap":
        return values[0]
    return None


_SOMETHING: Final = Words("something else")
_CONF_KEYS: Final = frozenset({"actions", "tiers"})


def named_manifests(
    scenario: Path | None, name: str, error: type[InputError] = InputError
) -> list[Root]:
    """Read a file that a scenario names in `objectsFrom`; ``scenario`` is None for a text.

    It holds manifests or a snapshot.

    Raises:
        InputError: it cannot be read or holds something else; raised as ``error``.
    """
    file = _plain_file(scenario, name, error)
    with _unquoted(error, str(file)):
        roots = load_roots(file)
    for root in roots:
        if not (_are_manifests(root.content) or is_snapshot(root.content)):
            where = f"{root.file}:{root.line}"
            raise error(wanted="manifests with kind and metadata", found=_SOMETHING, file=where)
    return roots


def applied(earlier: list[Manifest], later: list[Manifest]) -> list[Manifest]:
    """Return the objects of files with those of a later one, as if that were applied to a cluster.

    It replaces what has the same name; what it leaves out of metadata and status stays.
    """
    found = [*earlier]
    places = {_place(one): number for number, one in enumerate(found)}
    for one in later:
        number = places.setdefault(_place(one), len(found))
        known = found[number] if number < len(found) else {}
        state = {"state": "Open"} if one["kind"] == "Queue" else None  # as its controller would
        status = one.get("status") or known.get("status") or state
        new = {**one, "metadata": {**known.get("metadata", {}), **one["metadata"]}}
        new |= {"status": status} if status else {}
        found[number : number + 1] = [new]
    return found


def _place(one: Manifest) -> tuple[str, str, str]:
    meta = one["metadata"]
    return str(one["kind"]), str(meta.get("namespace") or ""), str(meta["name"])


def is_snapshot(content: Any) -> bool:
    """Return whether a value is a snapshot of a cluster: a scenario whose objects are a list."""
    has_objects = isinstance(content, dict) and "kind" not in content and "objects" in content
    return (
        has_objects and isinstance(content["objects"], list) and _are_manifests(content["objects"])
    )


def named_conf(
    scenario: Path | None, name: str, error: type[InputError] = InputError
) -> tuple[str, str]:
    """Read the file that a scenario names in `confFrom`; return its text and a name for its place.

    Raises:
        InputError: it cannot be read or holds something else; raised as ``error``.
    """
    file = _plain_file(scenario, name, error)
    with _unquoted(error, str(file)):
        text, source = read_conf_file(file)
    with _unquoted(error, source):
        values = load_values(f"{text}\n")
    if any(not isinstance(value, dict) or _CONF_KEYS.isdisjoint(value) for value in values):
        wanted = "a scheduler configuration with actions and tiers"
        raise error(wanted=wanted, found=_SOMETHING, file=source)
    return text, source


def _plain_file(scenario: Path | None, name: str, error: type[InputError]) -> Path:
    """Return the path of a file that can be read to its end, and once more.

    A text, such as a question to the dashboard, comes from no folder and names no files.
    """
    if scenario is None:
        raise error(wanted="no names of files in a text", found=name)
    file = scenario.parent / name
    try:
        special = (
            is_stdin(file)
            or "\0" in name
            or (file.exists() and not (file.is_file() or file.is_dir()))
        )
    except OSError as fault:  # a name that is too long, links in a circle
        found = Words(fault.strerror or str(fault))
        raise error(wanted="the name of a file", found=found, file=name[:200]) from None
    if special:
        found = Words("a pipe or a device")
        raise error(wanted="the name of a file", found=found, file=str(file))
    read_text(file, error)
    return file


@contextmanager
def _unquoted(error: type[InputError], file: str) -> Iterator[None]:
    """Raise errors about the content of a file without any of it, but with their line."""
    try:
        yield
    except InputError as fault:
        line = fault.file.rpartition(":")[2]
        where = f"{file}:{line}" if line.isdecimal() else file
        raise error(wanted=fault.wanted, found=_SOMETHING, file=where) from None


def _are_manifests(content: Any) -> bool:
    """Return whether a value is an object of Kubernetes or a list of some."""
    if isinstance(content, list):
        return all(not isinstance(one, list) and _are_manifests(one) for one in content)
    if content is None:
        return True
    if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
        return False
    if content["kind"].endswith("List") and isinstance(content.get("items"), list):
        return _are_manifests(content["items"])
    return isinstance(content.get("metadata"), dict)
