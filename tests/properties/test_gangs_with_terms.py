"""Gangs whose pods have to do with each other are placed together as they are one by one."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api.conf import parse_conf
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.reference import reference_decide
from pumice.testing.samples import snapshot_of

HOST, ZONE = "kubernetes.io/hostname", "zone"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
TASK = "volcano.sh/task-spec"


def conf_of(scores: str, *, remember: bool) -> Any:
    return parse_conf(f"""
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{{name: priority}}, {{name: gang}}]
- plugins: [{{name: predicates}}, {{name: proportion}}, {{name: {scores}}}]
configurations:
- name: allocate
  arguments: {{predicateErrorCacheEnable: {str(remember).lower()}}}
""")


def even(skew: int, key: str, app: str, **more: Any) -> dict[str, Any]:
    chosen = {"matchLabels": {"app": app}}
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": chosen,
        **more,
    }


@st.composite
def terms(draw: Any) -> dict[str, Any]:
    """What pods demand of their neighbours."""
    app, key = draw(st.sampled_from("xy")), draw(st.sampled_from([HOST, ZONE, "rack"]))
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    spec: dict[str, Any] = {}
    kinds = draw(st.sets(st.sampled_from(["apart", "near", "even", "twice"]), max_size=2))
    affinity: dict[str, Any] = {}
    if "apart" in kinds:
        affinity["podAntiAffinity"] = {REQUIRED: [term]}
    if "near" in kinds:
        affinity["podAffinity"] = {REQUIRED: [{**term, "topologyKey": ZONE}]}
    if affinity:
        spec["affinity"] = affinity
    if "even" in kinds:
        more = draw(st.sampled_from([{}, {"minDomains": 3}, {"nodeTaintsPolicy": "Honor"}]))
        spec["topologySpreadConstraints"] = [even(draw(st.integers(1, 2)), key, app, **more)]
    if "twice" in kinds:
        spec["topologySpreadConstraints"] = [even(1, ZONE, app), even(2, HOST, app)]
    return spec


@st.composite
def gangs(draw: Any, i: int) -> list[Any]:
    name, size = f"g{i}", draw(st.integers(4, 9))
    least = draw(st.sampled_from([size, size, size - 2, 1]))
    spec, ports = draw(terms()), draw(st.sampled_from([None, None, 8080]))
    labels = {"app": draw(st.sampled_from("xy"))}
    roles = draw(st.sampled_from([["w"], ["w"], ["w", "v"], []]))
    cpu = draw(st.sampled_from(["250m", "1", "2"]))
    made = [pod_group(name, queue="q", phase="Inqueue", min_member=least, created=when(i))]
    for k in range(size):
        notes = {TASK: roles[k * len(roles) // size]} if roles else {}
        each = pod(
            f"{name}-{k}",
            group=name,
            cpu=cpu,
            memory="1Gi",
            labels=labels,
            spec=spec,
            annotations=notes,
            created=when(i),
        )
        if ports:
            each["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": ports}]
        made.append(each)
    return made


def when(i: int) -> str:
    return f"2026-01-01T00:00:{i:02d}Z"


@st.composite
def clusters(draw: Any) -> list[Any]:
    limit = draw(st.sampled_from([None, None, {"cpu": 7}]))
    made: list[Any] = [queue("q", capability=limit)]
    n = draw(st.integers(3, 10))
    for i in range(n):
        labels = {HOST: f"n{i}"} | ({ZONE: "abc"[i % 3]} if draw(st.integers(0, 9)) else {})
        cpu, pods = draw(st.sampled_from([2, 4, 8])), draw(st.sampled_from([2, 110]))
        made.append(node(f"n{i}", cpu=cpu, memory="64Gi", pods=pods, labels=labels))
    for i in range(draw(st.integers(0, 3))):
        labels, spec = {"app": draw(st.sampled_from("xy"))}, draw(terms())
        at = f"n{draw(st.integers(0, n - 1))}"
        made.append(pod(f"r{i}", node=at, cpu="500m", labels=labels, spec=spec, phase="Running"))
    for i in range(draw(st.integers(1, 3))):
        made += draw(gangs(i))
    return made


@settings(max_examples=75)
@given(
    cluster=clusters(),
    scores=st.sampled_from(["nodeorder", "binpack", "conformance"]),
    remember=st.booleans(),
    seed=st.integers(0, 9),
)
def test_gangs_with_terms_are_placed_as_the_plain_way_places_them(
    cluster: Any, scores: Any, remember: Any, seed: Any
) -> None:
    conf = conf_of(scores, remember=remember)
    fast = Scheduler(conf, seed=seed).decide(snapshot_of(cluster), 0.0)
    assert fast == reference_decide(snapshot_of(cluster), conf, seed=seed)
