"""`pumice lint`: find in files what a cluster would refuse, without a cluster."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from pumice.api.kinds import BUILT_IN, KUBE_POD_GROUP, kind_of
from pumice.api.text_files import is_stdin, read_text, shown_name
from pumice.api.wording import counted, nearest
from pumice.cli.printing import echo, print_data, print_findings
from pumice.errors import ABSENT, ManifestError, Words
from pumice.webhooks.fields import OMITTED, Key, Missing, Mistyped, Shown, path_text

_VOLCANO: Final = [kind for kind in BUILT_IN if kind.group.endswith(".volcano.sh")]
_VOLCANO_GROUPS: Final = frozenset(kind.group for kind in _VOLCANO)
_VOLCANO_KINDS: Final = [(f"{kind.group}/{kind.version}", kind.kind) for kind in _VOLCANO]
_SUFFIXES: Final = (".yaml", ".yml", ".json")
_STDIN: Final = "-"
_SHOWN: Final = 80
_INSIDE_SCENARIOS: Final = frozenset({"objects", "objectsFrom"})
_WITH_SECRETS: Final = frozenset({"ssh", "mpi"})
"""Plugins of jobs with keys in a secret: ssh, and mpi, which brings ssh."""


class _Output(click.Choice[str]):
    """The outputs of all commands; a table of lines was first called text."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return an output by its present name."""
        return super().convert("table" if value == "text" else value, param, ctx)


@click.command()
@click.argument("paths", metavar="FILE|DIR|-...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    type=_Output(["table", "json", "yaml"]),
    default="table",
    show_default=True,
    help="How to print the problems.",
)
@click.option(
    "--queue",
    "queues",
    metavar="NAME",
    multiple=True,
    help="A queue that exists in the cluster; those in the files always count.",
)
@click.pass_context
def lint(
    ctx: click.Context, *, paths: tuple[str, ...], output: str, queues: tuple[str, ...]
) -> None:
    """Check jobs, queues and the like before a cluster does; - reads standard input."""
    documents = list(_documents(paths))
    if not documents:  # a check of nothing would pass unnoticed
        names = ", ".join(shown_name(Path(path)) for path in paths)
        raise ManifestError(wanted="manifests", found=Words("none"), file=names)
    lines, checked = _lint(documents, queues)
    if output != "table":
        print_data(json.loads(json.dumps([asdict(line) for line in lines], default=str)), output)
    else:
        print_findings(map(str, lines))
        number = f"{len(lines)} problem{'s' * (len(lines) != 1)}" if lines else "no problems"
        echo(f"{number} in {checked} object{'s' * (checked != 1)}")
    for hint in (*_passed_over(documents), *_hints(documents)):
        echo(hint, err=True)
    ctx.exit(1 if lines else 0)


@dataclass(frozen=True, slots=True)
class Line:
    """One finding as it is printed."""

    file: str
    line: int
    object: str
    field: str
    found: Any
    wanted: str
    """Empty where the message alone says it."""
    message: str
    """The message of an API server or a webhook about it."""

    def __str__(self) -> str:
        where = "".join(f"{part}: " for part in (self.object, self.field) if part)
        got = f"got {_shown(self.found)}, " if self.found is not None else ""
        problem = f"{got}expected {self.wanted}" if self.wanted else self.message
        line = f"{self.file}:{self.line}: {where}{problem}"
        return line.encode("utf-8", "backslashreplace").decode()  # half a character, too


def _shown(value: Any) -> str:
    """Write a value in one line, a text in quotes if it is wrong to be a text."""
    is_plain = isinstance(value, str) and value and not isinstance(value, Mistyped)
    text = value if is_plain else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _lint(read: Sequence[Any], queues: tuple[str, ...]) -> tuple[list[Line], int]:
    from pumice.webhooks.files import Files, is_checked
    from pumice.webhooks.lint import lint_object

    lines = [one for one in read if isinstance(one, Line)]
    documents = [one for one in read if not isinstance(one, Line)]
    lines += [_configuration(one) for one in documents if _is_configuration(one.content)]
    lines += [_unknown_kind(one) for one in documents if _is_unknown_kind(one.content)]
    lines += [_untyped(one) for one in documents if _is_untyped(one.content)]
    lines += [_plain_value(one) for one in documents if not isinstance(one.content, dict)]
    files = Files((one.content for one in documents if is_checked(one.content)), queues)
    checked, seen = 0, dict[tuple[str, ...], str]()
    for document in documents:
        if _is_kube_group(document.content):
            checked += 1
            lines += _misread_group(document)
        if not is_checked(document.content):
            continue
        checked += 1
        found = [_line(document, finding) for finding in lint_object(document.content, files)]
        lines += sorted([*_twice(document, seen), *found], key=lambda line: line.line)
    return lines, checked


