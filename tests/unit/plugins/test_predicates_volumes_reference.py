"""predicates agrees with a slow reference on volumes: nodes and claims one by one, all moves."""

from typing import Any

import numpy as np
import pytest

from pumice.plugins.predicates import Predicates
from pumice.testing import node, pod, pod_group, queue

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD = {
    ZONE: "failure-domain.beta.kubernetes.io/zone",
    REGION: "failure-domain.beta.kubernetes.io/region",
}
SELECTED = "volume.kubernetes.io/selected-node"
LIMIT = "node(s) exceed max volume count"
NO_ZONE = "node(s) had no available volume zone"
NOT_HERE = "node(s) didn't match PersistentVolume's node affinity"
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
FULL = "node(s) did not have enough free storage"


def manifest(kind: str, name: str, version: str = "v1", **more: Any) -> Any:
    meta: dict[str, Any] = {"name": name, "labels": {}, "annotations": {}}
    if kind in ("PersistentVolumeClaim", "CSIStorageCapacity"):
        meta["namespace"] = "default"
    group = "" if version == "v1" and kind.startswith("Persistent") else "storage.k8s.io/"
    return {"apiVersion": f"{group}{version}", "kind": kind, "metadata": meta, **more}


def is_bound(claim: Any) -> bool:
    return claim["status"]["phase"] == "Bound"


def size(thing: Any) -> int:
    spec = thing["spec"]
    amounts = spec["capacity"] if thing["kind"] == "PersistentVolume" else spec["resources"]
    return int((amounts.get("requests") or amounts)["storage"].removesuffix("Gi"))


