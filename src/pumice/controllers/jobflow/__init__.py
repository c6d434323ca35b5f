"""JobFlow: runs the jobs of templates in the order of their dependencies."""

from pumice.controllers.jobflow.controller import BY_FLOW, JobFlowController

__all__ = ["BY_FLOW", "JobFlowController"]
