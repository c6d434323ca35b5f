"""The rules of admission for files: everything that is wrong, without a cluster.

An API server stops at the first refusal; here an object passes as many checks as possible, so
that all faults are reported at once.  The pods of a valid job are checked too: a cluster
would accept the job and refuse its pods.  Used by `pumice lint`.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from pumice.api.cloning import clone
from pumice.api.kinds import JOB, QUEUE, Manifest, kind_of
from pumice.api.schema.build import Node, schema_of
from pumice.api.wording import nearest
from pumice.controllers.job.objects import expand
from pumice.controllers.job.state import replicas_of
from pumice.controllers.view import ManifestView
from pumice.webhooks.admission_chain import Chain, Verdict
from pumice.webhooks.fields import Key, Mistyped, Shown, Step, Words, path_text
from pumice.webhooks.files import Files, is_checked, misread_metadata, missing_spec, name_of
from pumice.webhooks.queue import check_children
from pumice.webhooks.registry import SERVICES
from pumice.webhooks.review import Finding, Options, Request, of_field
from pumice.webhooks.schemas import UNCHECKED

_UID: Final = "00000000-0000-0000-0000-000000000000"  # as assigned by a cluster
_MOST_MISREAD: Final = 20  # reported values of the wrong type in one object
Path = tuple[Step | Key, ...]


def lint_object(manifest: Manifest, files: Files, options: Options | None = None) -> list[Finding]:
    """Find all that is wrong with an object."""
    settings, given = options or Options(), clone(manifest)
    found: list[Finding] = []
    for _ in range(_MOST_MISREAD):
        verdict = Chain(files, settings).judge("CREATE", given)
        misread = _misread(verdict)
        if misread is None or not _dropped(given, misread.path):
            break
        found.append(misread)
    else:
        return found
    if (verdict.source, verdict.code) != ("builtin", 400):  # else no field was checked
        found += _unknown(manifest, verdict)
    found += [of_field(error) for error in verdict.errors if error.detail != UNCHECKED]
    for call in verdict.calls:
        found += call.answer.findings
    if verdict.errors:
        found += _beyond_schema(verdict, files, settings)
    queue = files.queue(name_of(manifest)) if kind_of(manifest) == QUEUE else None
    if queue is not None:
        found += check_children(queue, files)
    if not verdict.allowed and not found:
        reasons = (*misread_metadata(manifest), *missing_spec(manifest), Finding(verdict.message))
        found.append(reasons[0])
    if verdict.allowed and kind_of(manifest) == JOB:
        found += _refused_pods(verdict.object, files, settings)
    return [_as_written(one, manifest) for one in _once(_of_the_file(found, manifest))]


def _as_written(finding: Finding, manifest: Manifest) -> Finding:
    """Show a value of the wrong type itself: the messages of Kubernetes name its type only."""
    if not isinstance(finding.found, Words) or not _has(manifest, finding.path):
        return finding
    value: Any = manifest
    for step in finding.path:
        value = value[step.name if isinstance(step, Key) else step]
    if isinstance(value, str):
        return replace(finding, found=value if value == finding.found else Mistyped(value))
    return replace(finding, found=Shown("null") if value is None else value)


def _of_the_file(found: list[Finding], manifest: Manifest) -> list[Finding]:
    """Leave out numbers that admission filled in from a field that is refused itself."""
    written = [one for one in found if _has(manifest, one.path)]
    return [one for one in found if one in written or not (written and isinstance(one.found, int))]


def _has(manifest: Any, path: Path) -> bool:
    """Return whether a field is written in a manifest."""
    for step in path:
        name = step.name if isinstance(step, Key) else step
        known = range(len(manifest)) if isinstance(manifest, list) else manifest
        if not isinstance(known, range | dict) or name not in known:
            return False
        manifest = manifest[name]
    return True


def _refused_pods(job: Manifest, files: Files, options: Options) -> Iterator[Finding]:
    """Yield why an API server would refuse the pods of a job; the last pod has the longest name."""
    created = {**job, "metadata": {**job["metadata"], "uid": _UID}}
    expansion = expand(created, ManifestView(files.queues()))
    for number, task in enumerate(expansion.tasks):
        if not replicas_of(task):
            continue
        pod = expansion.pod(task, replicas_of(task) - 1)
        for error in Chain(files, options, ()).judge("CREATE", pod).errors:
            found, path = of_field(error), ("spec", "tasks", number, "template", *error.path)
            wanted = f"{found.wanted} (in pod {name_of(pod)})"
            yield Finding(f"pod {name_of(pod)}: {found.text}", path, found.found, wanted)


def _misread(verdict: Verdict) -> Finding | None:
    """Return a value of the wrong type, after which nothing else was checked."""
    if verdict.misread is not None:
        return verdict.misread
    last = verdict.calls[-1].answer.findings if verdict.calls else ()
    return last[0] if len(last) == 1 and isinstance(last[0].found, Words) else None


def _dropped(manifest: Any, path: Path) -> bool:
    """Remove a value, so that the rest can be checked; return whether that was possible."""
    holder = manifest
    for step in path[:-1]:
        inside = isinstance(holder, list) if isinstance(step, int) else isinstance(holder, dict)
        holder = holder[step] if inside and not isinstance(step, Key) else None
    if isinstance(holder, dict) and path and path[-1] in holder:
        del holder[path[-1]]
        return True
    if isinstance(holder, list) and path and isinstance(path[-1], int):
        holder.pop(path[-1])
        return True
    return False


def _beyond_schema(verdict: Verdict, files: Files, options: Options) -> Iterator[Finding]:
    """Run the validating webhook although the schema refused; without the same fields."""
    refused = [(tuple(error.path), error.value) for error in verdict.errors]
    kind = kind_of(verdict.object)
    for service in SERVICES.values():
        if service.kind != kind or service.mutating:
            continue
        request = Request(operation="CREATE", object=verdict.object, name=name_of(verdict.object))
        for finding in service.answer(request, files, options).findings:
            if not any(_repeats(finding, path, value) for path, value in refused):
                yield finding


def _repeats(finding: Finding, path: Path, value: Any) -> bool:
    """Return whether a finding is about a field that was refused, or its value where it stands."""
    if finding.path[: len(path)] == path:
        return True
    return path[: len(finding.path)] == finding.path and finding.found == value


def _once(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Leave out repeated findings, and those that follow from the fault of another field."""
    seen: set[tuple[str, str, str]] = set()
    misread: list[Path] = []
    paths = [one.path for one in findings]
    for one in findings:
        key = (path_text(one.path), repr(one.found), one.wanted)
        if key in seen or any(one.path[: len(path)] == path for path in misread):
            continue
        if one.beside and any(_is_beside(one, path) for path in paths):
            continue
        seen.add(key)
        if isinstance(one.found, Words):
            misread.append(one.path)
        yield one


