"""Files as a source of new objects: the objects that exist besides them, and their stored form.

Used by `pumice lint` and for questions about manifests that no cluster has seen.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from pumice.api.cloning import clone
from pumice.api.kinds import QUEUE, Manifest, kind_of
from pumice.api.schema.build import CHECKED_KINDS
from pumice.errors import ABSENT, ManifestError
from pumice.webhooks.admission_chain import KINDS, Chain, Verdict
from pumice.webhooks.fields import Key, Shown, Step, path_text
from pumice.webhooks.go_types import DecodeError, decode
from pumice.webhooks.job import count_replicas
from pumice.webhooks.registry import SERVICES
from pumice.webhooks.review import DEFAULT_JOB_REPLICAS, Finding, of_field, unreadable

_BARE_QUEUE: Final = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}
_QUEUE: Final = "scheduling.Queue"
_ALWAYS_THERE: Final = ("root", "default")
_MUTATING: Final = tuple(path for path, service in SERVICES.items() if service.mutating)


def is_checked(manifest: Any) -> bool:
    """Return whether there are rules for an object."""
    if not isinstance(manifest, dict):
        return False
    version, kind = manifest.get("apiVersion"), manifest.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        return False
    group = version.rpartition("/")[0]
    name = f"{kind}.{group}" if group else kind
    return name in CHECKED_KINDS or name == "Pod"


def _parent(queue: Manifest) -> str:
    return str(queue["spec"].get("parent", ""))


class Files:
    """The existing objects: the queues of the files, those named, and those that always exist."""

    def __init__(self, manifests: Iterable[Manifest], queues: Sequence[str] = ()) -> None:
        self._queues: dict[str, Manifest] = {}
        self._below: dict[str, dict[str, None]] = {}
        """Names of queues by their parent."""
        for name in (*_ALWAYS_THERE, *queues):
            self._put({**_BARE_QUEUE, "metadata": {"name": name}})
        for manifest in manifests:
            if is_checked(manifest) and kind_of(manifest) == QUEUE and name_of(manifest):
                self._put(manifest)

    def _put(self, manifest: Manifest) -> None:
        """Add a queue as it will be once it is open, without an unusable specification."""
        queue = clone(manifest)
        queue["status"] = {"state": "Open"}
        try:
            queue["spec"] = decode({"spec": queue.get("spec") or {}}, _QUEUE)["spec"]
        except DecodeError:
            queue["spec"] = {}
        name = name_of(queue)
        old = self._queues.get(name)
        if old is not None and _parent(old) != _parent(queue):
            del self._below[_parent(old)][name]
        self._queues[name] = queue
        self._below.setdefault(_parent(queue), {})[name] = None

    def queue(self, name: str) -> Manifest | None:
        """Return a queue."""
        return self._queues.get(name)

    def queues(self) -> Iterable[Manifest]:
        """Return all queues."""
        return self._queues.values()

    def below(self, name: str) -> list[Manifest]:
        """Return the queues directly below one."""
        return [self._queues[each] for each in self._below.get(name, ())]

    def namespace(self, name: str) -> Manifest | None:
        """Return a namespace; without a cluster all of them exist."""
        return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}

    def find(self, kind: str, namespace: str, name: str) -> Manifest | None:
        """Return nothing: every object is new."""
        del kind, namespace, name
        return None


def stored_job(job: Manifest, *, source: str = "") -> Manifest:
    """Return a new Volcano job as a cluster stores it: defaults of schema and webhook filled in.

    A status stays, since a job may come from a cluster.

    Raises:
        ManifestError: it does not fit its schema, or asks for more pods than admission allows by
            default; ``source`` is the file and line to name.
    """
    verdict = Chain(Files(()), paths=_MUTATING).judge("CREATE", job)
    if not verdict.allowed:
        first = next(refusals(job, verdict))
        path = tuple(step.name if isinstance(step, Key) else step for step in first.path)
        raise ManifestError(
            wanted=first.wanted or first.text,
            found=value_at(job, path) if path else ABSENT,
            field=path_text(first.path) if path else "",
            file=source,
            subject=resource_name(job),
            path=path,
        )
    found: Manifest = verdict.object
    pods = count_replicas(found["spec"])
    if pods > DEFAULT_JOB_REPLICAS:
        raise ManifestError(
            wanted=f"at most {DEFAULT_JOB_REPLICAS:,} pods of a job",
            found=pods,
            field="spec.tasks.replicas",
            file=source,
            subject=resource_name(job),
            path=("spec", "tasks"),
        )
    return {**found, "status": job["status"]} if job.get("status") else found


def refusals(job: Manifest, verdict: Verdict) -> Iterator[Finding]:
    """Yield what is wrong with a refused object, its outermost parts first."""
    for part in ("metadata", "spec"):
        if not isinstance(job.get(part), dict) and (part == "spec" or job.get(part) is not None):
            yield Finding("", (part,), wanted="an object")
    yield from misread_metadata(job)
    yield from map(of_field, verdict.errors)
    for call in verdict.calls:
        yield from call.answer.findings
    yield Finding(verdict.message)


def misread_metadata(manifest: Manifest) -> Iterator[Finding]:
    """Yield a value of the wrong type in the metadata of an object, if there is one."""
    try:
        decode(manifest.get("metadata") or {}, "meta.ObjectMeta")
    except DecodeError as error:
        read = unreadable(error).findings[0]
        yield Finding(read.text, ("metadata", *read.path), read.found, read.wanted)


def missing_spec(manifest: Manifest) -> Iterator[Finding]:
    """Yield that an object states nothing, if it does: admission has nothing to complete then."""
    if manifest.get("spec") is None:
        found = Shown("null") if "spec" in manifest else None
        yield Finding("spec: Required value", ("spec",), found, "an object")


def value_at(manifest: Any, path: Sequence[Step]) -> Any:
    """Return the value that a path leads to, ABSENT if there is none."""
    value = manifest
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step, ABSENT)
        elif isinstance(value, list) and isinstance(step, int):
            value = value[step]
        else:
            return ABSENT
    return value


def name_of(manifest: Manifest) -> str:
    """Name an object that may not be well formed."""
    metadata = manifest.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else ""


def resource_name(manifest: Manifest) -> str:
    """Name an object, which may not be well formed: ``Job default/train``."""
    kind = KINDS.get(kind_of(manifest)) if "apiVersion" in manifest else None
    name = name_of(manifest)
    if kind is None or not kind.namespaced:
        return f"{manifest['kind']} {name}".strip()
    metadata = manifest.get("metadata")
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else ""
    return f"{manifest['kind']} {namespace or 'default'}/{name}"
