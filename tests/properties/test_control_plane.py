"""A whole control plane under random workloads: what must hold after every single event."""

from collections import defaultdict
from functools import partial
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import parse_conf
from pumice.clock import VirtualClock
from pumice.cluster.embedded.kubelet import Kubelet
from pumice.cluster.embedded.node_operations import add_node, lose
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.serve.embedded import EmbeddedControlPlane
from pumice.testing import pod, pod_group

GROUP = "PodGroup.scheduling.volcano.sh"
CPUS = 4
CONF = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: binpack}]
"""
GANGS = st.lists(
    st.tuples(
        st.integers(0, 20),  # arrives
        st.integers(1, 5),  # pods
        st.integers(1, 3),  # cpus of each
        st.integers(1, 15),  # runs
    ),
    min_size=1,
    max_size=8,
)
MISHAPS = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from(["lose", "cordon", "fail"]), st.integers(0, 2)),
    max_size=3,
)


class Books:
    """Counts what pods hold on nodes, event by event."""

    def __init__(self, cluster: Any) -> None:
        self.held: dict[Any, Any] = {}
        self.bound: Any = defaultdict(set)
        cluster.listeners.append(self.hear)

    def hear(self, kind: Any, event: Any) -> None:
        if kind != "Pod":
            return
        manifest = event.object
        uid, spec = manifest["metadata"]["uid"], manifest["spec"]
        over = manifest["status"]["phase"] in ("Succeeded", "Failed")
        if spec.get("nodeName"):
            group = manifest["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
            self.bound[group].add(uid)
        if event.type == "DELETED" or over or not spec.get("nodeName"):
            self.held.pop(uid, None)
        else:
            cpus = int(spec["containers"][0]["resources"]["requests"]["cpu"])
            self.held[uid] = spec["nodeName"], cpus
        used: Any = defaultdict(int)
        for node, cpus in self.held.values():
            used[node] += cpus
        assert all(cpus <= CPUS for cpus in used.values()), used


def stage(gangs: Any, nodes: Any = 3) -> Any:
    cluster = EmbeddedCluster(VirtualClock(0.0))
    kubelet = Kubelet(cluster, grace_s=2)
    control = EmbeddedControlPlane(parse_conf(CONF), (), cluster=cluster, kubelet=kubelet)
    for number in range(nodes):
        add_node(cluster, f"n{number}", {"cpu": str(CPUS), "memory": "64Gi"})
    for number, gang in enumerate(gangs):
        cluster.clock.call_at(gang[0], partial(arrive, cluster, f"g{number}", gang))
    return control


def arrive(cluster: Any, name: Any, gang: Any) -> None:
    _, size, cpus, runs = gang
    cluster.create(pod_group(name, min_member=size, phase=None))
    for index in range(size):
        marks = {"pumice.dev/run-seconds": str(runs)}
        cluster.create(pod(f"{name}-{index}", group=name, cpu=cpus, annotations=marks))


def fits(gang: Any, nodes: Any = 3) -> bool:
    return gang[1] <= nodes * (CPUS // gang[2])


@settings(max_examples=8)
@given(GANGS)
def test_gangs_start_whole_no_node_is_overcommitted_and_all_that_fit_end(gangs: Any) -> None:
    """Safety after every event, liveness at the end."""
    control = stage(gangs)
    books = Books(control.cluster)

    def gangs_are_whole(_: Any) -> None:
        for number, gang in enumerate(gangs):
            assert len(books.bound[f"g{number}"]) in (0, gang[1])

    control.on_cycle.append(gangs_are_whole)
    control.run()
    phases = {m["metadata"]["name"]: m["status"]["phase"] for m in control.cluster.list(GROUP)[0]}
    for number, gang in enumerate(gangs):
        assert (phases[f"g{number}"] == "Completed") == fits(gang)
    assert control.clock.now() < 25 + sum(gang[3] + 2 for gang in gangs)


@settings(max_examples=8)
@given(GANGS, MISHAPS)
def test_mishaps_never_overcommit_a_node_nor_leave_a_pod_on_a_lost_one(
    gangs: Any, mishaps: Any
) -> None:
    control = stage(gangs)
    cluster = control.cluster
    Books(cluster)

    def mishap(what: Any, number: Any) -> None:
        name = f"n{number}"
        running = [p for p in cluster.list("Pod")[0] if p["status"]["phase"] == "Running"]
        if what == "fail" and running:
            control.kubelet.fail("default", running[0]["metadata"]["name"])
        elif what != "fail" and cluster.peek("Node", "", name) is not None:
            if what == "lose":
                lose(cluster, name)
            else:
                cluster.patch("Node", "", name, {"spec": {"unschedulable": True}})

    for when, what, number in mishaps:
        cluster.clock.call_at(when + 0.5, lambda w=what, n=number: mishap(w, n))
    control.run()
    there = {m["metadata"]["name"] for m in cluster.list("Node")[0]}
    for manifest in cluster.list("Pod")[0]:
        assert manifest["spec"].get("nodeName") in {None, *there}
        assert manifest["status"]["phase"] != "Running"
    assert not control.scheduler.informer.problems
