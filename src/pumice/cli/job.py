"""`pumice job`: run jobs, look at them, suspend, resume and delete them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pumice.api import kinds
from pumice.api.kinds import Manifest
from pumice.api.quantity import parse_quantity
from pumice.api.shown_text import shown_lines
from pumice.api.wording import value_of
from pumice.cli.vcctl.columns import (
    OUTPUTS,
    WRITTEN,
    Column,
    age,
    escape,
    go_time,
    print_objects,
    print_written,
    reference,
    show,
)
from pumice.cli.vcctl.documents import parse_manifest, read_one, read_text, shape
from pumice.cli.vcctl.verbs import (
    PAST,
    Call,
    Flag,
    VerbError,
    VerbGroup,
    canonical,
    click_group,
    name_flag,
    namespace_flag,
    order,
    parse_resources,
    verb,
)
from pumice.errors import InputError, ManifestError, Words

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


_TYPE: Final = "batch.Job"
_VERSION: Final = "batch.volcano.sh/v1alpha1"
_TYPE_LABEL: Final = "volcano.sh/job-type"
_AMOUNTS: Final = "cpu=1000m,memory=100Mi"


def _run(call: Call) -> None:
    if not (call.text("name") or call.text("filename")):
        raise VerbError("job name cannot be left blank")
    requests, limits = _resources(call, "requests"), _resources(call, "limits")
    if not call.exact and call.text("limits") == _AMOUNTS:
        limits = _at_least(limits, requests)
    file = call.text("filename")
    if file and call.text("name") and not call.exact:
        found = Words("both")
        raise InputError(wanted="a file or the name of a new job", found=found, field="-f, --name")
    job = _read_job(call, file) if file else _make_job(call, requests, limits)
    job |= {"apiVersion": _VERSION, "kind": "Job"}
    if call.options.get("queue"):
        job["spec"] = {**(job.get("spec") or {}), "queue": call.text("queue")}
    namespace = job["metadata"].setdefault("namespace", call.text("namespace"))
    if namespace != call.text("namespace"):
        raise _in_another_namespace(call, file, namespace)
    made = call.cluster.create(job)
    print_written(call, made, f"run job {made['metadata']['name']} successfully")


def _resources(call: Call, option: str) -> dict[str, str]:
    """Read the amounts of an option, such as ``cpu=1,memory=1Gi``."""
    text = call.text(option)
    if call.exact:
        return parse_resources(text)
    amounts = {}
    for statement in text.split(",") if text else ():
        name, _, value = statement.partition("=")
        if not name or not value:
            wanted = "a resource and its amount, such as cpu=2,memory=4Gi"
            raise InputError(wanted=wanted, found=statement, field=f"--{option}")
        with value_of(f"--{option} {name}"):
            parse_quantity(value)
        amounts[name] = canonical(value)
    return amounts


def _at_least(limits: dict[str, str], requests: dict[str, str]) -> dict[str, str]:
    """Raise limits that nobody stated to the requests: a cluster refuses lower ones."""
    return {
        name: max(limit, requests.get(name, limit), key=parse_quantity)
        for name, limit in limits.items()
    }


def _in_another_namespace(call: Call, file: str, namespace: str) -> Exception:
    if call.exact:
        return VerbError(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return ManifestError(
        wanted=f"'{call.text('namespace')}', the namespace of the command",
        found=namespace,
        file=file,
        field="metadata.namespace",
        hint=f"add --namespace {namespace}",
    )


def _read_job(call: Call, file: str) -> Manifest:
    return _read_as_the_original(file) if call.exact else read_one(file, kinds.JOB, _TYPE)


def _read_as_the_original(file: str) -> Manifest:
    if ".yaml" not in file and ".yml" not in file:
        raise VerbError("only support yaml file")
    try:
        text = read_text(file)
    except VerbError as error:
        raise VerbError(f"failed to read file, err: {error.message}") from None
    try:
        return parse_manifest(text, _TYPE)
    except VerbError as error:
        raise VerbError(f"failed to unmarshal file, err:  {error.message}") from None


def _make_job(call: Call, requests: dict[str, str], limits: dict[str, str]) -> Manifest:
    name = call.text("name")
    container = {
        "name": name,
        "image": call.text("image"),
        "resources": {"limits": limits, "requests": requests},
        "imagePullPolicy": "IfNotPresent",
    }
    task = {
        "replicas": call.options["replicas"],
        "template": {
            "metadata": {"name": name, "labels": {"job.volcano.sh": name}},
            "spec": {"containers": [container], "restartPolicy": "Never"},
        },
    }
    spec = {
        "schedulerName": call.text("scheduler"),
        "minAvailable": call.options["min"],
        "tasks": [task],
    }
    metadata = {"name": name, "namespace": call.text("namespace")}
    return shape({"metadata": metadata, "spec": spec}, _TYPE)


def _list(call: Call) -> None:
    wanted = {"queue": call.text("queue"), "schedulerName": call.text("scheduler")}
    jobs = [
        job
        for job in call.listed(kinds.JOB)
        if all(job["spec"].get(key, "") == text for key, text in wanted.items() if text)
        and call.text("selector") in job["metadata"]["name"]
    ]
    show(call, jobs, _columns(call), gap=3)


def _columns(call: Call) -> list[Column]:
    def status(title: str, key: str, width: int) -> Column:
        return Column(
            title=title, value=lambda job: (job.get("status") or {}).get(key, 0), width=width
        )

    def metadata(title: str, key: str) -> Column:
        return Column(title=title, value=lambda job: job["metadata"].get(key, ""))

    now = call.cluster.now()
    return [
        *([] if call.scope else [metadata("Namespace", "namespace")]),
        metadata("Name", "name"),
        Column(title="Creation", value=_creation, width=15),
        Column(title="Phase", value=_phase, width=12),
        Column(title="JobType", value=_job_type, width=12),
        Column(title="Replicas", value=_replicas, width=12),
        status("Min", "minAvailable", 6),
        status("Pending", "pending", 10),
        status("Running", "running", 10),
        status("Succeeded", "succeeded", 12),
        status("Failed", "failed", 10),
        status("Unknown", "unknown", 12),
        status("RetryCount", "retryCount", 10),
        Column(title="Queue", value=lambda job: job["spec"].get("queue", ""), wide=True),
        Column(title="Scheduler", value=lambda job: job["spec"].get("schedulerName"), wide=True),
        Column(
            title="Age",
            value=lambda job: age(job["metadata"].get("creationTimestamp"), now),
            wide=True,
        ),
    ]


def _creation(job: Manifest) -> str:
    return str(job["metadata"].get("creationTimestamp") or "0001-01-01")[:10]


def _phase(job: Manifest) -> str:
    return str(((job.get("status") or {}).get("state") or {}).get("phase", ""))


def _job_type(job: Manifest) -> str:
    return (job["metadata"].get("labels") or {}).get(_TYPE_LABEL) or "Batch"


def _replicas(job: Manifest) -> int:
    return sum(task.get("replicas") or 0 for task in job["spec"].get("tasks") or ())


def _view(call: Call) -> None:
    name, namespace = call.text("name"), call.text("namespace")
    if not name:
        raise VerbError(
            "job name (specified by --name or -N) is mandatory to view a particular job"
        )
    job = call.cluster.get(kinds.JOB, namespace, name)
    if call.output:
        print_objects(call, [job], single=True)
        return
    events = [
        event for event in call.listed("Event") if event["metadata"]["name"].startswith(f"{name}.")
    ]
    call.echo(job_view(job, events, call.cluster.now()))


def _order_by_name(call: Call, verb: str, action: str) -> None:
    if not call.text("name"):
        raise VerbError(f"job name is mandatory to {verb} a particular job")
    job = call.cluster.get(kinds.JOB, call.text("namespace"), call.text("name"))
    print_written(call, order(call, job, action, call.text("namespace")))


def _suspend(call: Call) -> None:
    _order_by_name(call, "suspend", "AbortJob")


def _resume(call: Call) -> None:
    _order_by_name(call, "resume", "ResumeJob")


def _delete(call: Call) -> None:
    name = call.text("name")
    if not name:
        raise VerbError("job name is mandatory to delete a particular job")
    namespace = call.text("namespace")
    call.cluster.delete(kinds.JOB, namespace, name)
    gone = reference(_VERSION, "Job", name, namespace)
    print_written(call, gone, f"delete job {name} successfully")


_NAMED: Final = (namespace_flag("job"), name_flag("job"))

JOB: Final = VerbGroup(
    "job",
    "vcctl command line operation job",
    "Run jobs, look at them, suspend, resume and delete them.",
    (
        verb("delete", "delete a job", _delete, *_NAMED, outputs=WRITTEN),
        verb(
            "list",
            "list job information",
            _list,
            Flag("queue", "q", "list job with specified queue name"),
            namespace_flag("job"),
            Flag("scheduler", "S", "list job with specified scheduler name"),
            Flag("all-namespaces", "", "list jobs in all namespaces", default=False, kind="bool"),
            Flag("selector", "", "fuzzy matching jobName"),
            outputs=OUTPUTS,
            ours=PAST,
        ),
        verb("resume", "resume a job", _resume, *_NAMED, outputs=WRITTEN),
        verb(
            "run",
            "run job by parameters from the command line",
            _run,
            Flag("image", "i", "the container image of job", "busybox"),
            *_NAMED,
            Flag("min", "m", "the minimal available tasks of job", 1, "int"),
            Flag("replicas", "r", "the total tasks of job", 1, "int"),
            Flag("requests", "R", "the resource request of the task", _AMOUNTS),
            Flag("limits", "L", "the resource limit of the task", _AMOUNTS),
            Flag("scheduler", "S", "the scheduler for this job", "volcano"),
            Flag("filename", "f", "the yaml file of job"),
            outputs=WRITTEN,
            ours=(Flag("queue", "q", "the queue of the job; 'default' if not stated"),),
        ),
        verb("suspend", "abort a job", _suspend, *_NAMED, outputs=WRITTEN),
        verb("view", "show job information", _view, *_NAMED, outputs=("json", "yaml")),
    ),
)
job = click_group(JOB)
