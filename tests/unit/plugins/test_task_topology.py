"""task-topology: buckets of tasks that belong together, their order and their nodes."""

from itertools import permutations
from typing import Any

import pytest

from pumice.api.conf import parse_conf
from pumice.framework.dispatch import Enabled
from pumice.framework.session import Session
from pumice.plugins.task_topology import TaskTopology
from pumice.plugins.task_topology.wishes import AFFINITY, ANTI_AFFINITY, TASK_ORDER
from pumice.scheduler import Scheduler
from pumice.testing import node, pod, pod_group, queue
from pumice.testing.samples import snapshot_of

CONF = """
actions: "allocate"
tiers:
- plugins:
  - name: gang
  - name: task-topology
"""


def tasks(role: Any, count: Any, start: Any = 0, **facts: Any) -> Any:
    return [
        pod(f"j-{role}-{i}", group="j", role=role, **({"cpu": 1} | facts))
        for i in range(start, start + count)
    ]


def marks(together: Any = None, apart: Any = None, order: Any = None) -> Any:
    named = {AFFINITY: together, ANTI_AFFINITY: apart, TASK_ORDER: order}
    return {key: text for key, text in named.items() if text is not None}


def job(pods: Any, wishes: Any, **facts: Any) -> Any:
    group = pod_group("j", annotations=wishes, **({"min_member": len(pods)} | facts))
    return [queue("default"), group, *pods]


def opened(pods: Any, wishes: Any, nodes: Any = (), **arguments: Any) -> Any:
    snapshot = snapshot_of([*nodes, *job(pods, wishes)])
    plugin = TaskTopology(**arguments)
    ssn = Session(snapshot, [[Enabled(plugin, {})]])
    return plugin, ssn


def buckets(pods: Any, wishes: Any, nodes: Any = ()) -> Any:
    """Members of each bucket by short pod name, None if the annotations are void."""
    plugin, ssn = opened(pods, wishes, nodes)
    topology = plugin._jobs.get(ssn.snapshot.jobs.row_of["default/j"])
    if topology is None:
        return None
    keys = ssn.snapshot.tasks.keys
    found: Any = [set() for _ in topology.buckets]
    for row, bucket in topology.bucket_of.items():
        found[bucket.index].add(keys[row].removeprefix("default/j-"))
    return found


def binds(objects: Any) -> Any:
    return {
        key.removeprefix("default/j-"): where
        for key, where in Scheduler(parse_conf(CONF)).cycle(objects, 0.0).binds.items()
    }


PAIR = [*tasks("ps", 2), *tasks("worker", 2)]


def test_roles_that_want_to_be_together_share_one_bucket() -> None:
    assert buckets(PAIR, marks("ps,worker")) == [{"ps-0", "ps-1", "worker-0", "worker-1"}]


def test_a_role_alone_in_a_group_wants_its_own_tasks_near() -> None:
    """The others have no wish and stay out of buckets."""
    assert buckets(PAIR, marks("worker")) == [{"worker-0", "worker-1"}]


def test_a_role_that_shuns_itself_gets_a_bucket_for_each_task() -> None:
    assert buckets(PAIR, marks(apart="worker")) == [{"worker-0"}, {"worker-1"}]


def test_wishes_add_up_bucket_by_bucket() -> None:
    """Workers apart open two buckets; each ps joins one, the emptier one first."""
    found = buckets(PAIR, marks("ps,worker", "worker"))
    assert [{"worker-0", "ps-0"}, {"worker-1", "ps-1"}] == found


def test_an_emptier_bucket_wins_among_equals() -> None:
    pods = [*tasks("big", 1, cpu=4), *tasks("small", 1), *tasks("tail", 1)]
    found = buckets(pods, marks("tail,big;tail,small", "big,small"))
    assert found == [{"big-0"}, {"small-0", "tail-0"}]


def test_tasks_that_have_a_node_fill_the_bucket_of_that_node() -> None:
    nodes = [node("n0"), node("n1")]
    pods = [*tasks("a", 1, node="n1"), *tasks("a", 1, 1, node="n0"), *tasks("a", 1, 2)]
    assert buckets(pods, marks("a"), nodes) == [{"a-1", "a-2"}, {"a-0"}]


@pytest.mark.parametrize(
    "wishes",
    [
        {},
        marks("ps,nosuch"),
        marks("ps,ps"),
        marks(apart="nosuch"),
        marks("ps", order="worker,nosuch"),
        marks("ps, worker"),
    ],
)
def test_no_annotation_or_one_wrong_name_switches_the_plugin_off_for_the_job(wishes: Any) -> None:
    assert buckets(PAIR, wishes) is None


def test_a_job_without_pending_tasks_is_left_alone() -> None:
    pods = tasks("ps", 2, node="n0")
    assert buckets(pods, marks("ps"), [node("n0")]) is None


