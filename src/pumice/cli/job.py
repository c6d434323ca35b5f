"""`pumice job`: run jobs, look at them, suspend, resume and delete them."""

from typing import Final

from pumice.api import kinds
from pumice.api.kinds import Manifest
from pumice.api.quantity import parse_quantity
from pumice.api.wording import value_of
from pumice.cli.vcctl.click_verbs import click_group
from pumice.cli.vcctl.columns import (
    OUTPUTS,
    WRITTEN,
    Column,
    age,
    print_objects,
    print_written,
    reference,
    show,
)
from pumice.cli.vcctl.documents import parse_manifest, read_text, shape
from pumice.cli.vcctl.job_view import job_view
from pumice.cli.vcctl.kind_files import read_one
from pumice.cli.vcctl.verbs import (
    Call,
    Flag,
    VerbError,
    VerbGroup,
    canonical,
    name_flag,
    namespace_flag,
    order,
    parse_resources,
    verb,
)
from pumice.errors import InputError, ManifestError, Words

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
