"""drf in a tree of queues: branches are judged by the share of each of their children."""

from typing import Any

import numpy as np
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


@pytest.mark.parametrize("weights", ["100/0.5", "100/none", "100", ""])
def test_a_weight_below_one_or_unreadable_counts_as_one(tree: Any, weights: str) -> None:
    world = [branch("a", "root/a", weights), branch("b", "root/b", "100/1")]
    world += job("ja", "a", [(1, 0)], [(9, 0)]) + job("jb", "b", [(2, 0)], [(9, 0)])
    assert order(tree(*world)) == ["a", "b"]


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


# Against plain loops


class SlowTree:
    """Shares of a tree of branches, from the leaves up, with plain loops over dictionaries."""

    def __init__(self, total: Any, jobs: Any, weights: Any) -> None:
        """Take jobs as (path, held, asked), and weights by path."""
        self.total, self.jobs, self.weights = total, jobs, weights
        taken = {name: sum(held[name] for _, held, _ in jobs) for name in total}
        self.exhausted = {n for n in total if total[n] <= 0 or taken[n] >= total[n]}

    def share(self, held: Any) -> float:
        return max((held[n] / self.total[n] for n in self.total if self.total[n]), default=0.0)

    def settle(self, path: tuple[str, ...]) -> tuple[Any, float, bool]:
        """Return amounts, share and saturation of a branch."""
        parts = [
            (held, self.share(held), self.is_full(held, asked))
            for at, held, asked in self.jobs
            if at == path
        ]
        below = {at[: len(path) + 1] for at, _, _ in self.jobs if at[: len(path)] == path != at}
        parts += [self.settle(each) for each in sorted(below)]
        least = min((share for _, share, full in parts if share > 0 and not full), default=1.0)
        sums = dict.fromkeys(self.total, 0.0)
        for held, share, full in parts:
            for name in self.total if share > 0 else ():
                sums[name] += held[name] * (1.0 if full else least / share)
        return sums, self.share(sums), all(full for _, _, full in parts)

    def is_full(self, held: Any, asked: Any) -> bool:
        return any(
            held[n] > 0 and asked[n] > 0 and (held[n] >= asked[n] or n in self.exhausted)
            for n in self.total
        )


@pytest.mark.parametrize("seed", range(25))
def test_the_tree_is_settled_as_plain_loops_settle_it(tree: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    paths = {f"q{i}": tuple(rng.choice(list("ab"), int(rng.integers(1, 4)))) for i in range(4)}
    weights: dict[Any, int] = {}
    world, jobs = [], []
    for name, path in paths.items():
        given = [str(rng.integers(1, 4)) for _ in path]
        world.append(branch(name, "/".join(("root", *path)), "/".join(("1", *given))))
    for i in range(6):
        name = f"q{i % 4}"
        sizes = [(int(rng.integers(0, 3)), int(rng.integers(0, 3))) for _ in range(3)]
        held, asked = sizes[: int(rng.integers(3))], sizes
        world += job(f"j{i}", name, held, sizes[len(held) :])
        names = ("cpu", "memory", "pods")
        amounts = [
            [sum(each[0] for each in some), sum(each[1] for each in some), len(some)]
            for some in (held, asked)
        ]
        jobs.append((paths[name], *(dict(zip(names, each, strict=True)) for each in amounts)))
    ssn = tree(*world)
    plugin = ssn.plugins[0]
    found = standing(ssn)
    slow = SlowTree({"cpu": 10, "memory": 10, "pods": 1000}, jobs, weights)
    by_branch: dict[int, tuple[str, ...]] = {0: ()}
    for (parent, name), number in plugin._tree._branch_of.items():
        by_branch[number] = (*by_branch[parent], name)
    for number, path in by_branch.items():
        _, share, full = slow.settle(path)
        weight = plugin._tree._weights[number]
        assert found.share[number] * weight == pytest.approx(share), path
        assert found.saturated[number] is full, path


def test_pods_of_no_job_are_not_reclaimed(tree: Any) -> None:
    world = [branch("a", "root/a", "1/1"), branch("b", "root/b", "1/1")]
    world += job("old", "a", [(4, 0)], [(1, 0)]) + job("new", "b", (), [(1, 0), (1, 0)])
    ssn = tree(*world, pod("stray", cpu=3, node="n"))
    rows = ssn.snapshot.tasks.row_of
    candidates = [rows["default/stray"], rows["default/old-0"]]
    plugin, asking = ssn.plugins[0], ssn.task(rows["default/new-0"])
    assert plugin.reclaimable(asking, candidates).tolist() == [False, False]
    assert plugin.preemptable(asking, candidates).tolist()[0] is False
