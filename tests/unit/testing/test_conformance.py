"""check_plugin passes a good plugin and names the promise that a bad one breaks."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from pumice.core.resources import CPU
from pumice.core.status import Status
from pumice.errors import BadHookResultError, PluginError
from pumice.framework.arguments import Duration, arg, arg_pattern
from pumice.framework.plugin import PERMIT, Plugin, Reason
from pumice.framework.plugin_declarations import SimulatorAssumptions
from pumice.kernel.library import library
from pumice.testing.conformance import check_plugin


@dataclass(kw_only=True)
class Good(Plugin, name="good"):
    """Prefers free cpu; has one argument of each kind."""

    reasons = (Reason("too busy"),)
    weight: float = arg("good.weight", default=1.5, minimum=0, doc="factor")
    period: Duration = arg("good.period", default=Duration(90.0), doc="how long")
    names: list[str] = arg("good.names", default_factory=list, doc="some names")
    shares: dict[str, int] = arg_pattern("good.shares.*", doc="share of a name")

    def on_open(self, ssn: Any) -> None:
        self._ssn = ssn
        self._tasks = ssn.add_node_column("good_tasks")

    def on_place(self, task: Any, node: Any) -> None:
        self._ssn.journal.save(self._tasks, node)
        self._tasks[node] += 1

    def on_evict(self, task: Any, node: Any) -> None:
        self._ssn.journal.save(self._tasks, node)
        self._tasks[node] -= 1

    def filter_nodes(self, task: Any, nodes: Any) -> Any:
        return nodes.column("good_tasks") < 3

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        return self.weight * nodes.idle[CPU]

    def rank_nodes(self, task: Any, nodes: Any) -> Any:
        free = nodes.idle[CPU]
        return free / max(free.max(), 1.0)

    def order_jobs(self, jobs: Any) -> Any:
        return -jobs.priority.astype(float)

    def job_pipelined(self, job: Any) -> Any:
        return PERMIT


def broken(**members: Any) -> type[Plugin]:
    """Make a documented plugin with the given members."""
    return type("Broken", (Plugin,), {"__doc__": "Broken.", **members}, name="broken")


def problem_of(cls: Any, **arguments: Any) -> Any:
    with pytest.raises(PluginError) as caught:
        check_plugin(cls, **arguments)
    return caught.value


def test_a_good_plugin_passes_with_defaults_and_with_arguments() -> None:
    check_plugin(Good)
    check_plugin(Good, weight=3.0, period=Duration(0.5), names=["a"], shares={"b": 2})


def test_a_plugin_without_hooks_passes() -> None:
    check_plugin(broken())


def test_a_class_needs_a_docstring() -> None:
    @dataclass(kw_only=True)
    class Silent(Plugin, name="silent"):
        pass

    assert "no docstring" in str(problem_of(Silent))


def test_every_argument_needs_a_doc() -> None:
    @dataclass(kw_only=True)
    class Terse(Plugin, name="terse"):
        """Has an argument."""

        weight: int = arg("terse.weight", default=1)

    assert "terse.weight" in str(problem_of(Terse))


def test_a_default_must_be_one_that_may_be_written() -> None:
    @dataclass(kw_only=True)
    class Odd(Plugin, name="odd"):
        """Has a default below its own minimum."""

        weight: int = arg("odd.weight", default=0, minimum=1, doc="factor")

    assert "refuses its own arguments" in str(problem_of(Odd))


def test_an_argument_that_does_not_exist_must_be_reported() -> None:
    @dataclass(kw_only=True)
    class Greedy(Plugin, name="greedy"):
        """Takes everything."""

        all_of_it: dict[str, int] = arg_pattern("*", doc="anything")

    assert "does not exist" in str(problem_of(Greedy))


def score(function: Any) -> Any:
    return {"score_nodes": lambda self, task, nodes: function(task, nodes)}


SCORES = {
    "rows are compared with each other": (
        lambda _, nodes: nodes.idle[CPU] - nodes.idle[CPU].mean(),
        "depend on other rows",
    ),
    "the last bits depend on how many rows are asked": (
        lambda _, nodes: np.ones(10) @ np.sqrt(np.tile(1 / (1 + nodes.idle[CPU]), (10, 1))),
        "depend on other rows",
    ),
    "too few answers": (lambda _, nodes: nodes.idle[CPU][1:], "an array of"),
    "not a number": (lambda _, nodes: nodes.idle[CPU] * np.nan, "finite numbers"),
    "texts": (lambda _, nodes: np.array(nodes.names), "expected numbers"),
    "a list": (lambda _, nodes: [0.0] * len(nodes), "an array of"),
    "something raised": (lambda *_: 1 / 0, "raised ZeroDivisionError"),
    "more than the shape": (
        lambda task, nodes: np.full(len(nodes), float(task.row)),
        "tasks of one shape differ",
    ),
}


@pytest.mark.parametrize(("function", "wanted"), SCORES.values(), ids=SCORES)
def test_a_bad_score_is_refused(function: Any, wanted: Any) -> None:
    error = problem_of(broken(**score(function)))
    assert error.hook == "score_nodes"
    assert wanted in str(error)


def test_a_plugin_that_names_what_it_varies_by_may_tell_tasks_apart() -> None:
    members = score(SCORES["more than the shape"][0])
    check_plugin(broken(**members, vary_by=lambda _, task: task.row))


def test_a_filter_needs_a_reason() -> None:
    cls = broken(filter_nodes=lambda _, task, nodes: nodes.idle[CPU] > 4000)
    assert "states a reason" in str(problem_of(cls))


def test_a_filter_answers_with_numbers_of_its_reasons() -> None:
    members = {"reasons": (Reason("one"),)}
    cls = broken(**members, filter_nodes=lambda _, task, nodes: np.full(len(nodes), 2))
    assert "numbers of 1 reasons" in str(problem_of(cls))


def test_a_hook_of_facts_gets_no_live_columns() -> None:
    cls = broken(score_shape=lambda _, shape, facts: facts.idle[CPU])
    assert "AttributeError" in str(problem_of(cls))


def test_a_hook_of_facts_must_not_follow_moves() -> None:
    cls = broken(score_shape=lambda _, shape, facts: facts.snapshot.nodes.used[CPU, facts.index])
    assert "follows moves" in str(problem_of(cls))


def test_a_hook_must_not_write_into_what_it_reads() -> None:
    def spoil(_: Any, task: Any, nodes: Any) -> bool:
        nodes.idle[CPU] += 1.0
        return nodes.idle[CPU] > 0

    error = problem_of(broken(filter_nodes=spoil))
    assert "nodes.books" in str(error)


def test_a_hook_answers_alike_when_asked_twice() -> None:
    calls = []

    def count(_: Any, job: Any) -> Any:
        calls.append(job)
        return len(calls) % 2

    assert "asked twice" in str(problem_of(broken(job_enqueueable=count)))


class _Follower(Plugin):
    """Counts tasks on all nodes; each subclass forgets something."""

    counts: ClassVar[bool] = True

    def on_open(self, ssn: Any) -> None:
        self._ssn = ssn
        self._column = ssn.add_node_column("informer")

    def score_nodes(self, task: Any, nodes: Any) -> Any:
        return nodes.column("informer")


def test_a_move_that_changes_other_rows_must_touch_them() -> None:
    def follow(self: Any, task: Any, node: Any) -> None:
        self._ssn.journal.save(self._column, slice(None))
        self._column += 1.0

    cls = type("F", (_Follower,), {"__doc__": "F.", "on_place": follow}, name="f")
    assert "journal.touch" in str(problem_of(cls))


def test_a_write_that_bypasses_the_journal_survives_a_discard() -> None:
    def follow(self: Any, task: Any, node: Any) -> None:
        self._column[node] += 1.0

    cls = type("F", (_Follower,), {"__doc__": "F.", "on_place": follow}, name="f")
    assert "nodes.informer" in str(problem_of(cls))


def test_state_outside_the_tables_must_be_taken_back_too() -> None:
    placed = []
    cls = broken(
        on_place=lambda _, task, node: placed.append(task.row),
        overused=lambda _, queue: bool(placed),
    )
    assert "rolled back" in str(problem_of(cls))


ANSWERS = {
    "a mask that is too short": ("preemptable", lambda _, task, rows: np.ones(1, dtype=bool)),
    "a mask of numbers": ("reclaimable", lambda _, task, rows: np.ones(len(rows))),
    "a vote beyond the range": ("job_enqueueable", lambda _, job: 7),
    "a ready that is a number": ("job_ready", lambda _, job: 1.0),
    "a valid that is a boolean": ("job_valid", lambda _, job: True),
    "an overused that is nothing": ("overused", lambda _, queue: None),
    "a victim that does not run": ("victims", lambda _, running: [10**6]),
    "a reason that is a text": ("filter_task", lambda _, task: "no"),
    "keys that cannot be compared": ("order_jobs", lambda _, jobs: np.full(len(jobs), np.nan)),
    "too few keys": ("order_tasks", lambda _, tasks: np.zeros(1)),
}


@pytest.mark.parametrize(("hook", "method"), ANSWERS.values(), ids=ANSWERS)
def test_an_answer_of_the_wrong_kind_is_refused(hook: Any, method: Any) -> None:
    error = problem_of(broken(**{hook: method}))
    assert isinstance(error, BadHookResultError)
    assert error.hook == hook


def test_keys_are_given_each_by_itself() -> None:
    cls = broken(order_jobs=lambda _, jobs: np.arange(len(jobs)))
    assert "depend on other rows" in str(problem_of(cls))


def test_a_comparison_must_hold_both_ways() -> None:
    cls = broken(compare_queues=lambda _, left, right: -1)
    assert "both ways" in str(problem_of(cls))


def test_an_error_while_opening_is_reported_with_its_hook() -> None:
    cls = broken(on_open=lambda _, ssn: ssn.no_such_thing)
    error = problem_of(cls)
    assert (error.plugin, error.hook) == ("broken", "on_open")


def test_a_bound_on_victims_must_hold_in_any_company() -> None:
    def most(_: Any, task: Any, rows: Any) -> bool:
        return np.arange(len(rows)) == len(rows) - 1

    def first(_: Any, hook: Any, task: Any, rows: Any) -> bool:
        return np.arange(len(rows)) == 0

    error = problem_of(broken(preemptable=most, bound_victims=first))
    assert (error.hook, "bound_victims" in str(error)) == ("preemptable", True)
    check_plugin(broken(preemptable=most))


def test_a_task_that_is_judged_by_its_company_is_not_judged_alone() -> None:
    def most(_: Any, task: Any, rows: Any) -> bool:
        return np.arange(len(rows)) == len(rows) - 1

    error = problem_of(broken(preemptable=most, judges_alone={"preemptable"}))
    assert (error.hook, "company" in str(error)) == ("preemptable", True)
    check_plugin(
        broken(preemptable=lambda _, task, rows: np.array(rows) > 1, judges_alone={"preemptable"})
    )


@pytest.mark.skipif(library() is None, reason="nobody computes terms without the kernel")
def test_terms_say_what_hooks_answer() -> None:
    silent: dict[str, Any] = {"node_terms": lambda _, task: []}
    check_plugin(broken(**silent, score_nodes=lambda _, task, nodes: np.zeros(len(nodes))))
    cls = broken(**silent, score_nodes=lambda _, task, nodes: np.ones(len(nodes)))
    assert problem_of(cls).hook == "node_terms"


def test_a_plugin_that_states_that_it_compares_no_nodes_compares_none() -> None:
    silent: dict[str, Any] = {"node_terms": lambda _, task: []}
    check_plugin(broken(**silent, rank_nodes=lambda _, task, nodes: np.ones(len(nodes))))
    cls = broken(**silent, rank_nodes=lambda _, task, nodes: nodes.idle[CPU])
    assert problem_of(cls).hook == "node_terms"


def test_tasks_of_a_shape_differ_only_where_a_plugin_tells_them_apart() -> None:
    def on_open(self: Any, ssn: Any) -> None:
        self.tells_apart = False

    members: dict[str, Any] = {
        "score_nodes": lambda _, task, nodes: np.full(len(nodes), float(task.row)),
        "vary_by": lambda _, task: task.row,
    }
    check_plugin(broken(**members))
    assert "vary_by" in str(problem_of(broken(**members, on_open=on_open)))


def test_tasks_change_places_only_in_jobs_of_which_a_plugin_says_so() -> None:
    def on_open(self: Any, ssn: Any) -> None:
        self.jobs, self.moving_jobs = ssn.snapshot.jobs, frozenset(ssn.jobs()[:some])

    def order_tasks(self: Any, tasks: Any) -> Any:
        placed = self.jobs.n_tasks[tasks.job] - self.jobs.counts[Status.PENDING, tasks.job]
        return tasks.rows * np.where(placed % 2, 1.0, -1.0)

    members: dict[str, Any] = {"on_open": on_open, "order_tasks": order_tasks}
    some = 1000
    check_plugin(broken(**members))
    some = 0
    assert "moving_jobs" in str(problem_of(broken(**members)))


UNFORESEEN: dict[str, tuple[str, Any]] = {
    "the rows it is given": (
        "score_nodes",
        lambda _, task, nodes: nodes.snapshot.nodes.releasing[CPU][nodes.index],
    ),
    "equal jobs": ("job_starving", lambda _, job: "example.com/twin" in job.annotations),
    "more than sums": (
        "job_ready",
        lambda _, job: bool(job.snapshot.nodes.idle[CPU].sum() % 2000 < 1000),
    ),
    "allowed more": (
        "allocatable",
        lambda _, queue, task: bool(queue.allocated[CPU] % 4000 > 1500),
    ),
}


@pytest.mark.parametrize("text", UNFORESEEN)
def test_what_cannot_be_foreseen_is_found_out(text: str) -> None:
    """Hooks of a plugin that declares it are asked about what is not, or not yet, so."""
    hook, answer = UNFORESEEN[text]
    error = problem_of(broken(**{hook: answer}, foreseeable=True))
    assert (error.hook, text in str(error)) == (hook, True)
    check_plugin(broken(**{hook: answer}))


def test_votes_may_follow_moves_as_long_as_they_are_taken_back() -> None:
    cls = broken(job_ready=lambda _, job: job.counts[Status.PENDING] == 0)
    check_plugin(cls)


def test_a_hook_that_can_only_answer_none_lacks_a_return() -> None:
    def forgot(_: Any, shape: Any, facts: Any) -> None:
        facts.labelled("a")

    def pointless(_: Any, shape: Any, facts: Any) -> Any:
        return None

    for method in (forgot, pointless):
        error = problem_of(broken(score_shape=method))
        assert error.hook == "score_shape"
        assert "is a return missing?" in str(error)


def test_a_hook_may_answer_none_now_and_then() -> None:
    def sometimes(_: Any, shape: Any, facts: Any) -> Any:
        if shape.request[CPU, 0] >= 0:
            return None
        return np.zeros(len(facts))

    check_plugin(broken(score_shape=sometimes))


def test_a_plugin_that_changes_its_mind_unsaid_breaks_what_it_declares_for_simulations() -> None:
    def on_open(self: Any, ssn: Any) -> None:
        self.is_night = ssn.now % 100 < 50

    members = {"on_open": on_open, "allocatable": lambda self, queue, task: not self.is_night}
    check_plugin(broken(**members))
    error = problem_of(broken(**members, simulator=SimulatorAssumptions()))
    assert "simulator" in str(error)


def test_a_plugin_that_lets_a_job_without_room_count_says_so() -> None:
    def on_open(self: Any, ssn: Any) -> None:
        self.waits = [row for row in ssn.jobs() if ssn.job(row).counts[Status.PENDING]]

    members = {"on_open": on_open, "allocatable": lambda self, queue, task: len(self.waits) < 4}
    error = problem_of(broken(**members, simulator=SimulatorAssumptions()))
    assert "all take part" in str(error)
    check_plugin(broken(**members, simulator=SimulatorAssumptions(all_jobs=True)))