def _is_beside(finding: Finding, path: Path) -> bool:
    """Return whether a path is that of a field with which the value of a finding was compared."""
    around = finding.path[:-1]
    return path[-1:] == (finding.beside,) and path[: len(around)] == around


def _unknown(manifest: Manifest, verdict: Verdict) -> Iterator[Finding]:
    """Yield fields that the schema does not know, with the nearest known one."""
    kind = kind_of(manifest) if is_checked(manifest) else ""
    for warning in verdict.warnings:
        if not warning.startswith("unknown field "):
            continue
        text = warning.removeprefix('unknown field "').removesuffix('"')
        path = _steps(text)
        near = _nearest(path, schema_of(kind))
        hint = f"; did you mean {near}?" if near else ""
        yield Finding(f"{warning}{hint}", path, None, "")


def _steps(text: str) -> tuple[Step, ...]:
    steps: list[Step] = []
    for part in text.split("."):
        name, *indices = part.split("[")
        steps.append(name)
        numbers = (index.rstrip("]") for index in indices)
        steps += [int(number) for number in numbers if number.isdecimal() and len(number) < 10]
    return tuple(steps)


def _nearest(path: tuple[Step, ...], node: Node | None) -> str:
    """Find the known field that is spelt most like an unknown one."""
    for step in path[:-1]:
        if node is None:
            return ""
        if isinstance(step, int):
            node = node.items
        else:
            node = (node.properties or {}).get(step) or node.values
    if node is None or not node.properties:
        return ""
    return nearest(str(path[-1]), node.properties) or ""
