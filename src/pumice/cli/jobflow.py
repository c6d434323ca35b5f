"""`pumice jobflow` and `pumice jobtemplate`: jobs that wait for each other."""

from typing import Final

from pumice.api.kinds import JOB_FLOW, JOB_TEMPLATE
from pumice.cli.vcctl.click_verbs import click_group
from pumice.cli.vcctl.files import Filed

JOBTEMPLATE: Final = Filed(
    kind=JOB_TEMPLATE,
    title="JobTemplate",
    called="job template",
    help="Make, show and delete the templates that job flows use.",
).verb_group()
jobtemplate = click_group(JOBTEMPLATE)


JOBFLOW: Final = Filed(
    kind=JOB_FLOW,
    title="JobFlow",
    called="jobflow",
    help="Make, show and delete flows of jobs that wait for each other.",
    has_phase=True,
).verb_group()
jobflow = click_group(JOBFLOW)
