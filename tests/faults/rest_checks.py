"""What must be so once nothing happens any more: jobs counted, caches equal to the store."""

from collections import Counter
from collections.abc import Iterator
from typing import Final

from pumice.api.kinds import JOB, QUEUE, Manifest
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.scheduler import Scheduler
from pumice.serve.scheduler.live_scheduler import LiveScheduler
from tests.faults.pumice_process import PumiceProcess
from tests.live_tables import tables

_JOB_NAME: Final = "volcano.sh/job-name"


def check_jobs(cluster: EmbeddedCluster) -> Iterator[str]:
    """The status of every job agrees with the store; queues hold nothing any more."""
    pods: dict[str, Counter[str]] = {}
    for pod in cluster.list("Pod")[0]:
        name = (pod["metadata"].get("annotations") or {}).get(_JOB_NAME)
        if name:
            pods.setdefault(name, Counter())[pod["status"]["phase"].lower()] += 1
    for job in cluster.list(JOB)[0]:
        name, status = job["metadata"]["name"], job.get("status") or {}
        found = pods.get(name, Counter())
        for count in ("pending", "running", "succeeded", "failed"):
            reported = status.get(count, 0)
            if reported != found[count]:
                yield f"job {name} tells of {reported} {count} pods, there are {found[count]}"
    for queue in cluster.list(QUEUE)[0]:
        held = (queue.get("status") or {}).get("allocated") or {}
        if any(value not in ("0", 0) for value in held.values()):
            yield f"queue {queue['metadata']['name']} still tells of {held}"


def check_caches(cluster: EmbeddedCluster, process: PumiceProcess) -> Iterator[str]:
    """Caches hold what the store holds, tables what a fresh scheduler makes of it."""
    followed = process.cluster
    if process.ended or followed is None:
        return
    for kind, store in followed._stores.items():
        known = {_key(each): _version(each) for each in store.list()[0]}
        there = {_key(each): _version(each) for each in cluster.list(kind)[0]}
        if known != there:
            differing = sorted({*known.items()} ^ {*there.items()})[:4]
            yield f"{process.name} has other {kind} than the store: {differing}"
    live = process.live
    if live is None or not process.leads:
        return
    if live.recovery.open:
        yield f"{process.name} still waits for {live.recovery.open} writes"
    fresh = LiveScheduler(cluster, Scheduler(live.scheduler.conf))
    fresh.informer.sync()
    for name, mine, true in zip(
        ("pods", "nodes", "jobs"), tables(live), tables(fresh), strict=True
    ):
        if mine != true:
            yield f"{process.name} has other tables of {name} than a fresh scheduler"


def _key(manifest: Manifest) -> str:
    metadata = manifest["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _version(manifest: Manifest) -> str:
    return str(manifest["metadata"]["resourceVersion"])
