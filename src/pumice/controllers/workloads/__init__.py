"""Kubernetes' own workloads on an embedded cluster, where no other controller makes their pods."""

from pumice.controllers.workloads.controller import WorkloadController

__all__ = ["WorkloadController"]
