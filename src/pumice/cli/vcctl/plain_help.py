"""Help of the verbs as commands of `pumice`, in our words; `pumice vcctl` prints Volcano's."""

from collections.abc import Mapping
from typing import Final

_SUMMARIES: Final[Mapping[str, str]] = {
    "job delete": "Delete a job and its pods.",
    "job list": "List jobs.",
    "job resume": "Resume a job that was suspended.",
    "job run": "Run a job, described by a file or by options.",
    "job suspend": "Suspend a job: its pods end, and it can be resumed.",
    "job view": "Show a job with its tasks and events.",
    "pod list": "List the pods of jobs.",
    "queue create": "Create a queue.",
    "queue delete": "Delete a queue.",
    "queue get": "Show a queue.",
    "queue list": "List all queues.",
    "queue operate": "Open or close a queue, or change its weight.",
}
_CLUSTER: Final = "The cluster.  [default: $KUBECONFIG, a running 'pumice up', ~/.kube/config]"
_OPTIONS: Final[Mapping[str, tuple[str, str]]] = {
    "action": ("[open|close|update]", "What to do with the queue."),
    "all-namespaces": ("", "List those of all namespaces."),
    "file": ("FILE", "A YAML file with the objects."),
    "filename": ("FILE", "A YAML file with the job; other options are then not needed."),
    "format": ("[yaml|json]", "How to print it."),
    "image": ("IMAGE", "Image of its containers."),
    "job": ("NAME", "Only pods of this job."),
    "kubeconfig": ("FILE", _CLUSTER),
    "limits": ("AMOUNTS", "What each pod may use."),
    "master": ("URL", "Address of the cluster's API server."),
    "min": ("N", "How many pods must be able to start together."),
    "name": ("NAME", "Its name."),
    "namespace": ("NAME", "Its namespace."),
    "queue": ("NAME", "Only those of this queue."),
    "replicas": ("N", "How many pods it has."),
    "requests": ("AMOUNTS", "What each pod asks for."),
    "scheduler": ("NAME", "Only jobs of this scheduler."),
    "selector": ("TEXT", "Only jobs with this text in their name."),
    "state": ("[Open|Closed]", "Its state."),
    "weight": ("N", "Its weight among queues."),
}
_OF_VERBS: Final[Mapping[str, str]] = {
    "job run queue": "The queue to run in; 'default' if none is named.",
    "job run scheduler": "The scheduler that places its pods.",
    "job list namespace": "Only jobs of this namespace.",
    "pod list namespace": "Only pods of this namespace.",
    "queue operate weight": "Its new weight, for update.",
}


def summary_of(group: str, verb: str) -> str:
    """Describe a verb in one sentence."""
    kinds = {"jobflow": "job flow", "jobtemplate": "job template"}
    shown = {"get": "Show", "describe": "Print"}.get(verb, verb.capitalize())
    some = f"{kinds.get(group, group)}s" if verb == "list" else f"a {kinds.get(group, group)}"
    return _SUMMARIES.get(f"{group} {verb}") or f"{shown} {some}."


def option_help(group: str, verb: str, option: str) -> tuple[str, str]:
    """Return what stands for the value of an option, and its description."""
    value, text = _OPTIONS[option]
    return value, _OF_VERBS.get(f"{group} {verb} {option}", text)
