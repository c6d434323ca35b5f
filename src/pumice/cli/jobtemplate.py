"""`pumice jobtemplate`: the templates that job flows use."""

from typing import Final

from pumice.api.kinds import JOB_TEMPLATE
from pumice.cli.vcctl.click_verbs import click_group
from pumice.cli.vcctl.files import Filed

JOBTEMPLATE: Final = Filed(
    kind=JOB_TEMPLATE,
    title="JobTemplate",
    called="job template",
    help="Make, show and delete the templates that job flows use.",
).verb_group()
jobtemplate = click_group(JOBTEMPLATE)
