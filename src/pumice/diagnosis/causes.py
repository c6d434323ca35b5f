"""Every reason why a job of a world waits, the decisive one first."""

from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.manifest_causes import manifest_findings
from pumice.examine.causes import session_causes
from pumice.examine.examiner import Examiner
from pumice.examine.findings import Finding


def causes_of(world: ClusterState, examiner: Examiner) -> list[Finding]:
    """List the reasons why a job waits, from its objects and from the session."""
    return session_causes(examiner, manifest_findings(world, examiner.outcome.job))
