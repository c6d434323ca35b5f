"""MIG: cards that are cut in hardware, by one of the geometries that their model allows.

An idle card may get any geometry; once an instance is in use the geometry stays, and its
free instances can be allocated.
"""

from collections.abc import Collection, Iterator

from pumice.plugins.deviceshare.cards import MigInstance
from pumice.plugins.deviceshare.device_config import Geometry, MigProfile


def find_instance(
    geometries: tuple[Geometry, ...], used: Collection[MigInstance], memory: int
) -> tuple[MigInstance, int] | None:
    """Find the smallest instance with enough memory; return it with its memory.

    For an idle card, the first geometry with such an instance counts.
    """
    groups = {each.group for each in used}
    for geometry in geometries:
        if not groups or geometry.group in groups:
            taken = {each.position for each in used if each.group == geometry.group}
            found = _smallest(geometry, taken, memory)
            if found is not None:
                return found
    return None


def memory_of(geometries: tuple[Geometry, ...], instance: MigInstance) -> int | None:
    """Return the memory of an instance, None if there is no such place."""
    for geometry in geometries:
        if geometry.group == instance.group:
            for first, profile in _profiles(geometry):
                if 0 <= instance.position - first < profile.count:
                    return profile.memory
    return None


def read_instance(uuid: str) -> MigInstance | None:
    """Read the place in brackets after the uuid of a card: ``GPU-1[group2-3]``."""
    _, bracket, rest = uuid.partition("[")
    group, dash, position = rest.removesuffix("]").rpartition("-")
    if not (bracket and dash and position.isdecimal() and len(position) < 10):
        return None
    return MigInstance(group, int(position))


def _smallest(geometry: Geometry, taken: set[int], memory: int) -> tuple[MigInstance, int] | None:
    for first, profile in sorted(_profiles(geometry), key=lambda each: each[1].memory):
        if profile.memory >= memory:
            for position in range(first, first + profile.count):
                if position not in taken:
                    return MigInstance(geometry.group, position), profile.memory
    return None


def _profiles(geometry: Geometry) -> Iterator[tuple[int, MigProfile]]:
    """Yield each size of instances with the position of its first one."""
    first = 0
    for profile in geometry.geometries:
        yield first, profile
        first += max(profile.count, 0)
