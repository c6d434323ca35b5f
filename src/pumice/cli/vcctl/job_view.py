"""The describe-like view of one job, line for line as the original prints it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.api.shown_text import shown_lines
from pumice.cli.vcctl.columns import age, escape, go_time
from pumice.cli.vcctl.verbs import canonical

_ANNOTATIONS: Final = (
    ("Cri . Cci . Io / Container - Type:          ", "cri.cci.io/container-type"),
    ("Kubernetes . Io / Availablezone:            ", "kubernetes.io/availablezone"),
    ("Network . Alpha . Kubernetes . Io / Network:", "network.alpha.kubernetes.io/network"),
)
_COUNTS: Final = (
    ("Succeeded:    ", "succeeded"),
    ("Pending:      ", "pending"),
    ("Running:      ", "running"),
    ("Failed:       ", "failed"),
    ("Terminating:  ", "terminating"),
    ("Unknown:      ", "unknown"),
    ("RetryCount:   ", "retryCount"),
    ("Min Available:", "minAvailable"),
    ("Version:      ", "version"),
)
_EVENT: Final = "{:<15}\t{:<40}\t{:<30}\t{:<40}\t{}"

Line = tuple[int, str]
"""How deep a line is indented, and its text."""


def job_view(job: Manifest, events: Sequence[Manifest], now: float) -> str:
    """Describe a job and what happened to it."""
    lines = [*_head(job), *_spec(job.get("spec") or {}), *_status(job.get("status") or {})]
    return "".join(f"{'  ' * depth}{_line(text)}\n" for depth, text in lines) + _events(events, now)


def _line(text: str) -> str:
    """Write one line; the tabs are those of the layout."""
    return shown_lines(text).replace("\n", "\\n")


def _head(job: Manifest) -> Iterator[Line]:
    metadata = job["metadata"]
    yield 0, f"Name:       \t{metadata['name']}"
    yield 0, f"Namespace:  \t{metadata.get('namespace', '')}"
    yield 0, f"Labels:     \t{_mapping(metadata.get('labels'))}"
    yield 0, f"Annotations:\t{_mapping(metadata.get('annotations'))}"
    yield 0, "API Version:\t"  # the original loses both on its way
    yield 0, "Kind:       \t"
    yield 0, "Metadata:"
    yield 1, f"Creation Timestamp:\t{go_time(metadata.get('creationTimestamp'))}"
    yield 1, f"Generate Name:     \t{metadata.get('generateName', '')}"
    yield 1, f"Generation:        \t{metadata.get('generation', 0)}"
    yield 1, f"Resource Version:  \t{metadata.get('resourceVersion', '')}"
    yield 1, f"UID:               \t{metadata.get('uid', '')}"


def _spec(spec: Mapping[str, Any]) -> Iterator[Line]:
    plugins = spec.get("plugins") or {}
    yield 0, "Spec:"
    yield 1, f"Min Available:     \t{spec.get('minAvailable', 0)}"
    yield 1, "Plugins:"
    for plugin in ("env", "ssh"):
        yield 2, f"{plugin.capitalize()}:\t[{' '.join(plugins.get(plugin) or ())}]"
    yield 1, f"Scheduler Name:    \t{spec.get('schedulerName', '')}"
    yield 1, "Tasks:"
    for task in spec.get("tasks") or ():
        yield from _task(task)


def _task(task: Mapping[str, Any]) -> Iterator[Line]:
    template = task.get("template") or {}
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    yield 2, f"Name:\t{task.get('name', '')}"
    yield 2, f"Replicas:\t{task.get('replicas', 0)}"
    yield 2, "Template:"
    yield 3, "Metadata:"
    yield 4, "Annotations:"
    for title, key in _ANNOTATIONS:
        yield 5, f"{title}\t{annotations.get(key, '')}"
    yield 4, f"Creation Timestamp:\t{go_time(metadata.get('creationTimestamp'))}"
    yield 3, "Spec:"
    yield 4, "Containers:"
    for container in spec.get("containers") or ():
        yield from _container(container)
    yield 4, "Image Pull Secrets:"
    for secret in spec.get("imagePullSecrets") or ():
        yield 5, f"Name:     \t{secret.get('name', '')}"
    yield 4, f"Restart Policy:   \t{spec.get('restartPolicy', '')}"


def _container(container: Mapping[str, Any]) -> Iterator[Line]:
    yield 5, "Command:"
    for word in container.get("command") or ():
        yield 6, str(word)
    yield 5, f"Image:\t{container.get('image', '')}"
    yield 5, f"Name: \t{container.get('name', '')}"
    yield 5, "Ports:"
    for port in container.get("ports") or ():
        yield 6, f"Container Port:\t{port.get('containerPort', 0)}"
        yield 6, f"Name:          \t{port.get('name', '')}"
    resources = container.get("resources") or {}
    yield 5, "Resources:"
    for title, key in (("Limits:", "limits"), ("Requests:", "requests")):
        amounts = resources.get(key) or {}
        yield 6, title
        yield 7, f"Cpu:   \t{canonical(amounts.get('cpu', 0))}"
        yield 7, f"Memory:\t{canonical(amounts.get('memory', 0))}"
    yield 6, f"Working Dir:\t{container.get('workingDir', '')}"


def _status(status: Mapping[str, Any]) -> Iterator[Line]:
    yield 0, "Status:"
    for title, key in _COUNTS:
        if status.get(key, 0) > 0:
            yield 1, f"{title}\t{status[key]}"
    yield 1, "State:"
    yield 2, f"Phase:\t{(status.get('state') or {}).get('phase', '')}"
    if controlled := status.get("controlledResources"):
        yield 1, "Controlled Resources:"
        for key, value in sorted(controlled.items()):
            yield 2, f"{key}: \t{value}"
    if conditions := status.get("conditions"):
        yield 1, "Conditions:"
        yield 2, "Status\tTransitionTime"
        for condition in conditions:
            moment = condition.get("lastTransitionTime")
            yield 2, f"{condition['status']} \t{go_time(moment) if moment else '<nil>'} "


def _events(events: Sequence[Manifest], now: float) -> str:
    if not events:
        return "Events: \t<none>\n"
    dashes = _EVENT.format(*["-------"] * 5)
    head = _EVENT.format("Type", "Reason", "Age", "Form", "Message")
    lines = (head, dashes, *(_line(_event(event, now)) for event in events))
    return "Events:\n" + "".join(f"{line}\n" for line in lines)


def _event(event: Manifest, now: float) -> str:
    shown = age(event.get("firstTimestamp"), now, whole_years=False)
    if (event.get("count") or 0) > 1:
        last = age(event.get("lastTimestamp"), now, whole_years=False)
        shown = f"{last} (x{event['count']} over {shown})"
    source = event.get("source") or {}
    origin = ", ".join(filter(None, (source.get("component", ""), source.get("host", ""))))
    return _EVENT.format(
        event.get("type", ""),
        event.get("reason", ""),
        shown,
        origin,
        str(event.get("message", "")).strip(),
    )


def _mapping(texts: Mapping[str, str] | None) -> str:
    if not texts:
        return "<none>"
    compact = json.dumps(texts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return escape(compact)
