"""task-topology: put tasks of a job together or apart, by annotations of its pod group."""

from pumice.plugins.task_topology.plugin import TaskTopology

__all__ = ["TaskTopology"]