def _passed_over(read: Sequence[Any]) -> Iterator[str]:
    """Yield which kinds of objects there are no rules for."""
    from pumice.webhooks.files import is_checked, resource_name

    contents = [one.content for one in read if not isinstance(one, Line)]
    others = Counter(
        resource_name(content).partition(" ")[0]
        for content in contents
        if _is_object(content)
        and not is_checked(content)
        and not _is_unknown_kind(content)
        and not _is_kube_group(content)
    )
    reported = (_is_object, _is_untyped, _is_configuration)
    strangers = [
        content
        for content in contents
        if isinstance(content, dict) and not any(known(content) for known in reported)
    ]
    scenarios = sum(not _INSIDE_SCENARIOS.isdisjoint(content) for content in strangers)
    if scenarios:
        yield f"note: not checked: {counted(scenarios, 'scenario')}, which 'pumice run' reads"
    if len(strangers) > scenarios:
        yield f"note: not objects, not checked: {counted(len(strangers) - scenarios, 'document')}"
    if others:
        listed = ", ".join(f"{number} {kind}" for kind, number in sorted(others.items()))
        yield f"note: without rules, not checked: {listed}"


def _hints(read: Iterable[Any]) -> Iterator[str]:
    """Yield what a cluster accepts, and may still need."""
    from pumice.webhooks.files import is_checked, resource_name

    for document in read:
        if isinstance(document, Line) or not is_checked(document.content):
            continue
        job = document.content
        spec, metadata = job.get("spec"), job.get("metadata")
        namespace = metadata.get("namespace", "default") if isinstance(metadata, dict) else ""
        plugins = spec.get("plugins") if isinstance(spec, dict) else None
        found = sorted(_WITH_SECRETS & set(plugins)) if isinstance(plugins, dict) else []
        if found and namespace not in ("", "default"):
            yield (
                f"{document.file}:{document.line}: {resource_name(job)}: plugin {found[0]} needs "
                f"the controllers' right to secrets in namespace {namespace} "
                "(custom.job_secret_namespaces of the chart; see docs/install.md)"
            )


def _documents(paths: Iterable[str]) -> Iterator[Any]:
    """Read all documents; a file that cannot be read yields a finding instead."""
    from pumice.api.manifests import load_documents

    for path in _files(paths):
        try:
            yield from _with_text(load_documents(Path(path)), path)
        except ManifestError as error:
            file, _, line = error.file.rpartition(":")
            if line.isdigit() and file:
                yield Line(file, int(line), "", "", error.found, error.wanted, str(error))
            else:
                sentence = f"{error.found}; expected {error.wanted}"
                yield Line(error.file or path, 1, "", "", error.found, "", sentence)


