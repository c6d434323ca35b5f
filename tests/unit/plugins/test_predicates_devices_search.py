"""The search for devices on one node finds the first set that trying everything finds."""

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from pumice.api.devices import (
    BasicDevice,
    DeviceAttribute,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
)
from pumice.plugins.predicates.devices.demands import (
    Constraint,
    Demand,
    UnmetDemandError,
    Way,
    demand_of,
)
from pumice.plugins.predicates.devices.inventory import DeviceId, KnownDevice, Reach, newest_pools
from pumice.plugins.predicates.devices.search import STEPS, Lack, Search, Stock
from pumice.testing import device, device_class, resource_claim, resource_slice
from tests.present import read_as

MEMORY = ("card", "memory")


def known(name: str, value: int | None = None, takes: int = 0, pool: str = "p") -> KnownDevice:
    attributes = {} if value is None else {"x": DeviceAttribute(as_int=value)}
    reach = Reach("n", None, everywhere=False)
    made = KnownDevice(DeviceId("d", pool, name), BasicDevice(attributes=attributes), reach)
    made.__dict__["consumes"] = {MEMORY: takes} if takes else {}
    return made


def way(name: str, number: int = 1, *, every: bool = False, admin: bool = False) -> Way:
    return Way(name, "gpu", (), (), number, wants_all=every, admin=admin)


def demand(*requests: Any, claim: str = "c", constraints: Any = ()) -> Demand:
    ways = tuple(each if isinstance(each, tuple) else (each,) for each in requests)
    return Demand(claim, ways, tuple(constraints))


class World:
    """Devices of a node, those that match each request, and what is taken of them."""

    def __init__(self, devices: Any, may: Any = None, in_use: Any = (), limits: Any = None) -> None:
        self.devices = devices
        self.may = may or {}
        self.in_use = {each.id: "other" for each in in_use}
        self.limits = {("d", "p"): {MEMORY: limits}} if limits is not None else {}
        self.used: dict[Any, Any] = {}

    def candidates(self, one: Way) -> list[KnownDevice]:
        return [self.devices[i] for i in self.may.get(one.name, range(len(self.devices)))]

    def search(self, *demands: Demand, steps: int = STEPS) -> Search:
        stock = Stock(self.candidates, self.in_use, self.limits, self.used)
        return Search(demands, stock, steps)

    def found(self, *demands: Demand) -> Any:
        grants = self.search(*demands).run()
        if grants is None:
            return None
        return [(each.claim, each.way.name, each.device.id.name) for each in grants]

    def slow(self, *demands: Demand) -> Any:
        """Return the first set of devices, in order, that meets everything."""
        line = [(each, ways) for each in demands for ways in each.requests]
        sets = (found for found in self.sets(line, ()) if self.holds(found))
        first = next(sets, None)
        if first is None:
            return None
        return [(of.claim, one.name, each.id.name) for of, one, chosen in first for each in chosen]

    def sets(self, line: Any, before: Any) -> Iterator[Any]:
        if not line:
            yield before
            return
        (of, ways), *rest = line
        for one in ways:
            there = self.candidates(one)
            taken = [d for _, w, chosen in before if not w.admin for d in chosen]
            free = [d for d in there if one.admin or (d.id not in self.in_use and d not in taken)]
            number = len(there) if one.wants_all else one.number
            for chosen in combinations(free, number) if number else ():
                yield from self.sets(rest, (*before, (of, one, chosen)))

    def holds(self, found: Any) -> bool:
        held: dict[Any, int] = {}
        for of, one, chosen in found:
            for each in chosen if not one.admin else ():
                for key, n in each.consumes.items():
                    held[each.id[:2], key] = held.get((each.id[:2], key), 0) + n
            for limit in of.constraints:
                values = [
                    d.attribute("d/x")
                    for other, w, devices in found
                    if other is of and limit.is_about(w.name)
                    for d in devices
                ]
                same = len(set(values))
                if None in values or (same < len(values) if limit.distinct else same > 1):
                    return False
        return all(
            n + self.used.get(pool, {}).get(key, 0) <= self.limits.get(pool, {}).get(key, 0)
            for (pool, key), n in held.items()
        )


