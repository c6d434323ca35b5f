"""What a plugin allows the simulator to assume."""

import msgspec


class SimulatorAssumptions(msgspec.Struct, frozen=True, kw_only=True):
    """When a plugin may grant what it refused before, if not only after something was released.

    A plugin that refuses and declares nothing may do so at any time: every job takes part in every
    cycle, and cycles run while nothing happens.  One that only orders and scores refuses nothing.
    """

    timed: bool = False
    """May change its decision as time passes, though nothing has happened in the cluster."""
    forgets: bool = False
    """May admit in the next cycle what it refused in this one, though nothing was released."""
    all_jobs: bool = False
    """Answers by all jobs that wait, even those without room: none is left out of a cycle."""
