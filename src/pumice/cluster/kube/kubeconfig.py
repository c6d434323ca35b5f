"""Kubeconfig files: read, merged as kubectl does, one context chosen.

Used to make connections.  Errors name the file and the field.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pumice.api.text_files import read_text
from pumice.errors import ABSENT, InputError, Words

_SECRET: Final = frozenset({"token", "password", "client-key-data", "client-certificate-data"})
"""Fields whose content appears in no message."""


@dataclass(frozen=True, slots=True)
class Section:
    """A named part of a kubeconfig: the context, the cluster or the user."""

    place: str = ""
    """Its place, for messages: ``clusters[prod].cluster``."""
    file: str = ""
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def folder(self) -> Path:
        """The folder of relative paths."""
        return Path(self.file).resolve().parent if self.file else Path()

    def wrong(self, key: str, wanted: str, found: object = ABSENT, hint: str = "") -> InputError:
        """Make the error for one of its fields."""
        place = f"{self.place}.{key}" if self.place else key
        return InputError(wanted=wanted, found=found, field=place, file=self.file, hint=hint)

    def text(self, key: str) -> str:
        """Return a field that holds text, or nothing.

        Raises:
            InputError: it holds something else.
        """
        found = self.content.get(key)
        if found is None:
            return ""
        if not isinstance(found, str):
            shown = "something else" if key in _SECRET else found
            raise self.wrong(key, "text", shown)
        return found

    def flag(self, key: str) -> bool:
        """Return a field that is true or false, false if it is absent.

        Raises:
            InputError: it holds something else; a text such as "false" would count as true.
        """
        found = self.content.get(key) or False
        if not isinstance(found, bool):
            raise self.wrong(key, "true or false", found)
        return found

    def mapping(self, key: str) -> Mapping[str, Any]:
        """Return a field that holds fields, or nothing.

        Raises:
            InputError: it holds something else.
        """
        found = self.content.get(key)
        if found is None:
            return {}
        if not isinstance(found, dict):
            shown = "a list" if isinstance(found, list) else "a single value"  # it may be secret
            raise self.wrong(key, "a mapping", shown)
        return found


@dataclass(frozen=True, slots=True)
class ActiveContext:
    """The context that counts, with its cluster and its user."""

    context: Section
    cluster: Section
    user: Section


def named_files(kubeconfig: str, env: Mapping[str, str]) -> list[Path]:
    """Return the files that the command line names, else those of $KUBECONFIG that exist.

    Files that are named never lead to another cluster, so one of them must exist.

    Raises:
        InputError: none of them does.
    """
    if kubeconfig:
        if not Path(kubeconfig).exists():
            raise InputError(
                wanted="a kubeconfig",
                found=Words("no such file"),
                file=kubeconfig,
                field="--kubeconfig",
                hint="name another file, or run 'pumice up'",
            )
        return [Path(kubeconfig)]
    named = [Path(name) for name in env.get("KUBECONFIG", "").split(os.pathsep) if name]
    found = [file for file in named if file.exists()]
    if named and not found:
        files = os.pathsep.join(map(str, named))
        missing = Words("no such file" if len(named) == 1 else "none of these files")
        hint = "pass --kubeconfig FILE, set KUBECONFIG to another file, or run 'pumice up'"
        raise InputError(
            wanted="a kubeconfig", found=missing, file=files, field="KUBECONFIG", hint=hint
        )
    return found


def read_kubeconfig(files: Iterable[Path], context: str = "") -> ActiveContext:
    """Read files as one: of two parts with the same name the first counts.

    Raises:
        InputError: a file that cannot be used, or no such context.
    """
    parts: dict[str, dict[str, Section]] = {"contexts": {}, "clusters": {}, "users": {}}
    current, last = context, ""
    for file in files:
        content, last = _load(file), str(file)
        for plural, known in parts.items():
            for name, stanza in _named(content, plural, last).items():
                known.setdefault(name, stanza)
        current = current or Section("", last, content).text("current-context")
    return _choose(parts, current, last, asked=bool(context))


def _choose(
    parts: Mapping[str, Mapping[str, Section]], current: str, file: str, *, asked: bool
) -> ActiveContext:
    where = Section("", file)
    if not current:
        raise where.wrong("current-context", "the name of a context")
    chosen = parts["contexts"].get(current)
    if chosen is None:
        hint = f"there are: {', '.join(parts['contexts']) or 'none'}"
        raise where.wrong("context" if asked else "current-context", "a context", current, hint)
    cluster = parts["clusters"].get(chosen.text("cluster"))
    if cluster is None:
        raise chosen.wrong("cluster", "the name of a cluster", chosen.text("cluster"))
    user = parts["users"].get(chosen.text("user"))
    if user is None and chosen.text("user"):
        raise chosen.wrong("user", "the name of a user", chosen.text("user"))
    return ActiveContext(chosen, cluster, user or Section("", file))


def _load(file: Path) -> dict[str, Any]:
    from pumice.api.yaml_text import parse_yaml  # noqa: PLC0415  (loads YAML, which takes longer)

    try:
        documents = parse_yaml(read_text(file), str(file), unique=False)
    except InputError as error:
        if error.file != str(file):  # it names the line
            raise
        raise InputError(wanted="a kubeconfig", found=error.found, file=str(file)) from None
    content = documents[0] if documents else None
    if not isinstance(content, dict):
        found = ABSENT if content is None else content
        hint = "pass --kubeconfig FILE, or run 'pumice up'"
        raise InputError(wanted="a kubeconfig", found=found, file=str(file), hint=hint)
    return content


def _named(content: Mapping[str, Any], plural: str, file: str) -> dict[str, Section]:
    """Return the parts of one kind by their names."""
    found: dict[str, Section] = {}
    singular = plural[:-1]
    items = content.get(plural) or ()
    if not isinstance(items, list | tuple):
        raise InputError(wanted="a list", found=items, field=plural, file=file)
    for index, item in enumerate(items):
        place = f"{plural}[{index}]"
        if not isinstance(item, dict) or not isinstance(item.get("name"), str):
            raise InputError(wanted="a name", found=ABSENT, field=f"{place}.name", file=file)
        inner = Section(place, file, item).mapping(singular)
        found.setdefault(item["name"], Section(f"{plural}[{item['name']}].{singular}", file, inner))
    return found
