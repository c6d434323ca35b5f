"""Objects that somebody wrote to do harm: the others are taken in and placed all the same."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pumice.api import annotations
from pumice.cache.informer import Informer
from pumice.cache.ingest import Ingest
from pumice.cache.pod_cells import TASK_PRIORITY
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.core.consistency import check
from pumice.core.snapshot import Snapshot
from pumice.scheduler import Scheduler
from pumice.testing import hyper_node, node, pdb, pod, pod_group, queue
from tests.properties.clusters import conf_of

EVERY_PLUGIN = conf_of(
    ["enqueue", "allocate", "backfill", "preempt", "reclaim", "gangpreempt", "shuffle"],
    ["priority", "gang", "conformance", "sla", "tdm", "cdp", "pdb"],
    [
        *("drf", "predicates", "capacity", "nodeorder", "binpack", "overcommit", "usage"),
        *("task-topology", "network-topology-aware", "deviceshare", "numa-aware"),
        *("resourcequota", "resource-strategy-fit", "rescheduling", "nodegroup"),
    ],
)
CONF = conf_of(
    ["enqueue", "allocate", "backfill", "preempt", "reclaim"],
    ["priority", "gang", "conformance"],
    ["drf", "predicates", "proportion", "nodeorder", "binpack"],
)
NOTES = sorted(
    {
        value
        for name, value in vars(annotations).items()
        if name.isupper() and isinstance(value, str)
    }
    | {TASK_PRIORITY}
)
TEXTS = st.one_of(
    st.sampled_from(
        [
            "9" * 30,
            "9" * 5000,
            "0" * 5000,
            "-1",
            "1e99",
            "nan",
            "inf",
            "-9" * 20,
            "0x1",
            "",
            "\u0663",
            "a/b/c",
        ]
    ),
    st.text(max_size=8),
    st.integers().map(str),
)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.none(), st.booleans(), st.lists(st.none())
)
QUANTITIES = st.one_of(
    NUMBERS,
    TEXTS,
    st.sampled_from(["9223372036854775807", "8E", "1e18", "1n", "2Ei", "1m", "9" * 5000]),
)
NAMES = st.one_of(
    st.sampled_from(["cpu", "memory", "pods", "ephemeral-storage", "hugepages-2Mi", "x.org/a"]),
    st.integers(0, 99).map(lambda i: f"example.com/x{i}"),
    TEXTS,
)
AMOUNTS = st.dictionaries(NAMES, QUANTITIES, max_size=4)
MARKS = st.dictionaries(st.one_of(st.sampled_from(NOTES), TEXTS), TEXTS, max_size=4)
TIMES = st.one_of(
    TEXTS, st.sampled_from(["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
)
CONDITIONS = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["rank", "for", ""]),
        "operator": st.sampled_from(["Gt", "Lt", "In", "Exists"]),
        "values": st.lists(TEXTS, max_size=2),
    }
).map(lambda condition: {"matchExpressions": [condition]})
WISHES = st.one_of(
    CONDITIONS.map(
        lambda term: {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
        }
    ),
    CONDITIONS.map(
        lambda term: {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 5, "preference": term}]
        }
    ),
)


@st.composite
def hostile_pods(draw: Any, name: Any) -> Any:
    manifest = pod(name, node=draw(st.sampled_from([None, "n", "nowhere"])), labels=draw(MARKS))
    manifest["metadata"]["annotations"] = draw(MARKS)
    spec, part = (
        manifest["spec"],
        draw(st.sampled_from(["requests", "overhead", "spec", "affinity", "status"])),
    )
    if part == "requests":
        spec["containers"][0]["resources"] = {"requests": draw(AMOUNTS)}
    elif part == "overhead":
        spec["overhead"] = draw(AMOUNTS)
    elif part == "spec":
        field = draw(st.sampled_from(["priority", "tolerations", "affinity", "nodeSelector"]))
        spec[field] = draw(st.one_of(NUMBERS, MARKS))
    elif part == "affinity":
        spec["affinity"] = {"nodeAffinity": draw(WISHES)}
    else:
        manifest["status"]["startTime"] = draw(TIMES)
    return manifest


@st.composite
def hostile_groups(draw: Any, name: Any) -> Any:
    manifest = pod_group(name)
    field = draw(st.sampled_from(["minMember", "minResources", "minTaskMember", "queue"]))
    manifest["spec"][field] = draw(st.one_of(NUMBERS, AMOUNTS, TEXTS))
    manifest["metadata"]["annotations"] = draw(MARKS)
    return manifest


@st.composite
def hostile_queues(draw: Any, name: Any) -> Any:
    manifest = queue(name)
    field = draw(st.sampled_from(["weight", "capability", "deserved", "priority", "parent"]))
    manifest["spec"][field] = draw(st.one_of(NUMBERS, AMOUNTS, TEXTS))
    return manifest


@st.composite
def worlds(draw: Any) -> Any:
    makers = draw(
        st.lists(
            st.sampled_from([hostile_pods, hostile_pods, hostile_groups, hostile_queues]),
            min_size=1,
            max_size=6,
        )
    )
    return [
        draw(make(f"bad-{make.__name__}-{i}".replace("_", "-"))) for i, make in enumerate(makers)
    ]


def start(cluster: Any) -> None:
    cluster.restore([node("n", cpu=4), node("free", cpu=4, labels={"for": "good"})])
    cluster.restore([queue("default"), queue("quiet"), pod_group("quiet", queue="quiet")])


def good_one() -> Any:
    return pod("good", group="quiet", cpu=1, spec={"nodeSelector": {"for": "good"}})


@st.composite
def hostile_nodes(draw: Any, name: Any) -> Any:
    """A node, a topology or a budget: what those who run a cluster write, or its machines."""
    made = [
        node(name, labels=draw(MARKS), annotations=draw(MARKS), resources=draw(SOUND)),
        hyper_node(name, tier=draw(st.integers(-5, 2**31)), nodes=["n"], children=[name, "x"]),
        pdb(name, match_labels=draw(MARKS), disruptions_allowed=draw(st.integers(-9, 2**31))),
        numa_topology(draw(st.sampled_from(["n", "free"])), draw(TEXTS), draw(TEXTS)),
        quota(name, draw(AMOUNTS)),
    ]
    return draw(st.sampled_from(made))


SOUND = st.dictionaries(NAMES, st.sampled_from(["1", "8E", "1m", "9" * 30]), max_size=3)


def numa_topology(name: str, cpus: str, cpu: str) -> Any:
    detail = {cpu: {"numa": cpus, "socket": cpu, "core": cpus}}
    return {
        "apiVersion": "nodeinfo.volcano.sh/v1alpha1",
        "kind": "Numatopology",
        "metadata": {"name": name},
        "spec": {"numares": {"cpu": {"allocatable": cpus, "capacity": 4}}, "cpuDetail": detail},
    }


def quota(name: str, hard: Any) -> Any:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hard": hard},
        "status": {"hard": hard, "used": hard},
    }


@settings(max_examples=30, deadline=None)
@given(st.lists(st.one_of(worlds(), hostile_nodes("bad").map(lambda one: [one])), max_size=4))
def test_no_shipped_plugin_fails_over_an_object(bad: Any) -> None:
    cluster = EmbeddedCluster()
    start(cluster)
    cluster.restore([one for world in bad for one in world])
    cluster.restore([good_one()])
    informer = Informer(cluster, Ingest(Snapshot()))
    informer.sync()
    scheduler = Scheduler(EVERY_PLUGIN, seed=3)
    for now in (0.0, 10.0):
        assert scheduler.decide(informer.snapshot, now).failures == []


@settings(max_examples=30, deadline=None)
@given(bad=worlds(), changed=worlds())
def test_a_bad_object_hurts_only_itself(bad: Any, changed: Any) -> None:
    """They come, change and go beside a good pod, which is placed each time."""
    cluster = EmbeddedCluster()
    start(cluster)
    informer = Informer(cluster, Ingest(Snapshot()))
    informer.sync()
    before = informer.snapshot.nodes.idle[:3].tolist()
    cluster.restore([*bad, good_one()])
    steps: tuple[list[Any], ...] = (changed, [])
    for step in steps:
        informer.sync()
        check(informer.snapshot)
        anew = Informer(cluster, Ingest(Snapshot()))
        anew.sync()
        for snapshot in (informer.snapshot, anew.snapshot):
            decided = Scheduler(CONF, seed=3).decide(snapshot, 0.0)
            assert decided.binds.get("default/good") == "free"
        assert set(anew.snapshot.tasks.row_of) == set(informer.snapshot.tasks.row_of)
        cluster.restore(step)
    for kind in ("Pod", "PodGroup.scheduling.volcano.sh", "Queue.scheduling.volcano.sh"):
        for manifest in cluster.list(kind)[0]:
            meta = manifest["metadata"]
            if meta["name"].startswith(("bad", "good")):
                cluster.delete(kind, meta.get("namespace", ""), meta["name"], grace_s=0)
    informer.sync()
    check(informer.snapshot)
    assert informer.snapshot.nodes.idle[:3].tolist() == before
