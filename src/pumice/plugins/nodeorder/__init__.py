"""nodeorder: Kubernetes' own scores."""

from pumice.plugins.nodeorder.plugin import NodeOrder

__all__ = ["NodeOrder"]
