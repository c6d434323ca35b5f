"""What every plugin promises, put to the test on small made-up clusters.

One line in the tests of whoever writes a plugin:

    def test_my_policy_keeps_its_promises():
        check_plugin(MyPolicy, weight=5)
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from pumice.core.consistency import cells, changed, check
from pumice.core.resources import fits
from pumice.core.views import Task
from pumice.errors import PluginError
from pumice.framework.arguments import bind_arguments, describe_arguments, dump_arguments
from pumice.framework.combining import EACH
from pumice.framework.dispatch import Enabled, Method
from pumice.framework.equal_tasks import is_plain
from pumice.framework.imagined_rows import ImaginedNodes, Load
from pumice.framework.plugin import HOOKS, Plugin, implements
from pumice.framework.session import Session
from pumice.framework.statement import Statement
from pumice.testing.hook_questions import (
    BY_NODES,
    BY_SHAPE,
    ORDERS,
    VICTIMS,
    Answer,
    Answers,
    Questions,
)
from pumice.testing.samples import sample_cluster, snapshot_of

SEEDS = range(4)
_NOW = 1_767_229_200.0  # an hour after the first objects of a sample were made
_N_TASKS, _N_MOVES = 8, 6


def check_plugin(cls: type[Plugin], **arguments: Any) -> None:
    """Test a plugin class; ``arguments`` are fields to construct it with.

    Docs: the class and every argument say what they are.  Hooks: each that is to answer has a
    ``return`` with a value.  Arguments: what is written is read back,
    an unknown one is reported.  Node hooks: each row is answered by itself, so that one row, some
    rows and all rows in any order get the very same answers; tasks of one shape are alike; answers
    to a shape outlive every move; a move changes only the rows it touches; a node with the task on
    it may be asked about before it is so.  Orders: keys that can be compared, each row by itself.
    Votes and masks: of the right type and length.  All: the same answer twice, tables left alone,
    no trace of a discarded statement in tables or answers.

    Raises:
        PluginError: The first promise that is broken.
    """
    _check_documentation(cls)
    _check_returns(cls)
    _check_arguments(cls, cls(**arguments))
    trees = (False, True) if cls.hierarchy_hooks else (False,)
    for seed in SEEDS:
        for hierarchy in trees:
            with np.errstate(all="ignore"):
                _Examination(cls(**arguments), seed, {"enableHierarchy": hierarchy}).run()


def _check_documentation(cls: type[Plugin]) -> None:
    doc = vars(cls).get("__doc__") or ""
    if not doc or doc.startswith(f"{cls.__name__}("):  # what a dataclass makes up
        raise PluginError(cls.name, "", "the class has no docstring")
    silent = [row.key for row in describe_arguments(cls) if not row.doc]
    if silent:
        raise PluginError(cls.name, "", f"arguments without a doc: {', '.join(silent)}")


def _check_returns(cls: type[Plugin]) -> None:
    """Refuse a hook that can only answer None: where that means "no opinion", it can be left out.

    What has no source to look at, as a lambda, is not judged.
    """
    for hook in HOOKS.values():
        if hook.rule is EACH or not implements(cls, hook.name):
            continue
        try:
            source = textwrap.dedent(inspect.getsource(inspect.unwrap(getattr(cls, hook.name))))
            (method,) = ast.parse(source).body
        except (OSError, TypeError, ValueError, SyntaxError):
            continue
        if isinstance(method, ast.FunctionDef) and not any(map(_gives, ast.walk(method))):
            raise PluginError(cls.name, hook.name, "never returns anything; is a return missing?")


def _gives(node: ast.AST) -> bool:
    if isinstance(node, ast.Yield | ast.YieldFrom | ast.Raise):
        return True
    nothing = isinstance(node, ast.Return) and (
        node.value is None or (isinstance(node.value, ast.Constant) and node.value.value is None)
    )
    return isinstance(node, ast.Return) and not nothing


def _check_arguments(cls: type[Plugin], plugin: Plugin) -> None:
    fields, problems = bind_arguments(cls, dump_arguments(plugin))
    if problems:
        raise PluginError(cls.name, "", f"refuses its own arguments: {problems[0]}")
    for name, value in fields.items():
        if value != getattr(plugin, name):
            text = f"argument '{name}' reads {value!r} where {getattr(plugin, name)!r} was written"
            raise PluginError(cls.name, "", text)
    if not bind_arguments(cls, {"no.such.argument": 1})[1]:
        raise PluginError(cls.name, "", "takes an argument that does not exist")


class _Examination:
    """One plugin on one cluster."""

    def __init__(self, plugin: Plugin, seed: int, switches: dict[str, bool]) -> None:
        self.snapshot = snapshot_of(sample_cluster(seed))
        self.name = plugin.name
        self.rng = np.random.default_rng(seed)
        self.before = cells(self.snapshot)
        self.snapshot.view_is_live = True
        usage = {
            name: {"cpu": 10.0 * (i % 10), "memory": 5.0 * i, "metricsTime": _NOW - 10 * i}
            for i, name in enumerate(self.snapshot.nodes.names)
        }
        self.ssn = Session(
            self.snapshot, [[Enabled(plugin, switches)]], now=_NOW, seed=seed, node_usage=usage
        )
        for (_, hook), error in self.ssn.failures.errors.items():
            raise PluginError(self.name, hook, f"raised {type(error).__name__}: {error}") from error
        self.questions = Questions(self.ssn)
        shuffled = self.rng.permutation(self.questions.waiting).tolist()
        self.asking = shuffled[:_N_TASKS]
        self.moving = shuffled[_N_TASKS:]

    def run(self) -> None:
        with self.leaves_tables_alone("a question"):
            answers = self.questions.answers()
            self.same("answers differently when asked twice", answers, self.questions.answers())
            self.check_rows()
            self.check_orders()
            self.check_shapes_alike()
            self.check_victims()
            self.check_victims_alone()
        with self.leaves_tables_alone("a discarded statement"):
            statement = self.ssn.statement()
            self.check_moves(statement)
            statement.discard()
        after = self.questions.answers()
        self.same("still answers by moves that were rolled back", answers, after)
        self.snapshot.release_session()
        self.compare_cells("closing a session", self.before, cells(self.snapshot))

    # Questions

    def check_rows(self) -> None:
        """Compare answers for single rows, some rows and shuffled rows with those for all."""
        n = self.snapshot.nodes.n
        some = np.sort(self.rng.permutation(n)[: n // 3])
        ways: list[Any] = [*(slice(i, i + 1) for i in range(n)), some, self.rng.permutation(n)]
        for hook in (*BY_SHAPE, *BY_NODES):
            for row in self.asking if self.questions.has(hook) else ():
                full = self.questions.node_column(hook, row)
                for rows in ways:
                    part = self.questions.node_column(hook, row, rows)
                    self.equal(hook, "answers depend on other rows", full[rows], part)
        if self.questions.has(Plugin.rank_nodes):
            order = self.rng.permutation(n)
            for row in self.asking:
                full = self.questions.node_column(Plugin.rank_nodes, row)
                part = self.questions.node_column(Plugin.rank_nodes, row, order)
                self.equal(Plugin.rank_nodes, "the order of the nodes matters", full[order], part)

    def check_orders(self) -> None:
        """Compare keys of single rows and shuffled rows with those of all; pairs both ways."""
        for hook in ORDERS:
            rows = self.questions.ordered(hook) if self.questions.has(hook) else []
            if not rows:
                continue
            full = self.questions.keys(hook, rows)
            for i, row in enumerate(rows):
                one = self.questions.keys(hook, [row])
                self.equal(hook, "keys depend on other rows", full[:, i : i + 1], one)
            order = self.rng.permutation(len(rows))
            part = self.questions.keys(hook, np.asarray(rows)[order])
            self.equal(hook, "keys depend on other rows", full[:, order], part)
        if self.questions.has(Plugin.compare_queues):
            answers = self.questions.answers()
            for a in self.questions.queues:
                for b in self.questions.queues:
                    there, back = (
                        answers[Plugin.compare_queues, *pair] for pair in ((a, b), (b, a))
                    )
                    if np.sign(there) != -np.sign(back):
                        raise PluginError(self.name, "compare_queues", "is not the same both ways")

    def check_shapes_alike(self) -> None:
        """Compare tasks that the framework takes to be alike."""
        first: dict[tuple[Any, ...], Answer] = {}
        for key, answer in self.questions.node_answers(self.asking, (*BY_SHAPE, *BY_NODES)).items():
            hook, row, *varies = key
            like = (hook, int(self.snapshot.tasks.shape[row]), *varies)
            seen = first.setdefault(like, answer)
            self.equal(hook, "tasks of one shape differ (see vary_by)", seen, answer)

    def check_victims(self) -> None:
        """Compare the victims a hook names, in several companies, with their bound."""
        every = np.asarray(self.questions.running, dtype=np.intp)
        companies = [every, *(self.rng.permutation(every)[:size] for size in (1, 3, len(every)))]
        for hook in VICTIMS:
            for row in self.asking if self.questions.has(hook) else ():
                bound = self.questions.bound(hook, row, every)
                for company in companies if bound is not None else ():
                    named = self.questions.victims(hook, row, company.tolist())
                    if named is not None and not set(company[named]) <= set(every[bound]):
                        text = f"names victims that bound_victims leaves out: {company[named]}"
                        raise PluginError(self.name, hook.__name__, text)

    def check_victims_alone(self) -> None:
        """Compare what is said of tasks in company with what is said of each by itself."""
        every = self.questions.running
        for hook in VICTIMS:
            if hook.__name__ not in self.questions.plugin.judges_alone:
                continue
            for row in self.asking:
                together = self.questions.victims(hook, row, every)
                alone = [self.questions.victims(hook, row, [each]) for each in every]
                said = [None] * len(every) if together is None else together.tolist()
                if said != [None if each is None else bool(each[0]) for each in alone]:
                    text = (
                        f"judges a task by its company (leave {hook.__name__} out of judges_alone)"
                    )
                    raise PluginError(self.name, hook.__name__, text)

    # Moves

    def check_moves(self, statement: Statement) -> None:
        """Test after each move that only the rows it touched have changed."""
        moved = self.ssn.journal.moved
        hooks = (*BY_SHAPE, *BY_NODES)
        for _ in range(_N_MOVES):
            asking = self.questions.still_waiting(self.asking)
            before, cursor = self.questions.node_answers(asking, hooks), len(moved)
            self.move(statement)
            touched = {int(row) for entry in moved[cursor:] for row in np.atleast_1d(entry)}
            rest = np.setdiff1d(np.arange(self.snapshot.nodes.n), sorted(touched))
            for key, answer in self.questions.node_answers(asking, hooks).items():
                hook = key[0]
                if key not in before:
                    continue  # the plugin says itself that it answers something else now
                if hook in BY_SHAPE:
                    self.equal(hook, "an answer to a shape follows moves", before[key], answer)
                text = "a move changes rows that the journal does not know of (see journal.touch)"
                self.equal(hook, text, before[key][rest], answer[rest])
            check(self.snapshot)

    def move(self, statement: Statement) -> None:
        """Place or pipeline a waiting task, or evict a running one."""
        kind = int(self.rng.integers(3))
        if kind == 2 and self.questions.running:
            victims = self.questions.running
            statement.evict(victims.pop(int(self.rng.integers(len(victims)))), "reclaim")
            return
        if not self.moving:
            return
        task = Task(self.snapshot, self.moving.pop())
        room = np.flatnonzero(fits(task.request, self.snapshot.nodes.idle))
        if kind == 0 and len(room):
            self.place(statement, task, int(self.rng.choice(room)))
        else:
            statement.pipeline(task.row, int(self.rng.integers(self.snapshot.nodes.n)))

    def place(self, statement: Statement, task: Task, node: int) -> None:
        """Place a task; ask before about the node with the task on it, as runs of equals do."""
        hooks = [h for h in BY_NODES if self.questions.has(h) and is_plain(self.ssn, task.row)]
        rows, one = np.array([node], dtype=np.intp), np.ones(1)
        imagined = ImaginedNodes(self.snapshot, rows, Load.of_copies(task.shape, one))
        varies = self.questions.ask(Plugin.vary_by, task)
        wanted = {hook: self.questions.live_column(hook, task, imagined) for hook in hooks}
        statement.place(task.row, node)
        if varies != self.questions.ask(Plugin.vary_by, task):
            return
        for hook, answer in wanted.items():
            found = self.questions.node_column(hook, task.row, rows)
            text = "reads more than the rows it is given (use them, or set by_row to False)"
            self.equal(hook, text, found, answer)

    # Comparing

    @contextmanager
    def leaves_tables_alone(self, what: str) -> Iterator[None]:
        """Test that a block leaves every cell as it was."""
        before, running = cells(self.snapshot), list(self.questions.running)
        yield
        self.questions.running = running
        self.compare_cells(what, before, cells(self.snapshot))

    def compare_cells(self, what: str, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Name the first column that differs; columns that were added do not count."""
        for name in changed(before, after):
            raise PluginError(self.name, "", f"{what} changes {name}")

    def equal(self, hook: Method, problem: str, wanted: Answer, found: Answer) -> None:
        if not np.array_equal(wanted, found):
            raise PluginError(self.name, hook.__name__, f"{problem}: {wanted} against {found}")

    def same(self, problem: str, first: Answers, second: Answers) -> None:
        for key, answer in first.items():
            if key not in second or not _is_same(answer, second[key]):
                raise PluginError(self.name, key[0].__name__, f"{problem}: {answer}")


def _is_same(first: Any, second: Any) -> bool:
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    return bool(first == second)
