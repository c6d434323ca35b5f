"""predicates: Kubernetes' own filters."""

from pumice.plugins.predicates.plugin import Predicates

__all__ = ["Predicates"]
