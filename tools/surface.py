"""What Pumice 1.x promises, as one line for each command, flag, field, name and metric.

    python -m tools.surface           add what is new to tests/surface-1.txt
    python -m tools.surface --check   name what is gone, and fail

New lines are free to come; a line of the file stays true until version 2 (docs/compatibility.md).
"""

import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator
from contextlib import chdir
from typing import Any, Final

import click
import msgspec
import yaml
from click.testing import CliRunner

import pumice
from pumice.api.codes import Cause
from pumice.api.output_files import write_file
from pumice.cli.main import main as command
from pumice.framework.plugin import HOOKS, Plugin
from pumice.metrics import CATALOGUE
from pumice.records import entries
from pumice.scenarios.file_schemas import file_schema
from pumice.serve.options import FLAGS
from tools.packages import CHART, ROOT

FILE: Final = ROOT / "tests" / "surface-1.txt"
_CLUSTER: Final = ["-f", "examples/first-cluster.yaml"]
ANSWERS: Final = (
    ["config", "check", "examples/volcano-scheduler.conf"],
    ["explain", *_CLUSTER],
    ["explain", "ai/sweep", *_CLUSTER],
    ["plugin", "show", "binpack"],
    ["queue", "order", *_CLUSTER],
    ["run", *_CLUSTER],
    ["snapshot", "show", "examples/first-cluster.yaml"],
    ["test", "examples/policy"],
    ["whatif", "--add-nodes", "1", *_CLUSTER],
)
"""Commands whose answers are JSON for programs, and that give the same ones each time."""
_NAME: Final = re.compile(r"[A-Za-z]\w*")


def surface() -> list[str]:
    """List everything that is promised."""
    kinds = (_flags, _library, _plugins, _schemas, _record, _chart, _answers)
    found = {*_commands(command, "pumice"), *(line for kind in kinds for line in kind())}
    found |= {f"code {cause.value}" for cause in Cause}
    found |= {f"metric {one.name}{{{','.join(one.labels)}}}" for one in CATALOGUE}
    return sorted(found)


def gone() -> list[str]:
    """List what was promised and is not there any more."""
    return sorted({*FILE.read_text(encoding="utf-8").splitlines()} - {*surface()})


def _commands(one: click.Command, path: str) -> Iterator[str]:
    yield f"command {path}"
    for option in one.params:
        if isinstance(option, click.Option):
            yield from (f"command {path} {name}" for name in (*option.opts, *option.secondary_opts))
    if isinstance(one, click.Group):
        context = click.Context(one)
        for name in one.list_commands(context):
            if below := one.get_command(context, name):
                yield from _commands(below, f"{path} {name}")


def _flags() -> Iterator[str]:
    for process, flags in FLAGS.items():
        yield from (f"flag {process} --{flag.name}" for flag in flags)


def _library() -> Iterator[str]:
    for name in dir(pumice):
        yield from _members(f"library pumice.{name}", getattr(pumice, name))
    testing = importlib.import_module("pumice.testing")
    yield from (f"library pumice.testing.{name}" for name in testing.__all__)


def _members(path: str, value: Any) -> Iterator[str]:
    """Name a value, the arguments of a function, and the public members of a class."""
    yield path
    if inspect.isclass(value):
        for name in dir(value):
            if not name.startswith("_"):
                yield from _members(f"{path}.{name}", inspect.getattr_static(value, name))
    elif inspect.isfunction(value):
        names = (name for name in inspect.signature(value).parameters if name != "self")
        yield from (f"{path}({name})" for name in names)


def _plugins() -> Iterator[str]:
    face = importlib.import_module("pumice.plugin")
    yield from (f"plugin pumice.plugin.{name}" for name in face.__all__)
    for name in HOOKS:
        yield from _members(f"plugin Plugin.{name}", getattr(Plugin, name))


def _schemas() -> Iterator[str]:
    for name in ("changes", "conf", "explanation", "scenario"):
        yield from _fields(f"file {name}", file_schema(name))


def _fields(path: str, schema: Any) -> Iterator[str]:
    """Name the fields of our own in a schema; objects of Kubernetes stay those of Kubernetes."""
    if not isinstance(schema, dict):
        return
    for name, below in (schema.get("properties") or {}).items():
        yield f"{path} {name}"
        yield from _fields(f"{path} {name}", below)
    for key in ("items", "additionalProperties"):
        yield from _fields(path, schema.get(key))
    for below in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _fields(path, below)


def _record() -> Iterator[str]:
    yield f"record {entries.FORMAT} version {entries.VERSION}"
    for one in (entries.Head, entries.Entry, entries.CycleEntry, entries.Conf):
        fields = msgspec.structs.fields(one)
        yield from (f"record {one.__name__} {field.encode_name}" for field in fields)


def _chart() -> Iterator[str]:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    for section, keys in values.items():
        yield from (f"chart {section}.{key}" for key in keys)


def _answers() -> Iterator[str]:
    for words in ANSWERS:
        with chdir(ROOT):
            said = CliRunner().invoke(command, [*words, "-o", "json"])
        verb = " ".join(word for word in words if _NAME.fullmatch(word))
        yield from _keys(f"json {verb}", json.loads(said.stdout))


def _keys(path: str, value: Any) -> Iterator[str]:
    """Name the keys of an answer; those that are names of objects only by a star."""
    if isinstance(value, list):
        for each in value:
            yield from _keys(path, each)
    elif isinstance(value, dict):
        named = all(_NAME.fullmatch(key) for key in value)
        for key, below in value.items():
            yield (here := f"{path} {key if named else '*'}")
            yield from _keys(here, below)


def main(arguments: list[str]) -> int:
    """Write the file, or compare with it."""
    if "--check" in arguments:
        missing = gone()
        print(*(f"gone: {line}" for line in missing), sep="\n")  # noqa: T201
        return int(bool(missing))
    before = {*FILE.read_text(encoding="utf-8").splitlines()} if FILE.exists() else set()
    write_file(FILE, "".join(f"{line}\n" for line in sorted(before | {*surface()})))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
