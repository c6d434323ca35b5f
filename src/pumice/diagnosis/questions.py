"""The scheduler behind a question: it decides as usual, but has no effect outside.

An extender is notified of nothing.  It is asked only questions without effect, each distinct one
once, and only if the user agrees; otherwise its vote is unknown.
"""

from collections.abc import Mapping
from typing import Any, Final

from pumice.api.frozen_json import encode_parts
from pumice.cluster.services import SERVICES, connect_extender
from pumice.diagnosis.cluster_state import ClusterState
from pumice.framework.session_state import ProcessMemory
from pumice.plugins.extender.plugin import SERVICE, ExtenderClient
from pumice.plugins.extender.questions import AskedExtender, UnaskedExtender
from pumice.scheduler import Scheduler

UNKNOWN_VOTE: Final = (
    "the extender was not asked, so its vote is unknown (--ask-extender asks it about nodes)"
)
SOME_VOTES: Final = (
    "the extender was asked about nodes only; its vote on jobs and queues is unknown"
)


class _Once:
    """A client that sends each distinct question once."""

    def __init__(self, client: ExtenderClient, known: dict[bytes, Mapping[str, Any]]) -> None:
        self._client = client
        self._known = known

    def post(self, verb: str, payload: Any, *, answer: bool = True) -> Mapping[str, Any]:
        question = verb.encode() + b" " + encode_parts(payload)
        if question not in self._known:
            self._known[question] = self._client.post(verb, payload, answer=answer)
        return self._known[question]


def question_scheduler(world: ClusterState) -> Scheduler:
    """Make the scheduler of a world."""
    extender = AskedExtender if world.asks_extender else UnaskedExtender

    def connect(url_prefix: str, timeout_s: float) -> object:
        client: Any = connect_extender(url_prefix, timeout_s)
        return _Once(client, world.extender_answers)

    return Scheduler(
        world.scheduler_conf,
        seed=world.seed,
        plugins={SERVICE: extender, **world.plugins},
        services={**SERVICES, SERVICE: connect},
    )


def question_memory(world: ClusterState) -> ProcessMemory:
    """Make the state between the cycles of a question; warnings are shared by all questions."""
    return ProcessMemory(warnings=world.warnings)


def is_open(world: ClusterState) -> bool:
    """Return whether an extender may decide otherwise: it has votes, and was not asked for them."""
    plugins = [entry for tier in world.scheduler_conf.tiers for entry in tier.plugins]
    votes = [
        key
        for entry in plugins
        if entry.name == SERVICE
        for key, value in entry.arguments.items()
        if key.endswith("Verb") and value
    ]
    return bool(votes) and not world.asks_extender and SERVICE not in world.plugins


def unknown_votes(world: ClusterState) -> list[str]:
    """List the votes that the answer leaves out."""
    names = {entry.name for tier in world.scheduler_conf.tiers for entry in tier.plugins}
    if SERVICE not in names or SERVICE in world.plugins:
        return []
    return [SOME_VOTES if world.asks_extender else UNKNOWN_VOTE]
