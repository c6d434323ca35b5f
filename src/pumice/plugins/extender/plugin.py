"""The extender plugin itself: hooks become calls, answers become votes.

It uses a client that the session provides under the service name "extender".
"""

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pumice.api.codes import Cause
from pumice.api.frozen_json import FrozenJson
from pumice.core.resources import Column, Mask
from pumice.core.snapshot import Snapshot
from pumice.core.views import Job, Nodes, Queue, Task
from pumice.errors import ABSENT, ExtenderError, InputError
from pumice.framework.arguments import Duration, Fault, arg, dump_arguments
from pumice.framework.plugin import ABSTAIN, PERMIT, REJECT, Codes, Plugin, Reason
from pumice.framework.plugin_session import PluginSession
from pumice.plugins.extender.answers import (
    A,
    Fit,
    Handled,
    IgnoredAnswer,
    Overused,
    Ready,
    Scores,
    Victims,
    Vote,
    read_answer,
)
from pumice.plugins.extender.payloads import (
    NodePayloads,
    job_info,
    queue_info,
    session_info,
    task_info,
)

log = logging.getLogger(__name__)

SERVICE = "extender"
_FAILED, _CURABLE, _FINAL = 1, 2, 3
_UNSCHEDULABLE = 2
"""The code of an answer for a node that evictions might open."""
_PATIENCE = 3
"""Failed calls in a row after which the service is not called in a session any more."""


class ExtenderClient(Protocol):
    """The plugin's interface to a connection."""

    def post(self, verb: str, payload: Any, *, answer: bool = True) -> Mapping[str, Any]:
        """Send a payload and return the answer; raise ExtenderError if there is none."""
        ...


def _verb(name: str, doc: str) -> Any:
    return arg(f"extender.{name}Verb", default="", doc=f"path called {doc}")


