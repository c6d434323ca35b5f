"""A step interface for policies that learn, in the style of Gymnasium, on Pumice's simulator.

At each step the scheduler is about to run a cycle; the action says which of the oldest waiting jobs
goes first.  Needs nothing but Pumice: ``reset`` and ``step`` are called as those of Gymnasium,
whose spaces ``n_actions`` and ``observation_shape`` describe.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pumice
from pumice.api.conf import parse_conf
from pumice.plugin import Column, Jobs, Plugin, SimulatorAssumptions
from pumice.sim.engine import Engine, simulated_scheduler
from pumice.sim.inputs import prepare
from pumice.sim.job_run import JobRun
from pumice.sim.measure import Measures
from pumice.sim.workload import Workload

Observation = NDArray[np.float64]
Policy = Callable[[Observation], int]
FEATURES = ("there", "hours waited", "hours asked for", "part of the cluster", "fits now")
SHORTEST_RUN_S = 10.0
"""Bounded slowdown takes shorter runs for this long."""
CONF = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: chosen-first
  - name: gang
  - name: predicates
"""


class SchedulingEnvironment:
    """Workloads on equal nodes; an episode is one workload from its first job to its last.

    An observation has a row for each of the oldest waiting jobs, and the columns ``FEATURES``.  The
    reward is minus the bounded slowdown that waiting jobs gathered since the step before, by the
    times that their users asked for: nobody knows how long jobs run.
    """

    def __init__(
        self, draw: Callable[[int], Workload], *, nodes: int = 4, cpus: int = 8, shown: int = 16
    ) -> None:
        self._draw = draw
        self._nodes, self._cpus = nodes, cpus
        self.shown = shown
        self.n_actions = shown
        self.observation_shape = (shown, len(FEATURES))
        self._chosen = ""
        self._seed = -1

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Draw a workload and go to the first decision; without a seed, that of the next one.

        Raises:
            ValueError: There are options; none is known.
        """
        if options:
            raise ValueError(f"expected no options, got {', '.join(options)}")
        self._seed = seed = self._seed + 1 if seed is None else seed
        workload = self._draw(seed)
        nodes = pumice.nodes(self._nodes, cpu=self._cpus, memory="64Gi")
        self._setup, conf = prepare(workload, nodes), parse_conf(CONF)
        scheduler = simulated_scheduler(
            conf, seed=seed, plugins={"chosen-first": chosen_first(self)}
        )
        self._engine = Engine(workload, self._setup.cluster, conf, scheduler=scheduler)
        self._chosen = ""
        self._go_on()
        return self._observation(), {}

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Put the job of a row first; return observation, reward, over, cut short, and more.

        A row without a job stands for the last one that has one.

        Raises:
            ValueError: There is no such row.
        """
        if not 0 <= action < self.n_actions:
            raise ValueError(f"expected an action from 0 to {self.n_actions - 1}, got {action}")
        waiting = self.waiting()
        self._chosen = waiting[min(int(action), len(waiting) - 1)].key if waiting else ""
        before = self._engine.now
        self._engine.step()
        over = not self._go_on()
        passed = self._engine.now - before
        asked = [max(_asked(run), SHORTEST_RUN_S) for run in waiting if math.isnan(run.started)]
        reward = -passed * sum(1 / each for each in asked)
        info = {"seconds": self._engine.now, "waiting": len(waiting)}
        return self._observation(), reward, over, False, info

    def waiting(self) -> list[JobRun]:
        """Return the jobs that wait, the oldest first."""
        return sorted(self._engine.waiting_jobs.runs())

    def result(self) -> pumice.Result:
        """Return what came of an episode, once it is over."""
        return pumice.Result(self._setup, Measures("environment", self._engine.run()), {})

    def chosen(self) -> str:
        """Name the job that goes first."""
        return self._chosen

    def _go_on(self) -> bool:
        """Run until a choice is due; False if the episode is over."""
        while not (self._engine.decides_next and len(self.waiting()) > 1):
            if not self._engine.step():
                return False
        return True

    def _observation(self) -> Observation:
        seen = np.zeros(self.observation_shape)
        total = self._nodes * self._cpus
        free = total - sum(run.running for run in self._engine.runs if run.in_tables)
        for row, run in enumerate(self.waiting()[: self.shown]):
            age = self._engine.now - run.spec.arrival
            width = run.spec.size
            seen[row] = 1, age / 3600, _asked(run) / 3600, width / total, width <= free
        return seen


def _asked(run: JobRun) -> float:
    walltime = run.spec.walltime
    return run.spec.run_seconds if walltime is None else walltime


def chosen_first(environment: SchedulingEnvironment) -> type[Plugin]:
    """Make the plugin that puts the chosen job of an environment first, the others by age."""

    class ChosenFirst(Plugin, name="chosen-first"):
        """The chosen job goes first."""

        simulator = SimulatorAssumptions()  # it only orders

        def order_jobs(self, jobs: Jobs) -> Column:
            return np.stack([(jobs.keys != environment.chosen()).astype(float), jobs.created])

    return ChosenFirst


def play(environment: SchedulingEnvironment, policy: Policy, seed: int = 0) -> float:
    """Play one episode; return its mean bounded slowdown."""
    seen, _ = environment.reset(seed)
    over = False
    while not over:
        seen, _, over, _, _ = environment.step(policy(seen))
    found = environment.result()
    slowdown = found.figures["mean_bounded_slowdown"]
    if found.failures or slowdown is None:
        raise RuntimeError(f"the episode failed: {found.failures}")
    return slowdown


def first_come(seen: Observation) -> int:
    """Take the oldest."""
    del seen
    return 0


def shortest_that_fits(seen: Observation) -> int:
    """Take the job that asks for the least time among those that fit now, or else of all."""
    there, _, hours, _, fits = seen.T
    return int(np.argmin(hours + 1e3 * (1 - fits) + 1e6 * (1 - there)))


def linear(weights: NDArray[np.float64]) -> Policy:
    """Make the policy that takes the job with the highest weighted sum of its features."""

    def choose(seen: Observation) -> int:
        scores = np.log1p(seen[:, 1:]) @ weights
        return int(np.argmax(np.where(seen[:, 0] > 0, scores, -np.inf)))

    return choose


def learn(
    environment: SchedulingEnvironment, *, rounds: int = 4, tries: int = 8, seed: int = 0
) -> NDArray[np.float64]:
    """Find weights by the cross-entropy method: draw some, keep the best, draw around them."""
    random = np.random.default_rng(seed)
    middle, spread = np.zeros(len(FEATURES) - 1), np.ones(len(FEATURES) - 1)
    for episode in range(rounds):
        drawn = random.normal(middle, spread, (tries, len(middle)))
        found = [play(environment, linear(each), seed=episode) for each in drawn]
        best = drawn[np.argsort(found)[: max(tries // 4, 2)]]
        middle, spread = best.mean(axis=0), best.std(axis=0) + 0.1
    return middle


def drawn_workload(seed: int, jobs: int = 40) -> Workload:
    """Draw jobs that come in a rush, with run times over several magnitudes."""
    random = np.random.default_rng(1000 + seed)
    arrivals = np.cumsum(random.exponential(20.0, jobs))
    runs = random.lognormal(5.5, 1.5, jobs).clip(10, 4 * 3600)
    pods = random.choice([1, 2, 4, 8, 16], jobs, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    walltimes = runs * random.uniform(1, 3, jobs)
    return pumice.workload(
        {"arrival": a, "run": r, "walltime": w, "pods": int(n), "cpu": 1}
        for a, r, w, n in zip(arrivals, runs, walltimes, pods, strict=True)
    )