@pytest.mark.parametrize("seed", range(150))
def test_the_first_set_of_devices_that_meets_everything_is_found(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def maybe(chance: float) -> bool:
        return bool(rng.random() < chance)

    n = int(rng.integers(1, 7))
    values = [None if maybe(0.15) else int(rng.integers(3)) for _ in range(n)]
    sizes = [int(rng.integers(3)) if seed % 3 == 0 else 0 for _ in range(n)]
    devices = [known(f"d{i}", values[i], sizes[i]) for i in range(n)]
    in_use = [each for each in devices if maybe(0.2)]
    world = World(devices, in_use=in_use, limits=int(rng.integers(1, 5)))
    world.used = {("d", "p"): {MEMORY: int(rng.integers(2))}}
    demands = []
    for number in range(int(rng.integers(1, 3))):
        requests, names = [], []
        for k in range(int(rng.integers(1, 3))):
            ways = []
            for m in range(int(rng.integers(1, 3))):
                name = f"c{number}r{k}/w{m}"
                names.append(name)
                world.may[name] = [i for i in range(n) if maybe(0.8)]
                wanted = int(rng.integers(1, 4))
                ways.append(way(name, wanted, every=maybe(0.15), admin=maybe(0.1)))
            requests.append(tuple(ways))
        about = [(), (names[0].partition("/")[0],), (names[-1],)]
        constraints = [
            Constraint("d/x", distinct=maybe(0.5), requests=about[int(rng.integers(3))])
            for _ in range(int(rng.integers(3)))
        ]
        demands.append(demand(*requests, claim=f"c{number}", constraints=constraints))
    assert world.found(*demands) == world.slow(*demands)


SAME = Constraint("d/x", distinct=False, requests=())
OTHER = Constraint("d/x", distinct=True, requests=("b",))


@pytest.mark.parametrize(
    ("world", "asked", "lack"),
    [
        (World([known("a")]), [demand(way("r", 2))], Lack("c", "r", "gpu", 2, 1, 1)),
        (World([]), [demand(way("r", every=True))], Lack("c", "r", "gpu", 0, 0, 0)),
        (
            World([known("a"), known("b")], in_use=[known("b")]),
            [demand(way("r", every=True))],
            Lack("c", "r", "gpu", 0, 2, 1),
        ),
        (
            World([known("a", 1), known("b", 2)]),
            [demand(way("r", 2), constraints=[SAME])],
            Lack("c", "r", "gpu", 2, 2, 2, "devices need the same d/x"),
        ),
        (
            World([known("a", 1), known("b", 1)]),
            [demand(way("a"), way("b", 2), claim="k", constraints=[SAME, OTHER])],
            Lack("k", "b", "gpu", 2, 2, 1, "", 1),
        ),
        (
            World([known("a", 1), known("b", 1), known("e", 1)]),
            [demand(way("a"), way("b", 2), claim="k", constraints=[SAME, OTHER])],
            Lack("k", "b", "gpu", 2, 3, 2, "devices need the same d/x and different d/x", 1),
        ),
        (
            World([known("a", takes=3), known("b", takes=3)], limits=5),
            [demand(way("r", 2))],
            Lack("c", "r", "gpu", 2, 2, 2, "what the devices share is used up"),
        ),
        (
            World([known("a"), known("b")]),
            [demand(way("r", 2)), demand(way("s"), claim="e")],
            Lack("e", "s", "gpu", 1, 2, 0, "", 1),
        ),
    ],
)
def test_what_is_lacking_is_that_of_the_furthest_request(
    world: World, asked: Any, lack: Lack
) -> None:
    search = world.search(*asked)
    assert search.run() is None
    assert search.lack == lack


def test_administrators_need_no_counters_and_no_free_device() -> None:
    world = World([known("a", takes=9)], in_use=[known("a")], limits=1)
    assert world.found(demand(way("r", admin=True))) == [("c", "r", "a")]
    assert world.found(demand(way("r"))) is None


def test_counters_that_a_pool_does_not_state_are_none() -> None:
    assert World([known("a", takes=1)]).found(demand(way("r"))) is None
    assert World([known("a", takes=1)], limits=1).found(demand(way("r"))) is not None


def piece(name: str, *devices: str, generation: int = 1, slices: int = 1) -> Any:
    made = resource_slice(
        name,
        node="n",
        devices=[device(each) for each in devices],
        generation=generation,
        slices=slices,
    )
    made["spec"]["pool"]["name"] = "p"
    return read_as(ResourceSlice, made)


@pytest.mark.parametrize(
    ("slices", "names", "problem"),
    [
        ([piece("a", "d0")], ["a"], ""),
        ([piece("b", "d1", slices=2), piece("a", "d0", slices=2)], ["a", "b"], ""),
        ([piece("a", "d0", slices=2)], ["a"], "has 1 of 2 slices"),
        ([piece("a", "d0"), piece("b", "d1")], ["a", "b"], "has 2 of 1 slices"),
        ([piece("a", "d0", generation=2), piece("b", "d1")], ["a"], ""),
        ([piece("a", "d0"), piece("b", "d1", generation=2)], ["b"], ""),
        ([piece("a", "d0", "d0")], ["a"], "names a device twice"),
    ],
)
def test_a_pool_is_its_newest_generation(slices: Any, names: list[str], problem: str) -> None:
    (pool,) = newest_pools(slices)
    assert [each.metadata.name for each in pool.slices] == names
    assert pool.problem.endswith(problem)
    assert bool(pool.problem) is bool(problem)


@pytest.mark.parametrize(
    ("name", "found"),
    [("d/x", 1), ("x", 1), ("other/x", None), ("d/y", None), ("e/z", 2), ("z", None)],
)
def test_an_attribute_is_known_by_its_full_name(name: str, found: Any) -> None:
    attributes = {"x": DeviceAttribute(as_int=1), "e/z": DeviceAttribute(as_int=2)}
    reach = Reach("n", None, everywhere=False)
    one = KnownDevice(DeviceId("d", "p", "a"), BasicDevice(attributes=attributes), reach)
    value = one.attribute(name)
    assert (value is None) is (found is None)
    assert value is None or value == DeviceAttribute(as_int=found).value


@pytest.mark.parametrize(
    ("requests", "name", "about"),
    [((), "r", True), (("r",), "r", True), (("r",), "r/a", True), (("r/a",), "r/b", False)],
)
def test_a_constraint_is_about_requests_or_alternatives(
    requests: Any, name: str, about: bool
) -> None:
    assert Constraint("d/x", distinct=False, requests=requests).is_about(name) is about


@pytest.mark.parametrize(
    ("way", "why"),
    [
        ({}, None),
        ({"selectors": [{}]}, "a selector is of a kind that is not known"),
        ({"selectors": [{"cel": {"expression": "device."}}]}, "selector 'device.'"),
        ({"allocationMode": "Some"}, "allocationMode Some is not known"),
        ({"allocationMode": "All"}, None),
        ({"adminAccess": True}, "its namespace has no adminAccess"),
        ({"deviceClassName": "tpu"}, "device class tpu does not exist"),
        ({"deviceClassName": ""}, "device class (none) does not exist"),
    ],
)
def test_a_request_that_nothing_can_meet_says_why(way: Any, why: str | None) -> None:
    asked = {"name": "r", "exactly": {"deviceClassName": "gpu", **way}}
    claim = read_as(ResourceClaim, resource_claim("c", requests=[asked]))
    classes = {"gpu": read_as(DeviceClass, device_class("gpu"))}
    if why is None:
        assert demand_of("c", claim, classes, may_admin=False).requests
    else:
        with pytest.raises(UnmetDemandError, match=re.escape(why)):
            demand_of("c", claim, classes, may_admin=False)
    if "adminAccess" in way:
        assert demand_of("c", claim, classes, may_admin=True).requests[0][0].admin