def _files(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        if path != _STDIN and Path(path).is_dir():
            inside = (one for one in Path(path).rglob("*") if one.suffix in _SUFFIXES)
            yield from sorted(str(one) for one in inside if one.is_file())
        else:
            yield path


def _is_configuration(content: Any) -> bool:
    return isinstance(content, dict) and content.keys() >= {"actions", "tiers"}


def _configuration(document: Any) -> Line:
    """Return the finding for a scheduler configuration, which has rules of its own."""
    name = _STDIN if is_stdin(Path(document.file)) else document.file
    wanted = f"manifests: check it with 'pumice config check {name}'"
    found = "a scheduler configuration"
    return Line(document.file, document.line, "", "", found, wanted, f"{found}, not a manifest")


def _is_object(content: Any) -> bool:
    return isinstance(content, dict) and all(
        isinstance(content.get(key), str) for key in ("apiVersion", "kind")
    )


def _is_untyped(content: Any) -> bool:
    """Return whether a document is meant to be an object and lacks its kind or version."""
    named = isinstance(content, dict) and isinstance(content.get("metadata"), dict)
    return named and not _is_object(content)


def _plain_value(document: Any) -> Line:
    """Return the finding for a document that is no mapping, which a cluster refuses."""
    found, wanted = document.content, "an object with apiVersion and kind"
    sentence = "not an object: apiVersion and kind are missing"
    return Line(document.file, document.line, "", "", found, wanted, sentence)


def _untyped(document: Any) -> Line:
    """Return the finding for an object without kind or version, which a cluster refuses."""
    from pumice.webhooks.files import resource_name

    content = document.content
    field = "kind" if isinstance(content.get("apiVersion"), str) else "apiVersion"
    found, wanted = content.get(field), "a non-empty string"
    name = resource_name(content) if isinstance(content.get("kind"), str) else ""
    line = _at(document, (field,))
    return Line(document.file, line, name, field, found, wanted, f"{field} not set")


def _is_unknown_kind(content: Any) -> bool:
    """Return whether an object claims to be of one of Volcano's API groups and is not."""
    from pumice.webhooks.files import is_checked

    if not _is_object(content) or is_checked(content) or content["kind"].endswith("List"):
        return False
    version, kind = content["apiVersion"], content["kind"]
    return version.partition("/")[0] in _VOLCANO_GROUPS and (version, kind) not in _VOLCANO_KINDS


def _is_kube_group(content: Any) -> bool:
    return _is_object(content) and kind_of(content) == KUBE_POD_GROUP


def _misread_group(document: Any) -> Iterator[Line]:
    """Yield what is wrong with a PodGroup of Kubernetes' own."""
    from pumice.api.objects import from_manifest, in_namespace
    from pumice.webhooks.files import resource_name

    try:
        from_manifest(in_namespace(document.content))
    except ManifestError as error:
        line, name = _at(document, error.path), resource_name(document.content)
        found = None if error.found is ABSENT else error.found
        yield Line(document.file, line, name, error.field, found, error.wanted, str(error))


def _unknown_kind(document: Any) -> Line:
    """Return the finding for a misspelt kind or version of Volcano's."""
    from pumice.webhooks.files import resource_name

    version, kind = document.content["apiVersion"], document.content["kind"]
    known = [f"{each} of {one}" for one, each in _VOLCANO_KINDS]
    found = f"{kind} of {version}"
    near = nearest(found, known)
    wanted = f"a kind of Volcano{f', such as {near}' if near else ''}"
    name = resource_name(document.content)
    return Line(document.file, document.line, name, "kind", found, wanted, f"no kind {found}")


def _twice(document: Any, seen: dict[tuple[str, ...], str]) -> Iterator[Line]:
    """Yield objects that occur twice in the files."""
    from pumice.webhooks.files import resource_name

    manifest = document.content
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict) or not metadata.get("name"):
        return
    key = (str(manifest["apiVersion"]), resource_name(manifest))
    if key in seen:
        wanted = f"each object once (the first is at {seen[key]})"
        place = ("metadata", "name")
        yield Line(
            document.file, _at(document, place), key[1], "metadata.name", metadata["name"],
            wanted, "already exists",
        )  # fmt: skip
    seen.setdefault(key, f"{document.file}:{document.line}")


def _line(document: Any, finding: Any) -> Line:
    from pumice.webhooks.files import resource_name

    steps = tuple(step.name if isinstance(step, Key) else step for step in finding.path)
    found = finding.found
    if isinstance(found, Shown):
        found = found.text
    elif found is OMITTED or found == "" or isinstance(found, Missing):
        found = None
    return Line(
        document.file,
        _at(document, steps),
        resource_name(document.content),
        path_text(finding.path) if finding.path else "",
        found,
        finding.wanted,
        finding.text.strip(),
    )


def _with_text(documents: list[Any], path: str) -> list[Any]:
    """Return the only object of a JSON file with its text: JSON is YAML too, and has lines."""
    if len(documents) == 1 and documents[0].node is None and not documents[0].text:
        return [documents[0]._replace(text=read_text(Path(path)), line=1)]
    return documents


def _at(document: Any, steps: tuple[str | int, ...]) -> int:
    """Return the line of a field, or of the nearest thing around it."""
    with suppress(ManifestError):  # JSON that is no YAML
        return int(document.line_of_field(steps) or document.line)
    return int(document.line)
