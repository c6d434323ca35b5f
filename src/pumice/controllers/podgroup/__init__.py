"""PodGroup for plain pods: pods that no job made are scheduled in groups too."""

from pumice.controllers.podgroup.controller import (
    PodGroupController,
    new_podgroup,
    owner_annotations,
)

__all__ = ["PodGroupController", "new_podgroup", "owner_annotations"]
