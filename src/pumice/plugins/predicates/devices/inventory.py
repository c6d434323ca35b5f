"""The devices of a cluster: pools of slices as they are now, and the nodes that reach them.

The answer of a selector for a device is kept from cycle to cycle while its slice is the same.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from pumice.api.cel import SelectorError, compiled, device_value
from pumice.api.devices import BasicDevice, ResourceSlice, ResourceSliceSpec
from pumice.api.pods import NodeSelector
from pumice.api.quantity import parse_quantity
from pumice.core.labels import node_labels
from pumice.core.resources import Mask
from pumice.core.snapshot import Snapshot

_DERIVED: Final = "devices of slices"
_REMEMBERED: Final = 64
"""Number of selectors whose answers a device remembers: those of classes, and a few claims."""
Counters = dict[tuple[str, str], int]
"""Amounts by counter set and counter."""


class DeviceId(NamedTuple):
    """The identity of a device."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


class Reach(NamedTuple):
    """The nodes that can use a device: one, those that a selector names, or all."""

    node: str
    selector: NodeSelector | None
    everywhere: bool


@dataclass(eq=False)
class KnownDevice:
    """One device, with the answers of selectors so far."""

    id: DeviceId
    content: BasicDevice
    reach: Reach
    _answers: dict[str, bool | str] = field(default_factory=dict)

    @cached_property
    def _value(self) -> Any:
        return device_value(self.id.driver, self.content)

    @cached_property
    def consumes(self) -> Counters:
        """Its use of the counters of its pool."""
        return {
            (each.counter_set, name): parse_quantity(counter.value)
            for each in self.content.consumes_counters
            for name, counter in each.counters.items()
        }

    def matches(self, expression: str) -> bool:
        """Return the answer of a selector for it.

        Raises:
            SelectorError: the selector fails for it.
        """
        found = self._answers.get(expression)
        if found is None:
            try:
                found = compiled(expression).matches(self._value)
            except SelectorError as error:
                found = f"{error} (device {self.id})"
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            self._answers[expression] = found
        if isinstance(found, str):
            raise SelectorError(found)
        return found

    def attribute(self, name: str) -> object:
        """Return an attribute by its full name, None if it has none of that name."""
        found = self.content.attributes.get(name)
        if found is None:
            domain, _, last = name.rpartition("/")
            found = self.content.attributes.get(last) if domain == self.id.driver else None
        return None if found is None else found.value


class Pool(msgspec.Struct, frozen=True):
    """The slices of the newest generation of a pool, and why they cannot be used, if so."""

    driver: str
    name: str
    slices: tuple[ResourceSlice, ...]
    problem: str = ""

    def counters(self) -> Counters:
        """Add up the shared counters of its devices."""
        return {
            (each.name, name): parse_quantity(counter.value)
            for piece in self.slices
            for each in piece.spec.shared_counters
            for name, counter in each.counters.items()
        }


def newest_pools(slices: Iterable[ResourceSlice]) -> list[Pool]:
    """Group slices into pools by name; of each only the newest generation is left."""
    found: dict[tuple[str, str], list[ResourceSlice]] = {}
    for each in sorted(slices, key=lambda each: each.metadata.name):
        known = found.setdefault((each.spec.driver, each.spec.pool.name), [])
        if known and each.spec.pool.generation > known[0].spec.pool.generation:
            known.clear()
        if not known or each.spec.pool.generation == known[0].spec.pool.generation:
            known.append(each)
    return [_pool(*key, tuple(known)) for key, known in sorted(found.items())]


def _pool(driver: str, name: str, slices: tuple[ResourceSlice, ...]) -> Pool:
    wanted = slices[0].spec.pool.resource_slice_count
    if len(slices) != wanted:
        problem = f"pool {driver}/{name} has {len(slices)} of {wanted} slices"
        return Pool(driver, name, slices, problem)
    names = [device.name for each in slices for device in each.spec.devices]
    if len(set(names)) < len(names):
        return Pool(driver, name, slices, f"pool {driver}/{name} names a device twice")
    return Pool(driver, name, slices)


class Inventory:
    """The devices available on each node, in a stated order."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._labels = node_labels(snapshot)
        self._masks: dict[int, Mask] = {}
        self._on_node: dict[str, list[KnownDevice]] = {}
        self._shared: list[KnownDevice] = []
        self.broken: list[tuple[Pool, Reach]] = []
        """Pools that cannot be used now, with the nodes that reach them."""
        self.counters: dict[tuple[str, str], Counters] = {}
        """Shared counters of pools, by driver and pool."""
        slices: dict[str, ResourceSlice] = snapshot.kind("ResourceSlice")
        known = snapshot.derived.setdefault(_DERIVED, {})
        for key in known.keys() - slices.keys():
            del known[key]
        for pool in newest_pools(slices.values()):
            self._add(pool, known)

    def _add(self, pool: Pool, known: dict[str, tuple[ResourceSlice, list[KnownDevice]]]) -> None:
        if pool.problem:
            self.broken += [(pool, reach_of(each.spec, None)) for each in pool.slices]
            return
        counters = pool.counters()
        if counters:
            self.counters[pool.driver, pool.name] = counters
        for each in pool.slices:
            kept = known.get(each.metadata.name)
            if kept is None or kept[0] is not each:
                kept = known[each.metadata.name] = (each, list(_devices(each)))
            for device in kept[1]:
                node = device.reach.node
                (self._on_node.setdefault(node, []) if node else self._shared).append(device)

    def on(self, row: int) -> list[KnownDevice]:
        """List the devices that a node reaches, its own first."""
        own = self._on_node.get(self._snapshot.nodes.names[row], [])
        if not self._shared:
            return own
        return [*own, *(each for each in self._shared if self.reaches(each.reach, row))]

    def all(self) -> Iterator[KnownDevice]:
        """Return every device once."""
        for devices in (*self._on_node.values(), self._shared):
            yield from devices

    def broken_on(self, row: int) -> list[str]:
        """Describe the faults of a node's pools."""
        found = {pool.problem: None for pool, reach in self.broken if self.reaches(reach, row)}
        return list(found)

    def reaches(self, reach: Reach, row: int) -> bool:
        """Return whether a node is among those that can use a device."""
        if reach.node or reach.everywhere or reach.selector is None:
            return reach.everywhere or self._snapshot.nodes.names[row] == reach.node
        return bool(self.selected(reach.selector)[row])

    def selected(self, selector: NodeSelector) -> Mask:
        """Mark the nodes of a selector (n,)."""
        found = self._masks.get(id(selector))
        if found is None:
            found = self._masks[id(selector)] = np.asarray(self._labels.selected(selector))
        return found


def _devices(piece: ResourceSlice) -> Iterator[KnownDevice]:
    spec = piece.spec
    for device in spec.devices:
        if device.content.binding_conditions:
            continue  # such a device is ready some time after its allocation: not supported
        name = DeviceId(spec.driver, spec.pool.name, device.name)
        yield KnownDevice(name, device.content, reach_of(spec, device.content))


def reach_of(spec: ResourceSliceSpec, device: BasicDevice | None) -> Reach:
    """Return the nodes that reach a device of a slice: stated by each, or by the slice for all."""
    stated = device if spec.per_device_node_selection and device is not None else spec
    return Reach(stated.node_name, stated.node_selector, stated.all_nodes)
