"""Answers about a cluster: why a job waits, which job goes first, what if, what changed.

Every answer comes from running the deciding core on a copy; nothing here prints or changes a
cluster.
"""

from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.explain import Explanation, explain_job
from pumice.diagnosis.queue_order import QueueOrder, queue_order
from pumice.diagnosis.snapshots import diff_worlds, save_world, summarise
from pumice.diagnosis.sources import load_world
from pumice.diagnosis.waiting_jobs import WaitingJob, waiting_jobs
from pumice.diagnosis.whatif import Answer, Question, what_if

__all__ = [
    "Answer",
    "ClusterState",
    "Explanation",
    "Question",
    "QueueOrder",
    "WaitingJob",
    "diff_worlds",
    "explain_job",
    "load_world",
    "queue_order",
    "save_world",
    "summarise",
    "waiting_jobs",
    "what_if",
]
