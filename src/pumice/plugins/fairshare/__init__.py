"""fairshare: who used less of the cluster lately goes first."""

from pumice.plugins.fairshare.plugin import FairShare

__all__ = ["FairShare"]