def order(pods: Any, wishes: Any) -> Any:
    """Short names in the order in which the tasks would be taken."""
    _, ssn = opened(pods, wishes)
    rows = ssn.ordering.sort_tasks(ssn.snapshot.jobs.tasks[0])
    return [ssn.snapshot.tasks.keys[row].removeprefix("default/j-") for row in rows]


def test_bigger_buckets_go_first_and_tasks_outside_last() -> None:
    pods = [*tasks("out", 1), *tasks("one", 1), *tasks("two", 2)]
    assert order(pods, marks("one;two", "one,two")) == ["two-0", "two-1", "one-0", "out-0"]


def test_inside_a_bucket_the_wanted_order_decides_and_then_the_strength_of_wishes() -> None:
    pods = [*tasks("a", 1), *tasks("b", 1), *tasks("c", 1)]
    assert order(pods, marks("a,b,c", order="c,b")) == ["c-0", "b-0", "a-0"]
    assert order(pods, marks("a,b,c;b", "c")) == ["c-0", "a-0", "b-0"]


def test_buckets_take_turns_as_they_shrink() -> None:
    """Who is next is settled when a task is taken, so the order lags one placement behind."""
    pods = [*tasks("a", 3), *tasks("b", 3)]
    found = binds([node("n", cpu=10), *job(pods, marks("a;b", "a,b"))])
    assert list(found) == ["a-0", "a-1", "b-0", "b-1", "b-2", "a-2"]


def scores(
    pods: Any, wishes: Any, nodes: Any, task: Any, placed: Any = (), **arguments: Any
) -> Any:
    plugin, ssn = opened(pods, wishes, nodes, **arguments)
    row_of = ssn.snapshot.tasks.row_of
    stmt = ssn.statement()
    for name, where in placed:
        stmt.place(row_of[f"default/j-{name}"], ssn.snapshot.nodes.row_of[where])
    column = plugin.rank_nodes(ssn.task(row_of[f"default/j-{task}"]), ssn.nodes())
    return None if column is None else column.tolist()


def test_the_score_is_the_part_of_the_bucket_that_fits() -> None:
    nodes = [node("all", cpu=4), node("two", cpu=2), node("none", cpu="500m")]
    assert scores(tasks("a", 4), marks("a"), nodes, "a-0") == [100, 50, 0]
    assert scores(tasks("a", 4), marks("a"), nodes, "a-0", weight=3) == [300, 150, 0]


def test_the_task_itself_is_never_dropped_from_its_bucket() -> None:
    pods = [*tasks("a", 1, cpu=3), *tasks("a", 3, 1)]
    nodes = [node("n", cpu=3), node("m", cpu=5)]
    assert scores(pods, marks("a"), nodes, "a-0") == [25, 75]


def test_members_already_on_a_node_count_for_it() -> None:
    nodes = [node("here", cpu=4), node("there", cpu=4)]
    found = scores(tasks("a", 3), marks("a"), nodes, "a-1", placed=[("a-0", "here")])
    assert found == pytest.approx([100, 200 / 3])


def test_tasks_to_be_kept_away_from_count_against_a_node() -> None:
    """Each worker has a bucket of its own; the node of the other one loses a point."""
    nodes = [node("here", cpu=4), node("there", cpu=4)]
    pods = tasks("w", 2)
    assert scores(pods, marks(apart="w"), nodes, "w-1", placed=[("w-0", "here")]) == [0, 100]


def test_tasks_outside_buckets_have_no_opinion() -> None:
    assert scores(PAIR, marks("worker"), [node("a"), node("b")], "ps-0") is None


def test_a_rolled_back_placement_leaves_no_trace_in_the_buckets() -> None:
    nodes = [node("here", cpu=4), node("there", cpu=4)]
    plugin, ssn = opened(tasks("a", 3), marks("a"), nodes)
    snapshot = ssn.snapshot
    task = ssn.task(snapshot.tasks.row_of["default/j-a-1"])
    before = plugin.rank_nodes(task, ssn.nodes()).tolist()
    stmt = ssn.statement()
    stmt.place(snapshot.tasks.row_of["default/j-a-0"], 0)
    assert plugin.rank_nodes(task, ssn.nodes()).tolist() != before
    stmt.discard()
    assert plugin.rank_nodes(task, ssn.nodes()).tolist() == before


def test_a_gang_is_kept_together_on_the_node_that_can_take_it() -> None:
    """Node b has room for two of three only."""
    objects = [node("b", cpu=2), node("a", cpu=3), *job(tasks("w", 3), marks("w"))]
    assert set(binds(objects).values()) == {"a"}


OLD, NEW = "2026-01-15T08:00:00Z", "2026-01-15T09:00:00Z"


def member(name: Any, of: Any, role: Any, created: Any) -> Any:
    return pod(name, group=of, role=role, cpu=1, node="n0", created=created)


