"""Volcano's Job: tasks, gangs, policies, commands and job plugins, level by level."""

from pumice.controllers.job.controller import JobController

__all__ = ["JobController"]
