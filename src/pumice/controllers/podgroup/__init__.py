"""PodGroup for plain pods: pods that no job made are scheduled in groups too."""

from pumice.controllers.podgroup.controller import PodGroupController

__all__ = ["PodGroupController"]
