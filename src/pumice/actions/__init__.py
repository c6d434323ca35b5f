"""The actions: one verb, one module; each takes a session and decides through it.

They are listed here by name and loaded on use, as plugins are: a configuration names few of them.
"""

from pumice.framework.session import Action

_PLACING = ("enqueue", "allocate", "backfill")
_EVICTING = ("preempt", "reclaim", "shuffle", "gangpreempt", "gangreclaim", "consolidate")

ACTIONS: dict[str, Action] = {
    name: Action(f"{__name__}.{name}:{name}", evicts=name in _EVICTING)
    for name in (*_PLACING, *_EVICTING)
}
