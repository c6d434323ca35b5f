"""`pumice pod`: the pods of jobs and queues."""

import re
from typing import Final

from pumice.api.annotations import GROUP_QUEUE, JOB_NAME, QUEUE_NAME
from pumice.api.kinds import Manifest
from pumice.cli.vcctl.columns import OUTPUTS, Column, PodRow, pod_row, show
from pumice.cli.vcctl.verbs import (
    PAST,
    Call,
    Flag,
    VerbError,
    VerbGroup,
    click_group,
    namespace_flag,
    verb,
)

_LABEL: Final = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LONGEST: Final = 63
_BAD_LABEL: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    "or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def _list(call: Call) -> None:
    pods = sorted(_chosen(call), key=lambda pod: (_namespace(pod), pod["metadata"]["name"]))
    now = call.cluster.now()
    rows = {id(pod): pod_row(pod, now) for pod in pods}

    def column(title: str, field: str, *, wide: bool = False) -> Column:
        return Column(title=title, value=lambda pod: getattr(rows[id(pod)], field), wide=wide)

    columns = [
        *([] if call.scope else [Column(title="Namespace", value=_namespace)]),
        *(column(title, field) for title, field in PodRow.COLUMNS),
        column("Node", "node", wide=True),
    ]
    show(call, pods, columns, gap=8, title_gap=2)


def _chosen(call: Call) -> list[Manifest]:
    """Return the pods of a job, else those of a queue, else those of all jobs."""
    job, queue = call.text("job"), call.text("queue")
    if job:
        _check_label(job)
        pods = call.listed("Pod", {JOB_NAME: job})
        if queue and any(_labels(pod).get(QUEUE_NAME, queue) != queue for pod in pods):
            raise VerbError(f"the input vcjob {job} does not match the queue {queue}")
        return pods
    pods = call.listed("Pod")
    if queue:
        return [
            pod
            for pod in pods
            if _labels(pod).get(QUEUE_NAME) == queue
            or (pod["metadata"].get("annotations") or {}).get(GROUP_QUEUE) == queue
        ]
    return [pod for pod in pods if JOB_NAME in _labels(pod)]


def _check_label(value: str) -> None:
    faults = []
    if len(value) > _LONGEST:
        faults.append(f"must be no more than {_LONGEST} characters")
    if not _LABEL.fullmatch(value):
        faults.append(_BAD_LABEL)
    if faults:
        raise VerbError(f'values[0][{JOB_NAME}]: Invalid value: "{value}": {"; ".join(faults)}')


def _labels(pod: Manifest) -> dict[str, str]:
    return pod["metadata"].get("labels") or {}


def _namespace(pod: Manifest) -> str:
    return str(pod["metadata"].get("namespace", ""))


POD: Final = VerbGroup(
    "pod",
    "vcctl command line operation pod",
    "List the pods of jobs and queues.",
    (
        verb(
            "list",
            "list pod information created by vcjob",
            _list,
            Flag("queue", "q", "list pod with specified queue name"),
            Flag("job", "j", "list pod with specified job name"),
            namespace_flag("pod"),
            Flag("all-namespaces", "", "list pods in all namespaces", default=False, kind="bool"),
            outputs=OUTPUTS,
            ours=PAST,
        ),
    ),
)
pod = click_group(POD)
