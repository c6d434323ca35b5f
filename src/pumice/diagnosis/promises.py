"""Places that a cycle promises to jobs, and whether they get them once leaving pods are gone."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pumice.api.codes import Cause
from pumice.api.decisions import Decisions
from pumice.api.wording import first_of, verb
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.story import Story
from pumice.diagnosis.timeline import Timeline
from pumice.diagnosis.trials import MOST_CYCLES
from pumice.examine.causes import Examiner, session_causes
from pumice.examine.findings import Finding, ObjectRef
from pumice.framework.session import Session
from pumice.scheduler import Observer

_NAMED: Final = 3


def broken_promises(
    world: ClusterState, examiners: Iterable[Examiner]
) -> Mapping[str, list[Finding]]:
    """Return why jobs never get the places that they are promised, the decisive cause first.

    The cluster is played until all of them have started, or it is at rest.  A promise that may
    still be kept then, in a cluster that does not come to rest, is not broken.
    """
    waiting = {world.title(each.outcome.job): each for each in examiners}
    timeline = Timeline(world)
    for _ in range(MOST_CYCLES):
        timeline.step()
        for moved in timeline.story.binds:
            waiting.pop(moved.job, None)
        if not waiting or timeline.is_at_rest or timeline.next_at is None:
            break
    else:
        return {}
    later = _Later([timeline.group(each.outcome.job) for each in waiting.values()])
    if waiting:
        timeline.look(later)
    return {
        each.outcome.job: [*_taken(each, title, timeline.story), *found]
        for (title, each), found in zip(waiting.items(), later.causes(), strict=True)
    }


@dataclass
class _Later(Observer):
    """Examines jobs in the cluster that is at rest."""

    keys: list[str]

    def __post_init__(self) -> None:
        self._examiners = [Examiner(key) for key in self.keys]

    def opened(self, ssn: Session) -> None:
        for each in self._examiners:
            each.opened(ssn)

    def decided(self, ssn: Session, decisions: Decisions) -> None:
        for each in self._examiners:
            each.decided(ssn, decisions)

    def causes(self) -> Iterator[list[Finding]]:
        """Yield the causes of each job."""
        for each in self._examiners:
            yield session_causes(each)


def _taken(examiner: Examiner, title: str, story: Story) -> Iterator[Finding]:
    """Yield the jobs that start on nodes which another job is promised."""
    outcome = examiner.outcome
    nodes = {*outcome.promised.values()}
    taking = [each for each in story.binds if each.node in nodes and each.job != title]
    jobs = list(dict.fromkeys(each.job for each in taking if each.job))
    if not jobs:
        return
    places = sorted({each.node for each in taking if each.job})
    behind = dict(examiner.position.behind) if examiner.position is not None else {}
    key = behind.get(jobs[0], "")
    text = (
        f"its place on {verb(len(places), 'node', 'nodes')} {first_of(places, _NAMED)} is promised,"
        f" but {first_of(jobs, _NAMED)} {verb(len(jobs), 'takes', 'take')} it"
    )
    text += f"; {jobs[0]} goes first: {key}" if key else ""
    about = ObjectRef.of_key("PodGroup", jobs[0])
    yield Finding(Cause.JOB_AHEAD, text, about, {"jobs": jobs, "key": key, "nodes": places})