class Reference:
    """Volumes by the book: plain loops over manifests, the promises made, and who is where."""

    def __init__(self, things: Any) -> None:
        self.of: dict[str, dict[str, Any]] = {}
        for each in things:
            self.of.setdefault(each["kind"], {})[each["metadata"]["name"]] = each
        self.where: list[tuple[Any, str]] = []  # a pod's claims, its node
        self.promises: dict[str, tuple[str, str]] = {}  # by claim: volume or none, node

    def claim(self, name: str) -> Any:
        return self.of["PersistentVolumeClaim"][name]

    def volume(self, name: str) -> Any:
        return self.of["PersistentVolume"].get(name)

    def labels(self, on: str) -> Any:
        return self.of["Node"][on]["metadata"]["labels"]

    def reason(self, claims: Any, on: str) -> str:
        """Return the first reason that evictions do not cure, else the limit."""
        if not all(self.in_zone(self.claim(name), on) for name in claims):
            return NO_ZONE
        if not all(self.stays(name, on) for name in claims):
            return NOT_HERE
        found = self.offered(claims, on)
        lacking = [self.claim(name) for name, volume in found.items() if volume is None]
        if not all(self.can_make(claim, on) for claim in lacking):
            return NO_VOLUME
        if not all(self.has_room(claim, on) for claim in lacking):
            return FULL
        return LIMIT if self.over_limit(claims, on) else "fits"

    def handle(self, name: str) -> Any:
        """Return driver and handle of a claim's volume."""
        spec = self.claim(name)["spec"]
        volume = self.volume(spec["volumeName"])
        if volume is not None:
            source = volume["spec"].get("csi")
            return (source["driver"], source["volumeHandle"]) if source else None
        known = self.of["StorageClass"].get(spec["storageClassName"])
        return (known["provisioner"], name) if known else None

    def over_limit(self, claims: Any, on: str) -> bool:
        held = {self.handle(name) for keys, there in self.where if there == on for name in keys}
        asked = {self.handle(name) for name in claims} - {None}
        for driver in self.of["CSINode"].get(on, {"spec": {"drivers": []}})["spec"]["drivers"]:
            mine = {each for each in asked - held if each[0] == driver["name"]}
            all_of = mine | {each for each in held if each and each[0] == driver["name"]}
            if "allocatable" in driver and mine and len(all_of) > driver["allocatable"]["count"]:
                return True
        return False

    def in_zone(self, claim: Any, on: str) -> bool:
        volume, labels = self.volume(claim["spec"]["volumeName"]), self.labels(on)
        places = {ZONE, REGION, *OLD.values()}
        if volume is None or not places & labels.keys():
            return True
        for today, before in OLD.items():
            for key in (today, before):
                wanted = volume["metadata"]["labels"].get(key)
                here = labels.get(key, labels.get(today))
                if wanted is not None and here not in wanted.split("__"):
                    return False
        return True

    def reaches(self, volume: Any, on: str) -> bool:
        if volume is None:
            return False
        required = volume["spec"].get("nodeAffinity", {}).get("required")
        if required is None:
            return True
        return any(
            all(
                self.labels(on).get(each["key"]) in each["values"]
                for each in term["matchExpressions"]
            )
            for term in required["nodeSelectorTerms"]
        )

    def stays(self, name: str, on: str) -> bool:
        """Return whether a node reaches the volume that a claim has or is promised."""
        claim = self.claim(name)
        if is_bound(claim):
            return self.reaches(self.volume(claim["spec"]["volumeName"]), on)
        volume, there = self.promises.get(name, ("", on))
        return self.reaches(self.volume(volume), on) if volume else there == on

    def offered(self, claims: Any, on: str) -> dict[str, str | None]:
        """Return the volumes of the waiting claims on a node, None: to be provisioned."""
        found: dict[str, str | None] = {}
        waiting = [n for n in claims if not is_bound(self.claim(n)) and n not in self.promises]
        for name in sorted(waiting, key=lambda each: size(self.claim(each))):
            found[name] = self.pick(self.claim(name), on, [*found.values()])
        return found

    def pick(self, claim: Any, on: str, earlier: Any) -> str | None:
        if SELECTED in claim["metadata"]["annotations"]:
            return None
        there = [
            each
            for each in self.of["PersistentVolume"].values()
            if "deletionTimestamp" not in each["metadata"]
        ]
        there.sort(key=lambda each: (size(each), each["metadata"]["name"]))
        own = {"namespace": "default", "name": claim["metadata"]["name"]}
        for each in there:
            if each["spec"].get("claimRef") == own and self.suits(each, claim, kept=True):
                return each["metadata"]["name"] if self.reaches(each, on) else None
        taken = [*earlier, *(volume for volume, _ in self.promises.values())]
        for each in there:
            free = "claimRef" not in each["spec"] and each["status"]["phase"] == "Available"
            name = each["metadata"]["name"]
            if free and name not in taken and self.suits(each, claim) and self.reaches(each, on):
                return str(name)
        return None

    def suits(self, volume: Any, claim: Any, *, kept: bool = False) -> bool:
        one, two = volume["spec"], claim["spec"]
        if one["storageClassName"] != two["storageClassName"] or size(volume) < size(claim):
            return False
        if one.get("volumeMode", "Filesystem") != two.get("volumeMode", "Filesystem"):
            return False
        wanted = two.get("selector", {}).get("matchLabels", {})
        return kept or (
            set(two["accessModes"]) <= set(one["accessModes"])
            and wanted.items() <= volume["metadata"]["labels"].items()
        )

    def can_make(self, claim: Any, on: str) -> bool:
        known = self.of["StorageClass"][claim["spec"]["storageClassName"]]
        if known["provisioner"] == "kubernetes.io/no-provisioner":
            return False
        if claim["metadata"]["annotations"].get(SELECTED, on) != on:
            return False
        terms = known.get("allowedTopologies", [])
        return not terms or any(
            all(self.labels(on).get(e["key"]) in e["values"] for e in term["matchLabelExpressions"])
            for term in terms
        )

    def has_room(self, claim: Any, on: str) -> bool:
        name = claim["spec"]["storageClassName"]
        driver = self.of["CSIDriver"].get(self.of["StorageClass"][name]["provisioner"])
        if driver is None or not driver["spec"]["storageCapacity"]:
            return True
        return any(
            each["storageClassName"] == name
            and int(each["capacity"].removesuffix("Gi")) >= size(claim)
            and each["nodeTopology"]["matchLabels"].items() <= self.labels(on).items()
            for each in self.of["CSIStorageCapacity"].values()
        )

    def place(self, claims: Any, on: str) -> None:
        for name, volume in self.offered(claims, on).items():
            self.promises[name] = (volume or "", on)
        self.where.append((claims, on))


