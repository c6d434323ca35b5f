"""Questions whose answers take time: each is asked about a world, in the answering process.

A question is a value: equal questions about the same cluster have one answer.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Final, Protocol

from pumice.api.conf import parse_conf
from pumice.api.duration import parse_duration
from pumice.clock import Deadline
from pumice.dashboard.feed import Feed, Picture
from pumice.diagnosis.changes import Change
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.explain import Explanation, explain_job
from pumice.diagnosis.queue_order import queue_order
from pumice.diagnosis.runner import Replay
from pumice.diagnosis.settings import (
    drain_node,
    made_in_turn,
    nodes_from_text,
    remove_known_node,
    setting_from_text,
    use_conf,
)
from pumice.diagnosis.signoff_tables import tables_of
from pumice.diagnosis.snapshots import save_world
from pumice.diagnosis.sources import load_job
from pumice.diagnosis.waiting_jobs import waiting_jobs
from pumice.diagnosis.whatif import Question, what_if
from pumice.errors import InputError, Words

_WITHIN_S: Final = 40.0
"""Time for an explanation; a process that takes longer is ended a little later."""


@dataclass
class Respondent:
    """A world, and what was computed about it."""

    world: ClusterState
    explained: dict[str, Explanation] = field(default_factory=dict)
    """Job to its explanation with remedies."""


class Ask(Protocol):
    """A question."""

    def answer(self, who: Respondent) -> Any:
        """Compute the answer; plain data.

        Raises:
            PumiceError: the question cannot be answered.
        """


@dataclass(frozen=True)
class Why:
    """Why does a job wait; on request also when it starts, or what would help.

    These are separate questions, so that the first answers do not wait for the last one.
    """

    job: str
    when: bool = False
    helps: bool = False

    def answer(self, who: Respondent) -> dict[str, Any]:
        """Explain the job; what is not known in time is left out.

        The changes of a remedy stay here, since they may hold a whole pod template.
        """
        deadline = Deadline.of(_WITHIN_S)
        found = explain_job(
            who.world, self.job, unblock=self.helps, foresee=self.when, deadline=deadline
        )
        if self.helps:
            who.explained[self.job] = found
        data = found.to_dict()
        data["remedies"] = [{"text": each.text, "result": each.result} for each in found.remedies]
        if found.position is not None:
            for one in data["position"]["behind"]:
                one["job"] = who.world.title(one["job"])
        return data


@dataclass(frozen=True)
class TryRemedy:
    """What happens to the cluster if a remedy of a job is carried out."""

    job: str
    remedy: str
    """Its text."""

    def answer(self, who: Respondent) -> dict[str, Any]:
        """Play the change; the remedies are those of an earlier explanation."""
        if self.job not in who.explained:
            who.explained[self.job] = explain_job(who.world, self.job, foresee=False)
        offered = {each.text: each for each in who.explained[self.job].remedies}
        if self.remedy not in offered:
            raise InputError(
                wanted="a remedy that still helps",
                found=self.remedy,
                hint="the cluster has changed since; look at the job again",
            )
        change = Change.from_data(offered[self.remedy].changes, source=self.remedy)
        asked = Question(job=self.job, changes=[change])
        return what_if(who.world, asked).to_dict() | {"changes": [self.remedy]}


@dataclass(frozen=True)
class WhatIf:
    """What would happen to a job, or to the cluster after some changes."""

    job: str = ""
    manifest: str = ""
    """A job that does not exist yet, as YAML."""
    conf: str = ""
    settings: tuple[str, ...] = ()
    add_nodes: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    default_runtime: str = ""

    def answer(self, who: Respondent) -> dict[str, Any]:
        """Play both sides and compare."""
        makers: list[Callable[[ClusterState], Change]] = [
            *([lambda _: _conf(self.conf)] if self.conf else []),
            *(partial(setting_from_text, text=text) for text in self.settings),
            *(partial(nodes_from_text, text=text) for text in self.add_nodes),
            *(partial(remove_known_node, name=name) for name in self.remove),
            *(partial(drain_node, name=name) for name in self.drain),
        ]
        changes = made_in_turn(who.world, makers)
        if not (changes or self.job or self.manifest):
            raise InputError(wanted="a job or a change", found=Words("neither"))
        runtime = parse_duration(self.default_runtime) if self.default_runtime else None
        new = load_job(f"{self.manifest}\n", who.world.now) if self.manifest.strip() else ()
        asked = Question(
            job="" if new else self.job,
            new_job=new,
            changes=changes,
            default_runtime_s=runtime,
            signs_off=bool(changes),
            deadline=Deadline.of(_WITHIN_S),
        )
        found = what_if(who.world, asked)
        tables = [] if found.signoff is None else tables_of(found.signoff)
        return found.to_dict() | {"tables": [asdict(table) for table in tables]}


def _conf(text: str) -> Change:
    parse_conf(text, source="the configuration")
    return use_conf(text, "given here")


@dataclass(frozen=True)
class Order:
    """The order in which queues and jobs are considered."""

    def answer(self, who: Respondent) -> dict[str, Any]:
        """Ask the ordering hooks."""
        found = queue_order(who.world).to_dict()
        titles = who.world.title
        found["jobs"] = {
            queue: [{**line, "title": titles(line["name"])} for line in lines]
            for queue, lines in found["jobs"].items()
        }
        return found


@dataclass(frozen=True)
class Waiting:
    """Why each waiting job waits."""

    def answer(self, who: Respondent) -> dict[str, dict[str, str]]:
        """Name the decisive cause of each, by its pod group."""
        found = waiting_jobs(who.world, foresee=False)
        return {
            each.job: {"code": each.cause.code.value, "text": each.cause.text} for each in found
        }


@dataclass(frozen=True)
class Starting:
    """When each waiting job is expected to start."""

    def answer(self, who: Respondent) -> dict[str, dict[str, Any]]:
        """Play the cluster on; by pod group."""
        found = ((each.job, each.forecast) for each in waiting_jobs(who.world))
        return {
            job: {
                "at": None if one["in_s"] is None else who.world.now + one["in_s"],
                "text": one["text"],
            }
            for job, one in found
            if one is not None
        }


@dataclass(frozen=True)
class Saved:
    """The cluster as a snapshot file."""

    name: str

    def answer(self, who: Respondent) -> str:
        """Write it as text; possible secrets are left out."""
        return save_world(who.world, name=self.name)


@dataclass(frozen=True)
class Configuration:
    """The configuration in force."""

    def answer(self, who: Respondent) -> dict[str, Any]:
        """Return its text and where it comes from."""
        return {"text": who.world.conf, "source": who.world.conf_source}


@dataclass(frozen=True)
class Pictured:
    """The cluster as a picture, with its next cycle."""

    def answer(self, who: Respondent) -> Picture:
        """Decide a cycle on a copy and look at it."""
        return pictured(who.world)


def pictured(world: ClusterState) -> Picture:
    """Take a picture of a world and of the next cycle's results."""
    feed = Feed()
    Replay(world).decide(feed)
    if feed.picture is None:
        raise InputError(wanted="a world that can be looked at", found=Words("none"))
    return feed.picture


def read_texts(value: Any, field_name: str) -> tuple[str, ...]:
    """Read a list of short texts from a request."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise InputError(wanted="a list of texts", found=value, field=field_name)
    if not all(isinstance(each, str) for each in value):
        raise InputError(wanted="texts", found=value, field=field_name)
    return tuple(value)
