"""Every reason why a job of a world waits, the decisive one first."""

from pumice.controllers.expected import is_expected
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.manifest_causes import manifest_findings
from pumice.diagnosis.refused_pods import quota_findings
from pumice.examine.causes import Examiner, session_causes
from pumice.examine.findings import Finding


def causes_of(world: ClusterState, examiner: Examiner) -> list[Finding]:
    """List the reasons why a job waits, from its objects and from the session."""
    job = examiner.outcome.job
    pods = world.pods_by_group.get(job, ())
    unmade = bool(pods) and all(map(is_expected, pods))
    # in a later cycle they may have been made
    lacking = sum(examiner.outcome.counts.values()) < len(pods)
    return session_causes(
        examiner,
        manifest_findings(world, job),
        refused=quota_findings(world, job) if lacking else [],
        unmade=unmade,
    )