class Scene:
    """A random cluster, a session on it and the reference."""

    def __init__(self, seed: int, open_session: Any) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes = [self.some_node(i) for i in range(7)]
        self.volumes = [self.some_volume(i) for i in range(14)]
        claims = [self.some_claim(i) for i in range(12)]
        self.reference = Reference(
            [*self.nodes, *self.volumes, *claims, *self.classes(), *self.drivers()]
        )
        self.pods = {f"p{i}": self.some_claims() for i in range(12)}
        self.waiting = [name for name in self.pods if int(name[1:]) >= 4]
        pods = []
        for name, used in self.pods.items():
            on = f"n{self.rng.integers(7)}" if name not in self.waiting else None
            volumes = [
                {"name": f"v{i}", "persistentVolumeClaim": {"claimName": each}}
                for i, each in enumerate(used)
            ]
            pods.append(pod(name, group="g", node=on, spec={"volumes": volumes}))
            if on is not None:
                self.reference.where.append((used, on))
        things = [each for kind in self.reference.of.values() for each in kind.values()]
        world = [queue("default"), pod_group("g"), *things, *pods]
        self.ssn = open_session(world, Predicates())

    def maybe(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def any_of(self, *choices: Any) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def some_node(self, i: int) -> Any:
        labels = {"zone": self.any_of("x", "y", "z"), "disk": self.any_of("hot", "cold")}
        if self.maybe(0.7):
            labels[self.any_of(ZONE, ZONE, OLD[ZONE])] = self.any_of("x", "y")
        if self.maybe(0.3):
            labels[self.any_of(REGION, OLD[REGION])] = self.any_of("r", "s")
        return node(f"n{i}", labels=labels, cpu=1000)

    def some_volume(self, i: int) -> Any:
        spec: dict[str, Any] = {
            "capacity": {"storage": f"{self.rng.integers(1, 5)}Gi"},
            "storageClassName": self.any_of("wait", "wait", "make"),
            "accessModes": self.any_of(["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"]),
        }
        terms = [
            [{"key": "zone", "operator": "In", "values": [self.any_of("x", "y", "z")]}],
            [{"key": "disk", "operator": "In", "values": ["hot"]}],
        ]
        chosen = self.any_of([], [terms[0]], [terms[0]], [terms[0] + terms[1]], terms)
        if chosen:
            each = [{"matchExpressions": term} for term in chosen]
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": each}}
        if self.maybe(0.2):
            spec["claimRef"] = {"namespace": "default", "name": f"c{self.rng.integers(12)}"}
        if self.maybe(0.1):
            spec["volumeMode"] = "Block"
        if self.maybe(0.6):
            spec["csi"] = {"driver": self.any_of("disks", "tapes"), "volumeHandle": f"h{i // 2}"}
        phase = "Available" if self.maybe(0.85) else "Released"
        made = manifest("PersistentVolume", f"v{i:02}", spec=spec, status={"phase": phase})
        made["metadata"]["labels"] = self.any_of({}, {"tier": "gold"})
        if self.maybe(0.3):
            made["metadata"]["labels"][self.any_of(ZONE, OLD[ZONE])] = self.any_of("x", "x__y")
        if self.maybe(0.1):
            made["metadata"]["labels"][self.any_of(REGION, OLD[REGION])] = "r"
        if self.maybe(0.1):
            made["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return made

    def some_claim(self, i: int) -> Any:
        bound = self.maybe(0.35)
        spec: dict[str, Any] = {
            "storageClassName": self.any_of("wait", "wait", "make", "other"),
            "volumeName": f"v{self.rng.integers(16):02}" if bound else "",
            "accessModes": self.any_of(["ReadWriteOnce"], ["ReadOnlyMany"]),
            "resources": {"requests": {"storage": f"{self.rng.integers(1, 4)}Gi"}},
        }
        if self.maybe(0.2):
            spec["selector"] = {"matchLabels": {"tier": "gold"}}
        status = {"phase": "Bound" if bound else "Pending"}
        made = manifest("PersistentVolumeClaim", f"c{i}", spec=spec, status=status)
        if not bound and self.maybe(0.15):
            made["metadata"]["annotations"][SELECTED] = f"n{self.rng.integers(7)}"
        return made

    def some_claims(self) -> Any:
        chosen = self.rng.choice(12, size=int(self.rng.integers(1, 4)), replace=False)
        return [f"c{i}" for i in chosen.tolist()]

    def classes(self) -> Any:
        hot = {"key": "disk", "values": ["hot"]}
        zones = {"key": "zone", "values": ["x", "y"]}
        for name, provisioner, terms in (
            ("wait", "kubernetes.io/no-provisioner", []),
            ("make", "disks", [[zones, hot], [{"key": "zone", "values": ["z"]}]]),
            ("other", "tapes", []),
        ):
            topologies = [{"matchLabelExpressions": term} for term in terms]
            yield manifest(
                "StorageClass",
                name,
                provisioner=provisioner,
                volumeBindingMode="WaitForFirstConsumer",
                allowedTopologies=topologies,
            )

    def drivers(self) -> Any:
        yield manifest("CSIDriver", "disks", spec={"storageCapacity": True})
        yield manifest("CSIDriver", "tapes", spec={"storageCapacity": False})
        for i, zone in enumerate("xyz"):
            yield manifest(
                "CSIStorageCapacity",
                f"k{i}",
                storageClassName=self.any_of("make", "make", "other"),
                capacity=f"{self.rng.integers(1, 4)}Gi",
                nodeTopology={"matchLabels": {"zone": zone}},
            )
        listed: list[Any] = []
        for i in range(5):
            counts = {"disks": int(self.rng.integers(1, 4)), "tapes": int(self.rng.integers(0, 3))}
            listed = [
                {"name": name, "nodeID": "id", "allocatable": {"count": count}}
                for name, count in counts.items()
            ]
            if i == 4:
                del listed[0]["allocatable"]
            yield manifest("CSINode", f"n{i}", spec={"drivers": listed})
        yield manifest("CSINode", "gone", spec={"drivers": listed})

    def task(self, name: str) -> Any:
        return self.ssn.task(self.ssn.snapshot.tasks.row_of[f"default/{name}"])

    def reported(self, name: str) -> list[str]:
        placing = self.ssn.placing
        return [placing.reasons[k].text for k in placing.fit(self.task(name)).verdict.tolist()]

    def check(self) -> None:
        for name in self.waiting:
            want = [
                self.reference.reason(self.pods[name], each["metadata"]["name"])
                for each in self.nodes
            ]
            assert self.reported(name) == want, name
        promises = self.ssn.plugins[0]._volumes.claims.promises
        names = self.ssn.snapshot.nodes.names
        found = {key: (made.volume, names[made.node]) for key, made in promises.items()}
        assert found == {f"default/{k}": made for k, made in self.reference.promises.items()}


@pytest.mark.parametrize("seed", range(40))
def test_volumes_agree_with_the_reference_after_every_move(open_session: Any, seed: int) -> None:
    scene = Scene(seed, open_session)
    scene.check()
    statement = scene.ssn.statement()
    for name in list(scene.waiting):
        fitting = [i for i, text in enumerate(scene.reported(name)) if text == "fits"]
        if not fitting:
            continue
        on = scene.any_of(*fitting)
        mark = statement.checkpoint()
        statement.place(scene.task(name).row, on)
        before = (list(scene.reference.where), dict(scene.reference.promises))
        scene.reference.place(scene.pods[name], f"n{on}")
        scene.waiting.remove(name)
        scene.check()
        if scene.maybe(0.4):
            statement.rollback(mark)
            scene.reference.where, scene.reference.promises = before
            scene.waiting.append(name)
            scene.check()
