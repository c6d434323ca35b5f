"""drf in a tree of queues: branches are judged by the share of each of their children."""

from typing import Any

import pytest

from pumice.api.annotations import HIERARCHY, HIERARCHY_WEIGHTS
from pumice.plugins.drf import Drf
from pumice.testing import node, pod, pod_group, queue

CLUSTER = node("n", cpu=10, memory="10Gi", pods=1000)


def branch(name: Any, path: Any, weights: Any) -> Any:
    return queue(name, annotations={HIERARCHY: path, HIERARCHY_WEIGHTS: weights})


def job(name: Any, in_queue: Any, running: Any = (), waiting: Any = ()) -> Any:
    """A job of pods given as (cpu, memory in Gi)."""
    out = [pod_group(name, queue=in_queue, phase="Running")]
    sized = [(each, "n") for each in running] + [(each, None) for each in waiting]
    for i, ((cpu, memory), on) in enumerate(sized):
        amounts = {"cpu": cpu, "memory": f"{memory}Gi"}
        out.append(pod(f"{name}-{i}", group=name, resources=amounts, node=on))
    return out


@pytest.fixture
def tree(open_session: Any) -> Any:
    def opened(*objects: Any) -> Any:
        return open_session([CLUSTER, *objects], Drf(), enableHierarchy=True)

    return opened


def order(ssn: Any) -> Any:
    queues = ssn.snapshot.queues
    return [queues.names[row] for row in ssn.ordering.sort_queues(range(queues.n))]


def standing(ssn: Any) -> Any:
    """Weighted share and saturation by branch."""
    plugin = ssn.plugins[0]
    return plugin._tree.settle(plugin._tree.holdings())


def test_shares_are_divided_by_weights(tree: Any) -> None:
    """2 cpu at weight 4 come before 1 cpu at weight 1."""
    world = [branch("a", "root/a", "100/4"), branch("b", "root/b", "100/1")]
    world += job("ja", "a", [(2, 0)], [(9, 0)]) + job("jb", "b", [(1, 0)], [(9, 0)])
    assert order(tree(*world)) == ["a", "b"]


@pytest.mark.parametrize("weights", ["100/0.5", "100/none", "100", ""])
def test_a_weight_below_one_or_unreadable_counts_as_one(tree: Any, weights: str) -> None:
    world = [branch("a", "root/a", weights), branch("b", "root/b", "100/1")]
    world += job("ja", "a", [(1, 0)], [(9, 0)]) + job("jb", "b", [(2, 0)], [(9, 0)])
    assert order(tree(*world)) == ["a", "b"]


def test_the_first_job_that_mentions_a_branch_fixes_its_weight(tree: Any) -> None:
    world = [branch("a1", "root/a/1", "100/8/1"), branch("a2", "root/a/2", "100/1/1")]
    world += [branch("b", "root/b", "100/2")]
    world += job("j1", "a1", [(2, 0)], [(9, 0)]) + job("j2", "a2", [(2, 0)], [(9, 0)])
    world += job("jb", "b", [(2, 0)], [(9, 0)])
    assert order(tree(*world))[-1] == "b"


def test_children_are_scaled_to_the_poorest_before_they_are_added_up(tree: Any) -> None:
    """One child has 4 cpu, the other 1: the branch counts as 1 + 1, not 5.

    So it comes before a branch of one child with 3.
    """
    world = [branch("a1", "root/a/1", "1/1/1"), branch("a2", "root/a/2", "1/1/1")]
    world += [branch("b", "root/b", "1/1")]
    world += job("j1", "a1", [(4, 0)], [(9, 0)]) + job("j2", "a2", [(1, 0)], [(9, 0)])
    world += job("jb", "b", [(3, 0)], [(9, 0)])
    ssn = tree(*world)
    assert order(ssn) == ["a2", "a1", "b"]
    tree_ = ssn.plugins[0]._tree
    a = tree_._branch_of[0, "a"]
    assert standing(ssn).share[a] == pytest.approx(0.2)


