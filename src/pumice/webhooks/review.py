"""Requests and answers of a webhook, and patches as an API server applies them.

A rule is a pure function of the request, of what else exists (``Existing``) and of the options.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, Protocol

import msgspec

from pumice.api.cloning import clone
from pumice.api.kinds import Manifest
from pumice.webhooks.cpu_budget import check_cpu
from pumice.webhooks.fields import FieldError, Key, Step, Words, wanted_of
from pumice.webhooks.go_types import DecodeError
from pumice.webhooks.plain_words import plain_type

Operation = Literal["CREATE", "UPDATE", "DELETE"]
Patch = list[dict[str, Any]]
"""Changes in the form of RFC 6902."""
DEFAULT_QUEUE_DEPTH: Final = 5
DEFAULT_JOB_REPLICAS: Final = 100_000
LONGEST_MESSAGE: Final = 64 * 1024
"""Length at which a message about faults is cut."""
_CUT: Final = " ... (there is more)"


class Existing(Protocol):
    """The other objects: a webhook reads queues and namespaces only."""

    def queue(self, name: str) -> Manifest | None:
        """Return a queue, None if there is none."""

    def queues(self) -> Iterable[Manifest]:
        """Return all queues."""

    def below(self, name: str) -> list[Manifest]:
        """Return the queues directly below one."""

    def namespace(self, name: str) -> Manifest | None:
        """Return a namespace, None if there is none."""


def children_of(name: str, queues: Iterable[Manifest]) -> list[Manifest]:
    """Return those of some queues that are directly below one."""
    return [one for one in queues if (one.get("spec") or {}).get("parent") == name]


class ResourceGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Pods of a namespace or with an annotation, and their settings."""

    name: str = ""
    key: str = ""
    values: tuple[str, ...] = ()
    scheduler_name: str = ""
    tolerations: tuple[Mapping[str, Any], ...] = ()
    labels: Mapping[str, str] = msgspec.field(default_factory=dict)
    affinity: str = ""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the webhooks that change a decision."""

    scheduler_names: tuple[str, ...] = ("volcano",)
    resource_groups: tuple[ResourceGroup, ...] | None = None
    """None: no such configuration, and pods stay unchanged."""
    max_queue_depth: int = DEFAULT_QUEUE_DEPTH
    max_job_replicas: int = DEFAULT_JOB_REPLICAS
    """Pods that the tasks of one job may ask for together; 0: any number."""
    check_allocated_pods: bool = False
    protect_root_queue: bool = True
    gate_pods: bool = False


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One object to be written or deleted."""

    operation: str
    """CREATE, UPDATE or DELETE; others are refused."""
    object: Any = None
    old: Any = None
    namespace: str = ""
    name: str = ""


class Finding(msgspec.Struct, frozen=True):
    """Something wrong: the piece of the message as Volcano writes it, and where it comes from."""

    text: str
    path: tuple[Step | Key, ...] = ()
    found: Any = None
    wanted: str = ""
    beside: str = ""
    """Fields of this name, beside it or below, that it was compared with: their faults cause it."""


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Whether the object is allowed, and why not."""

    message: str = ""
    """Empty: it is allowed."""
    patch: Patch | None = None
    findings: tuple[Finding, ...] = ()

    @property
    def allowed(self) -> bool:
        """Whether the object is allowed."""
        return not self.message


Rule = Callable[[Request, Existing, Options], Answer]
"""Answers a request; raises DecodeError for an object that does not fit its type."""


def of_field(error: FieldError) -> Finding:
    """Make a finding of one in Kubernetes' words."""
    found = Words(error.value) if error.fault == "Wrong type" else error.value
    return Finding(str(error), error.path, found, wanted_of(error))


def unreadable(error: DecodeError) -> Answer:
    """Refuse an object that does not fit its type."""
    wanted = plain_type(error.wanted, error.found, error.shape) if error.wanted else ""
    finding = Finding(str(error), error.path, Words(error.found) if error.found else None, wanted)
    return Answer(message=str(error), findings=(finding,))


def denied(findings: Iterable[Finding], message: str = "") -> Answer:
    """Answer with the findings; without any, allow."""
    found = tuple(findings)
    return Answer(message=message or "".join(one.text for one in found).strip(), findings=found)


def within_length(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings up to the length of a message; others are not computed.

    So a message about many long names costs no more than its input.
    """
    kept: list[Finding] = []
    length = 0
    for one in findings:
        check_cpu()
        kept.append(one)
        length += len(one.text)
        if length > LONGEST_MESSAGE:
            break
    return kept


def cut(message: str) -> str:
    """Shorten a message to the allowed length."""
    return message if len(message) <= LONGEST_MESSAGE else message[:LONGEST_MESSAGE] + _CUT


def wrap32(number: int) -> int:
    """Wrap a number to a signed one of 32 bits."""
    return (number + 2**31) % 2**32 - 2**31


def read_groups(content: Any) -> tuple[ResourceGroup, ...]:
    """Read a YAML file; values of the wrong type are left out."""
    listed = content.get("resourceGroups") if isinstance(content, dict) else None
    return tuple(_group(one) for one in listed or () if isinstance(one, dict))


def _group(given: dict[str, Any]) -> ResourceGroup:
    chosen = given.get("object")
    chosen = chosen if isinstance(chosen, dict) else {}
    labels = given.get("labels")
    return ResourceGroup(
        name=str(given.get("resourceGroup") or ""),
        key=str(chosen.get("key") or ""),
        values=tuple(str(value) for value in chosen.get("value") or ()),
        scheduler_name=str(given.get("schedulerName") or ""),
        tolerations=tuple(
            _toleration(one) for one in given.get("tolerations") or () if isinstance(one, dict)
        ),
        labels={str(k): str(v) for k, v in labels.items()} if isinstance(labels, dict) else {},
        affinity=str(given.get("affinity") or ""),
    )


def _toleration(given: dict[str, Any]) -> dict[str, Any]:
    order = ("key", "operator", "value", "effect", "tolerationSeconds")
    return {name: given[name] for name in order if given.get(name) not in (None, "")}


class PatchError(ValueError):
    """A patch that does not apply; the message is the API server's."""


def applied(document: Any, patch: Patch) -> Any:
    """Return a changed copy of a document.

    Raises:
        PatchError: the place of a change does not exist.
    """
    changed = clone(document)
    for change in patch:
        _apply(changed, change)
    return changed


def _apply(document: Any, change: dict[str, Any]) -> None:
    steps = [step.replace("~1", "/").replace("~0", "~") for step in change["path"].split("/")[1:]]
    holder = document
    for step in steps[:-1]:
        holder = holder.get(step) if isinstance(holder, dict) else _item(holder, step)
        if holder is None:
            text = f'doc is missing path: "{change["path"]}": missing value'
            raise PatchError(f"{change['op']} operation does not apply: {text}")
    last, value = steps[-1], clone(change.get("value"))
    if isinstance(holder, list):
        holder.insert(len(holder) if last == "-" else int(last), value)
    elif change["op"] == "replace" and last not in holder:
        text = f"doc is missing key: {change['path']}: missing value"
        raise PatchError(f"replace operation does not apply: {text}")
    else:
        holder[last] = value


def _item(holder: Any, step: str) -> Any:
    if isinstance(holder, list) and step.isascii() and step.isdecimal() and int(step) < len(holder):
        return holder[int(step)]
    return None
