"""Answers about a cluster: why a job waits, who goes first, what if, what changed.

Every answer comes from running the deciding core on a copy; nothing here prints or changes a
cluster.
"""

from pumice.answers.explain import Explanation, explain_job, explain_waiting
from pumice.answers.order import QueueOrder, queue_order
from pumice.answers.snapshots import diff_worlds, save_world, summarise
from pumice.answers.sources import load_world
from pumice.answers.whatif import Answer, Question, what_if
from pumice.answers.world import World

__all__ = [
    "Answer",
    "Explanation",
    "Question",
    "QueueOrder",
    "World",
    "diff_worlds",
    "explain_job",
    "explain_waiting",
    "load_world",
    "queue_order",
    "save_world",
    "summarise",
    "what_if",
]
