"""Made-up workloads: drawn as described, the same for one seed."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pumice.api.objects import PriorityClass, Queue
from pumice.errors import InputError
from pumice.sim.readers import synthetic

CONSTANT = "durations: {minimum: 100}\nwalltimes: {factor: 2.5, distribution: constant}\n"
BASE = "apiVersion: pumice.dev/v1\nkind: SyntheticWorkload\njobs: 400\npod: {cpu: 1}\n"


@pytest.fixture
def drawn(tmp_path: Path) -> Any:
    def draw(more: str = "", seed: Any = 3) -> Any:
        path = tmp_path / "w.yaml"
        path.write_text(BASE + more, encoding="utf-8")
        return synthetic.read(path, seed=seed)

    return draw


def test_one_seed_draws_one_workload_and_another_seed_another(drawn: Any) -> None:
    assert drawn().jobs == drawn().jobs
    assert drawn().jobs != drawn(seed=4).jobs


def test_sizes_queues_and_priorities_come_as_often_as_stated(drawn: Any) -> None:
    jobs = drawn(
        "sizes: {2: 3, 5: 1}\npriorities: {high: 0.25}\n"
        "queues: [{name: a, share: 3}, {name: b, share: 1}]\n"
    ).jobs
    assert {job.size for job in jobs} == {2, 5}
    assert all(job.min_member == job.size for job in jobs)
    for found in (
        sum(job.size == 5 for job in jobs),
        sum(job.queue == "b" for job in jobs),
        sum(job.priority_class == "high" for job in jobs),
    ):
        assert 70 <= found <= 130  # a quarter of 400


def test_queues_and_priority_classes_are_part_of_the_cluster(drawn: Any) -> None:
    objects = drawn(
        "priorities: {high: 0.1, low: 0.1}\npriorityValues: {high: 7}\n"
        "queues: [{name: a, weight: 4, capability: {cpu: 8}, guarantee: {cpu: 2}}]\n"
    ).objects
    (queue,) = (thing for thing in objects if isinstance(thing, Queue))
    classes = {t.metadata.name: t.value for t in objects if isinstance(t, PriorityClass)}
    assert (queue.metadata.name, queue.spec.weight) == ("a", 4)
    assert queue.spec.capability == {"cpu": 8}
    assert queue.spec.guarantee.resource == {"cpu": 2}
    assert classes == {"high": 7, "low": 20}


def test_jobs_come_evenly_at_random_or_in_bursts(drawn: Any) -> None:
    def gaps(process: Any) -> Any:
        jobs = drawn(f"arrivals: {{process: {process}, meanSeconds: 10, burst: 8}}\n").jobs
        return [after.arrival - before.arrival for before, after in pairwise(jobs)]

    assert set(gaps("uniform")) == {10.0}
    assert 8 < np.mean(gaps("poisson")) < 12
    assert len(set(gaps("poisson"))) > 100
    bursts = gaps("bursts")
    assert sum(gap > 0 for gap in bursts) == 400 / 8 - 1
    assert 6 < np.mean(bursts) < 14


@pytest.mark.parametrize(
    ("distribution", "low", "high"),
    [("lognormal", 80, 120), ("uniform", 80, 120), ("constant", 100, 100), ("exponential", 55, 85)],
)
def test_run_times_have_the_middle_that_is_stated(
    drawn: Any, distribution: str, low: int, high: int
) -> None:
    jobs = drawn(f"durations: {{distribution: {distribution}, median: 100}}\n").jobs
    assert low <= np.median([job.run_seconds for job in jobs]) <= high


def test_run_times_are_kept_between_their_bounds(drawn: Any) -> None:
    jobs = drawn("durations: {median: 100, sigma: 3, minimum: 50, maximum: 200}\n").jobs
    assert {50.0, 200.0} <= {job.run_seconds for job in jobs}
    assert all(50 <= job.run_seconds <= 200 for job in jobs)


def test_users_ask_for_more_time_than_their_jobs_run(drawn: Any) -> None:
    assert {job.walltime for job in drawn().jobs} == {None}
    jobs = drawn("walltimes: {factor: 3}\n").jobs
    factors = [job.walltime / job.run_seconds for job in jobs]
    assert min(factors) >= 1
    assert 2.8 < max(factors) <= 3.001
    assert 1.9 < np.mean(factors) < 2.1
    assert {round(job.walltime / job.run_seconds, 3) for job in drawn(CONSTANT).jobs} == {2.5}


def test_requested_times_are_rounded_up_to_a_step(drawn: Any) -> None:
    jobs = drawn("walltimes: {factor: 3, step: 300}\n").jobs
    assert all(job.walltime % 300 == 0 and job.walltime >= job.run_seconds for job in jobs)


def test_requested_times_leave_the_other_draws_as_they_are(drawn: Any) -> None:
    def without(more: str) -> Any:
        return [(job.arrival, job.run_seconds, job.size) for job in drawn(more).jobs]

    assert without("") == without("walltimes: {factor: 3}\n")


def test_nodes_are_those_described_or_none(drawn: Any) -> None:
    hint = drawn("nodes: {count: 3, allocatable: {cpu: 4}}\n").node_hint
    assert (hint.count, hint.allocatable) == (3, {"pods": "110", "cpu": "4"})
    assert drawn().node_hint is None


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("colour: red\n", "unknown field 'colour'"),
        ("sizes: {0: 1}\n", "sizes"),
        ("sizes: {1: 0}\n", "sizes: expected parts from 0 up, not all 0"),
        ("arrivals: {process: never}\n", "arrivals.process"),
        ("arrivals: {meanSeconds: 0}\n", "arrivals.meanSeconds"),
        ("durations: {median: -1}\n", "durations.median"),
        ("durations: {minimum: 9, maximum: 8}\n", "durations.minimum: expected at most 8"),
        ("durations: {distribution: uniform, median: 5, minimum: 9}\n", "expected at most 5"),
        ("walltimes: {factor: 0.5}\n", "walltimes.factor"),
        ("walltimes: {distribution: normal}\n", "walltimes.distribution"),
        ("queues: [{name: a, share: -1}]\n", "queues.share: expected parts"),
        ("queues: [{name: a}, {name: a}]\n", "queues: expected queues with different names"),
        ("nodes: {count: 0, allocatable: {}}\n", "nodes.count"),
        ("pod: [\n", "expected readable YAML"),
    ],
)
def test_what_cannot_be_drawn_is_reported_with_file_and_field(
    drawn: Any, more: str, message: str
) -> None:
    with pytest.raises(InputError) as error:
        drawn(more)
    assert "w.yaml:" in str(error.value)
    assert message in str(error.value)


DESCRIPTION = """\
apiVersion: pumice.dev/v1
kind: SyntheticWorkload
jobs: 2
pod: {cpu: 2}
sizes: {1: 0.5}
arrivals: {process: uniform}
nodes: {count: 2, allocatable: {cpu: 8}}
queues: [{name: a, weight: 3}]
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("jobs: 2", "jobs: ten", ":3: SyntheticWorkload: jobs: expected an integer from 1 up"),
        ("jobs: 2", "job: 2", "unknown field 'job'; did you mean 'jobs'?"),
        ("cpu: 2", "cpu: 2 cores", ":4: SyntheticWorkload: pod.cpu: expected a quantity"),
        ("cpu: 8", "cpu: 8x", ":7: SyntheticWorkload: nodes.allocatable.cpu: expected a quantity"),
        ("uniform", "evenly", "expected one of bursts, poisson, uniform, got 'evenly'"),
        (
            "1: 0.5",
            "one: 0.5",
            ":5: SyntheticWorkload: sizes: expected an integer from 1 up as key",
        ),
        ("1: 0.5", "1: half", "sizes.1: expected a number, got 'half'"),
        ("weight: 3", "weight: x", "queues[0].weight: expected an integer, got 'x'"),
    ],
)
def test_a_wrong_description_names_line_field_and_what_was_wanted(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(DESCRIPTION.replace(old, new), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        synthetic.read(path, seed=0)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_amounts_may_be_fractions(tmp_path: Path) -> None:
    path = tmp_path / "w.yaml"
    path.write_text(DESCRIPTION.replace("cpu: 2", "cpu: 0.5"), encoding="utf-8")
    (container,) = synthetic.read(path, seed=0).jobs[0].tasks[0].spec.containers
    assert container.resources.requests == {"cpu": "0.5"}