def victims(*pods: Any, **wishes: Any) -> Any:
    """Order running pods of jobs by who goes first; each group with wishes waits for a pod too."""
    waiting = [pod(f"{name}-wait", group=name, role="worker", cpu=1) for name in wishes]
    groups = [pod_group(name, min_member=0, annotations=wishes.get(name)) for name in "ab"]
    ssn = Session(
        snapshot_of([queue("default"), node("n0", cpu=9), *groups, *pods, *waiting]),
        [[Enabled(TaskTopology(), {})]],
    )
    tasks = ssn.snapshot.tasks
    rows = [tasks.row_of[f"default/{each['metadata']['name']}"] for each in pods]
    ordered = ssn.ordering.sort_victims(rows, ssn.snapshot.queues.row_of["default"])
    return [tasks.keys[row].removeprefix("default/") for row in ordered]


WISHES = marks("worker", order="ps,worker")


def test_between_jobs_of_which_one_has_no_wishes_age_decides() -> None:
    """Task-topology would put the older pod outside its buckets behind all others."""
    pods = member("a-ps", "a", "ps", OLD), member("b-w", "b", None, NEW)
    assert victims(*pods, a=WISHES) == ["b-w", "a-ps"]
    pods = member("a-ps", "a", "ps", NEW), member("b-w", "b", None, OLD)
    assert victims(*pods, a=WISHES) == ["a-ps", "b-w"]


def test_between_jobs_with_wishes_the_pod_outside_buckets_goes_first() -> None:
    pods = [
        member("a-ps", "a", "ps", OLD),
        member("b-worker", "b", "worker", NEW),
        pod("b-ps", group="b", role="ps", cpu=1),
    ]
    ordered = victims(*pods, a=WISHES, b=WISHES)
    assert [name for name in ordered if name != "b-ps"] == ["a-ps", "b-worker"]


def test_the_size_of_buckets_counts_inside_a_job_only() -> None:
    """Both are in a bucket: that of a has more members waiting, yet age decides."""
    pods = [
        member("a-worker", "a", "worker", NEW),
        member("b-worker", "b", "worker", OLD),
        pod("a-more", group="a", role="worker", cpu=1),
    ]
    alone = marks("worker")
    ordered = victims(*pods, a=alone, b=alone)
    assert [name for name in ordered if name != "a-more"] == ["a-worker", "b-worker"]


@pytest.mark.parametrize("turn", range(6))
def test_a_circle_of_preferences_is_cut_at_the_same_place_whoever_arrived_first(turn: int) -> None:
    """The plugin puts a-ps behind a-worker; age puts a-worker behind b-w, and b-w behind a-ps."""
    pods = [
        member("a-ps", "a", "ps", "2026-01-15T07:00:00Z"),
        member("b-w", "b", None, OLD),
        member("a-worker", "a", "worker", NEW),
    ]
    arrived = list(permutations(pods))[turn]
    assert victims(*arrived, a=WISHES) == victims(*pods, a=WISHES)


def test_a_task_on_a_node_that_is_gone_draws_its_bucket_to_no_other() -> None:
    pods = [*tasks("ps", 1, node="gone"), *tasks("ps", 1, start=1)]
    plugin, ssn = opened(pods, marks(together="ps"), [node(f"n{i}", cpu=4) for i in range(3)])
    (bucket,) = plugin._jobs[ssn.snapshot.jobs.row_of["default/j"]].buckets
    assert bucket.on_node == {}


def test_the_largest_bucket_sets_the_scale_with_members_in_place() -> None:
    nodes = [node("n0", cpu=8), node("n1", cpu=8)]
    pods = [*tasks("a", 2, node="n0"), *tasks("a", 2, 2), *tasks("b", 1)]
    plugin, ssn = opened(pods, marks("a;b", "a,b"), nodes)
    assert plugin._jobs[0].largest == 4
    task = ssn.task(ssn.snapshot.tasks.row_of["default/j-a-2"])
    assert plugin.rank_nodes(task, ssn.nodes()).tolist() == [100, 50]
    alone = ssn.task(ssn.snapshot.tasks.row_of["default/j-b-0"])
    assert plugin.rank_nodes(alone, ssn.nodes()).tolist() == [25, 25]


def test_a_running_task_that_is_evicted_still_counts_where_it_is() -> None:
    nodes = [node("n", cpu=4), node("m", cpu=4)]
    plugin, ssn = opened([*tasks("a", 1, node="n"), *tasks("a", 1, 1)], marks("a"), nodes)
    waiting = ssn.task(ssn.snapshot.tasks.row_of["default/j-a-1"])
    before = plugin.rank_nodes(waiting, ssn.nodes()).tolist()
    ssn.statement().evict(ssn.snapshot.tasks.row_of["default/j-a-0"], "preempt")
    assert plugin.rank_nodes(waiting, ssn.nodes()).tolist() == before == [100, 50]


def test_nodes_without_room_for_the_task_get_nothing_whoever_is_there() -> None:
    nodes = [node("full", cpu=1), node("free", cpu=4)]
    pods = [*tasks("a", 1, node="full"), *tasks("a", 1, 1)]
    assert scores(pods, marks("a"), nodes, "a-1") == [0, 50]
