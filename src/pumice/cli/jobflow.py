"""`pumice jobflow`: jobs that wait for each other."""

from typing import Final

from pumice.api.kinds import JOB_FLOW
from pumice.cli.vcctl.click_verbs import click_group
from pumice.cli.vcctl.files import Filed

JOBFLOW: Final = Filed(
    kind=JOB_FLOW,
    title="JobFlow",
    called="jobflow",
    help="Make, show and delete flows of jobs that wait for each other.",
    has_phase=True,
).verb_group()
jobflow = click_group(JOBFLOW)
