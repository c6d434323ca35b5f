"""CronJob: starts jobs by the clock and keeps a short history of them."""

from pumice.controllers.cronjob.controller import CronJobController

__all__ = ["CronJobController"]
