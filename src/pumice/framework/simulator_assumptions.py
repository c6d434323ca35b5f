"""What a plugin or an action allows the simulator to assume."""

import msgspec


class SimulatorAssumptions(msgspec.Struct, frozen=True, kw_only=True):
    """A declaration; without one nothing is assumed, and every job takes part in every cycle."""

    bounded: bool = False
    """Never allows a job to start beyond the room on nodes and in queues, nor evicts on its own."""
    timed: bool = False
    """May change its decision as time passes, though nothing has happened in the cluster."""
    forgets: bool = False
    """May admit in the next cycle what it refused in this one, though nothing was released."""
    all_jobs: bool = False
    """Answers about a job by other jobs that wait, even those without room: none is left out."""
    evicts: bool = False
    """Makes room by evicting."""
    nodes_alone: bool = False
    """Its answers about a node, for pods without volumes and terms about other pods, depend
    on the pods of that node alone: they hold until a pod is added or removed there."""
    starts_alone: bool = False
    """A gang of equal pods, without volumes and terms about other pods, is admitted and starts on
    its best nodes as far as the limits that the plugin states allow it.  While it runs, nothing
    about it counts but the sums of its nodes, its queue and its namespace."""
    oldest_first: bool = False
    """Of jobs of equal priority that have not started, puts none before an older one."""
    offers_lower: bool = False
    """Offers to a task that preempts none but pods of jobs of lower priority, and never abstains;
    of its own job, any."""
    offers_surplus: bool = False
    """Offers to a task that preempts none but pods of jobs that have more than they need, and
    never abstains."""
    holds_gangs: bool = False
    """By ``job_ready`` and ``job_pipelined``, a job keeps places only if all that it needs have
    one: one that finds too little room in a cycle keeps nothing."""


UNDECLARED = SimulatorAssumptions()