def test_a_branch_whose_jobs_have_all_they_ask_for_goes_last(tree: Any) -> None:
    """It has less, but can use no more; and it is not scaled down."""
    world = [branch("a", "root/a", "1/1"), branch("b", "root/b", "1/1")]
    world += job("ja", "a", [(1, 0)]) + job("jb", "b", [(5, 0)], [(1, 0)])
    ssn = tree(*world)
    assert order(ssn) == ["b", "a"]
    assert standing(ssn).saturated == [False, True, False]


def test_a_job_that_needs_what_has_run_out_is_saturated(tree: Any) -> None:
    """All cpu is taken, so the job that waits for more cpu can use nothing; memory is left."""
    world = [branch("a", "root/a", "1/1"), branch("b", "root/b", "1/1")]
    world += job("ja", "a", [(10, 0)], [(1, 0)]) + job("jb", "b", [(0, 9)], [(0, 1)])
    assert order(tree(*world)) == ["b", "a"]


def test_a_job_that_holds_nothing_of_what_has_run_out_can_still_use_more(tree: Any) -> None:
    """All cpu is taken by c; a waits for some but holds only memory, less than b."""
    world = [branch(name, f"root/{name}", "1/1") for name in "abc"]
    world += job("ja", "a", [(0, 1)], [(1, 1)]) + job("jb", "b", [(0, 5)], [(0, 1)])
    world += job("jc", "c", [(10, 0)], [(1, 0)])
    assert order(tree(*world)) == ["a", "b", "c"]


def test_a_branch_is_saturated_when_all_its_children_are(tree: Any) -> None:
    world = [branch("a1", "root/a/1", "1/1/1"), branch("a2", "root/a/2", "1/1/1")]
    world += [branch("b", "root/b", "1/1")]
    world += job("j1", "a1", [(1, 0)]) + job("j2", "a2", [(1, 0)], [(1, 0)])
    world += job("jb", "b", [(4, 0)], [(1, 0)])
    assert order(tree(*world)) == ["a2", "a1", "b"]


def test_queues_of_equal_branches_are_left_to_age_and_name(tree: Any) -> None:
    world = [branch("b", "root/x", "1/1"), branch("a", "root/y", "1/1")]
    world += job("ja", "a", [(1, 0)], [(1, 0)]) + job("jb", "b", [(1, 0)], [(1, 0)])
    assert order(tree(*world)) == ["a", "b"]


def test_a_queue_without_a_path_hangs_at_the_root(tree: Any) -> None:
    """Only the root itself can be compared then, so neither goes first by policy."""
    world = [queue("b"), branch("a", "root/a", "1/1")]
    world += job("ja", "a", [(5, 0)], [(1, 0)]) + job("jb", "b", [(1, 0)], [(1, 0)])
    assert order(tree(*world)) == ["a", "b"]


def test_the_tree_follows_moves_and_moves_taken_back(tree: Any) -> None:
    world = [branch("a", "root/a", "1/1"), branch("b", "root/b", "1/1")]
    world += job("ja", "a", [(1, 0)], [(2, 0), (1, 0)]) + job("jb", "b", [(2, 0)], [(9, 0)])
    ssn = tree(*world)
    assert order(ssn) == ["a", "b"]
    stmt = ssn.statement()
    stmt.place(ssn.snapshot.tasks.row_of["default/ja-1"], 0)
    assert order(ssn) == ["b", "a"]
    stmt.discard()
    assert order(ssn) == ["a", "b"]


@pytest.mark.parametrize(("held", "taken"), [(3, True), (2, False)])
def test_a_task_reclaims_from_a_queue_that_would_still_come_after_its_own(
    tree: Any, held: int, taken: bool
) -> None:
    """With the newcomer's 1 cpu in place, a queue of 3 keeps 2; one of 2 would be even."""
    world = [branch("a", "root/a", "1/1"), branch("b", "root/b", "1/1")]
    world += job("old", "a", [(1, 0)] * held, [(1, 0)]) + job("new", "b", (), [(1, 0), (1, 0)])
    ssn = tree(*world)
    rows = ssn.snapshot.tasks.row_of
    candidates = [rows[f"default/old-{i}"] for i in range(held)]
    found = ssn.policy.reclaimable(ssn.task(rows["default/new-0"]), candidates)
    assert found == (candidates if taken else [])