@dataclass(kw_only=True)
class Extender(Plugin, name="extender"):
    """Call an HTTP service to filter and score nodes, vote on jobs and queues, and name victims."""

    by_row = False
    reasons = (
        Reason("the extender failed", curable=False, code=Cause.EXTENDER_REFUSED, lasting=False),
        Reason("refused by the extender", code=Cause.EXTENDER_REFUSED),
        Reason("refused by the extender for good", curable=False, code=Cause.EXTENDER_REFUSED),
    )
    url_prefix: str = arg("extender.urlPrefix", default="", doc="address of the service")
    timeout: Duration = arg(
        "extender.httpTimeout", default=Duration(1.0), doc="limit of a call; 0s for ten minutes"
    )
    ignorable: bool = arg("extender.ignorable", default=False, doc="ignore its failures")
    managed: list[str] = arg(
        "extender.managedResources",
        default_factory=list,
        doc="ask only about pods that name one of these; default: about all",
    )
    one_answer: bool = arg(
        "extender.oneAnswerPerShape",
        default=False,
        doc="ask once for pods that differ only in name, job and age; not in Volcano",
    )
    open_verb: str = _verb("onSessionOpen", "when a session opens")
    close_verb: str = _verb("onSessionClose", "when a session closes")
    predicate_verb: str = _verb("predicate", "to decide whether a node fits a task")
    prioritize_verb: str = _verb("prioritize", "to score nodes for a task")
    preemptable_verb: str = _verb("preemptable", "to choose victims for a task of their queue")
    reclaimable_verb: str = _verb("reclaimable", "to choose victims for another queue")
    overused_verb: str = _verb("queueOverused", "to decide whether a queue must wait")
    enqueueable_verb: str = _verb(
        "jobEnqueueable", "to decide whether a job is admitted to its queue"
    )
    enqueued_verb: str = _verb("jobEnqueued", "when a job was admitted to its queue")
    ready_verb: str = _verb("jobReady", "to decide whether a job can start")
    allocate_verb: str = _verb("allocateFunc", "when a task gets a node")
    deallocate_verb: str = _verb("deallocateFunc", "when a task loses its node")

    def faults(self) -> Iterator[Fault]:
        """Refuse verbs without an address; without verbs the plugin does nothing."""
        if not self.url_prefix:
            key, wanted = "extender.urlPrefix", "the address of the service"
            yield Fault(key, wanted, ABSENT, severity="error" if self._has_verbs else "ignored")

    @property
    def _has_verbs(self) -> bool:
        return any(key.endswith("Verb") and value for key, value in dump_arguments(self).items())

    def on_open(self, ssn: PluginSession) -> None:
        """Connect and send the initial state of the session to the service.

        If that fails and failures count, the service is left out of this session.
        """
        self._journal = ssn.journal
        self._snapshot = ssn.snapshot
        self._nodes = NodePayloads(ssn.snapshot)
        self._failures = 0
        self._error = ""
        self._words: dict[str, None] = {}
        self._open = True
        self._client = self._connect(ssn)
        if self.open_verb:
            payload = session_info(ssn.snapshot, ssn.jobs())
            opened = self._ask(self.open_verb, payload, IgnoredAnswer, answer=False)
            self._open = opened is not None or self.ignorable

    def _connect(self, ssn: PluginSession) -> ExtenderClient | None:
        """Take the client of earlier sessions if there is one."""
        factory: Callable[[str, float], ExtenderClient] | None = ssn.services.get(SERVICE)
        known: dict[Hashable, ExtenderClient] = ssn.memory.setdefault(self.name, {})
        key = (self.url_prefix, self.timeout)
        if key not in known and factory is not None:
            known[key] = factory(*key)
        return known.get(key)

    def _ask(self, verb: str, payload: Any, kind: type[A], *, answer: bool = True) -> A | None:
        """Call the service and read its answer; None if that failed."""
        if self._client is None or self._failures >= _PATIENCE:
            return None
        try:
            found = read_answer(self._client.post(verb, payload, answer=answer), kind)
        except (ExtenderError, InputError) as error:
            self._failures += 1
            self._error = str(error)
            log.warning("verb %s: %s", verb, error)
            return None
        self._failures = 0
        return found

    def _minds(self, verb: str, task: Task | None = None) -> bool:
        """Return whether a verb is configured and the service handles a task."""
        if not verb or not self._open:
            return False
        return task is None or not self.managed or self._is_managed(task)

    def _is_managed(self, task: Task) -> bool:
        spec, managed = task.shape.spec, set(self.managed)
        parts = [container.resources for container in (*spec.containers, *spec.init_containers)]
        return any(not managed.isdisjoint({*part.requests, *part.limits}) for part in parts)

    def vary_by(self, task: Task) -> Hashable:
        """Ask about each task, since the service sees more than its shape, unless configured.

        Then tasks may differ only in name, job and age.
        """
        if not self._minds(self.predicate_verb, task):
            return None
        if not self.one_answer:
            return task.row
        return int(self._snapshot.tasks.label_class[task.row]), task.role

    def filter_nodes(self, task: Task, nodes: Nodes) -> Codes | None:
        """Ask node by node."""
        if not self._minds(self.predicate_verb, task):
            return None
        about = FrozenJson(task_info(self._snapshot, task.row))
        sent = self._nodes.of(nodes.index.tolist())
        return np.array([self._test(about, node) for node in sent], dtype=np.int16)

    def _test(self, task: FrozenJson, node: FrozenJson) -> int:
        found = self._ask(self.predicate_verb, {"task": task, "node": node}, Fit)
        if found is None:
            return 0 if self.ignorable else _FAILED
        if not found.status:
            return 0
        self._words[found.status] = None
        return _CURABLE if found.code == _UNSCHEDULABLE else _FINAL

    def own_words(self) -> list[str]:
        """Return the service's messages about nodes that it refused, and the last error."""
        return [*self._words, *filter(None, [self._error])]

    def refusal_numbers(self, task: Task) -> dict[str, Any]:
        """Return the address of the service, and the last error."""
        if not self._minds(self.predicate_verb, task):
            return {}
        error = {"error": self._error} if self._error else {}
        return {"extender": {"address": self.url_prefix, **error}}

    def rank_nodes(self, task: Task, nodes: Nodes) -> Column | None:
        """Ask for the scores of all candidates at once; unnamed nodes get none."""
        if not self._minds(self.prioritize_verb, task):
            return None
        about = self._nodes.of(nodes.index.tolist())
        payload = {"task": task_info(self._snapshot, task.row), "nodes": about}
        found = self._ask(self.prioritize_verb, payload, Scores)
        if found is None or found.errorMessage or found.nodeScore is None:
            return None
        return np.array([found.nodeScore.get(name, 0.0) for name in nodes.names])

    def preemptable(self, preemptor: Task, candidates: list[int]) -> Mask | None:
        """Ask which tasks may be evicted."""
        return self._victims(self.preemptable_verb, preemptor, candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[int]) -> Mask | None:
        """Ask which tasks may be evicted."""
        return self._victims(self.reclaimable_verb, reclaimer, candidates)

    def _victims(self, verb: str, evictor: Task, candidates: list[int]) -> Mask | None:
        """Mark the tasks that the answer names; none at all if there is no answer."""
        if not self._minds(verb, evictor):
            return None
        found = self._ask(verb, _eviction(self._snapshot, evictor, candidates), Victims)
        if found is None:
            return np.zeros(len(candidates), dtype=bool)
        if found.status == ABSTAIN:
            return None
        uids = {each.UID for each in found.victims}
        return np.array([self._snapshot.tasks.uids[row] in uids for row in candidates], dtype=bool)

    def overused(self, queue: Queue) -> bool:
        """Ask whether a queue must wait."""
        if not self._minds(self.overused_verb):
            return False
        found = self._ask(self.overused_verb, {"queue": queue_info(queue)}, Overused)
        return not self.ignorable if found is None else found.overused

    def job_enqueueable(self, job: Job) -> int:
        """Ask for a vote."""
        if not self._minds(self.enqueueable_verb):
            return ABSTAIN
        found = self._ask(self.enqueueable_verb, {"job": job_info(self._snapshot, job.row)}, Vote)
        if found is None:
            return PERMIT if self.ignorable else REJECT
        return found.status

    def on_enqueued(self, job: Job) -> None:
        """Notify the service that a job was admitted."""
        if self._minds(self.enqueued_verb):
            self._ask(self.enqueued_verb, {"job": job_info(self._snapshot, job.row)}, IgnoredAnswer)

    def job_ready(self, job: Job) -> bool:
        """Ask whether a job can start."""
        if not self._minds(self.ready_verb):
            return True
        found = self._ask(self.ready_verb, {"job": job_info(self._snapshot, job.row)}, Ready)
        return self.ignorable if found is None else found.status

    def on_place(self, task: Task, node: int) -> None:
        """Notify the service of a placement, and of its roll-back."""
        self._notify(self.allocate_verb, task)
        self._journal.on_rollback(self._notify, self.deallocate_verb, task)

    def on_evict(self, task: Task, node: int) -> None:
        """Notify the service of an eviction, and of its roll-back."""
        self._notify(self.deallocate_verb, task)
        self._journal.on_rollback(self._notify, self.allocate_verb, task)

    def _notify(self, verb: str, task: Task) -> None:
        if self._minds(verb, task):
            found = self._ask(verb, {"task": task_info(self._snapshot, task.row)}, Handled)
            if found is not None and found.errorMessage:
                log.warning("extender on task %s: %s", task.key, found.errorMessage)

    def on_close(self, ssn: PluginSession) -> None:
        """Notify the service that the session is over; later roll-backs are not reported."""
        if self.close_verb:
            self._ask(self.close_verb, {}, IgnoredAnswer, answer=False)
        self._open = False


def _eviction(snapshot: Snapshot, evictor: Task, candidates: list[int]) -> dict[str, Any]:
    return {
        "evictor": task_info(snapshot, evictor.row),
        "evictees": [task_info(snapshot, row) for row in candidates],
    }
