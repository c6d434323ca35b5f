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
from pumice.testing import node, pod, pod_group, queue
from tests.properties.clusters import conf_of

CONF = conf_of(
    ["enqueue", "allocate", "backfill", "preempt", "reclaim"],
    ["priority", "gang", "conformance"],
    ["drf", "predicates", "proportion", "nodeorder", "binpack"],
)
NOTES = sorted(
    {value for name, value in vars(annotations).items() if name.isupper()} | {TASK_PRIORITY}
)
TEXTS = st.one_of(
    st.sampled_from(
        ["9" * 30, "-1", "1e99", "nan", "inf", "-9" * 20, "0x1", "", "\u0663", "a/b/c"]
    ),
    st.text(max_size=8),
    st.integers().map(str),
)
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.none(), st.booleans(), st.lists(st.none())
)
QUANTITIES = st.one_of(
    NUMBERS, TEXTS, st.sampled_from(["9223372036854775807", "8E", "1e18", "1n", "2Ei", "1m"])
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


@st.composite
def hostile_pods(draw: Any, name: Any) -> Any:
    manifest = pod(name, node=draw(st.sampled_from([None, "n", "nowhere"])), labels=draw(MARKS))
    manifest["metadata"]["annotations"] = draw(MARKS)
    spec, part = manifest["spec"], draw(st.sampled_from(["requests", "overhead", "spec", "status"]))
    if part == "requests":
        spec["containers"][0]["resources"] = {"requests": draw(AMOUNTS)}
    elif part == "overhead":
        spec["overhead"] = draw(AMOUNTS)
    elif part == "spec":
        field = draw(st.sampled_from(["priority", "tolerations", "affinity", "nodeSelector"]))
        spec[field] = draw(st.one_of(NUMBERS, MARKS))
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


@settings(max_examples=60, deadline=None)
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
