"""Which tests reach which statements, and how long each test takes.

A probe is set at the start of every suite of statements and the tests run once.  That costs little
more than the tests themselves, where tracing every line costs several times as much.  What was
found is kept for each file of tests until it, or what the tests share, or a source that its tests
reach changes.
"""

import ast
import builtins
import hashlib
import itertools
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Final

import pytest

from tools.mutations import PACKAGE, ROOT, Mutant

FOLDER: Final = ROOT / "build" / "reach"
_PROBE: Final = "_a_suite_is_reached"


@dataclass
class Reach:
    """The tests that reach a suite of statements, and the CPU seconds of each test."""

    tests: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    times: dict[str, float] = field(default_factory=dict)

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant, in the order in which they are tried."""
        suite = suites(mutant.file).get(mutant.line)
        return self._in_order(mutant, self.tests.get(suite, []) if suite else [])

    def of_file(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach anything of its file, or else those of its folder."""
        reached = {
            test for suite in set(suites(mutant.file).values()) for test in self.tests[suite]
        }
        folder = f"tests/unit/{mutant.file.relative_to(PACKAGE).parts[0]}/"
        return self._in_order(mutant, reached or [one for one in self.times if folder in one])

    def within(self, tests: Sequence[str], limit_s: float) -> list[str]:
        """Return the first tests, and the quickest of the others, that take so long together."""
        near = self._first(tests, limit_s / 2)
        others = sorted(tests[len(near) :], key=self.times.__getitem__)
        return [*near, *self._first(others, limit_s / 2)]

    def _first(self, tests: Sequence[str], limit_s: float) -> list[str]:
        ends = itertools.accumulate((self.times[test] for test in tests), initial=0.0)
        return [test for test, spent in zip(tests, ends, strict=False) if spent <= limit_s]

    def _in_order(self, mutant: Mutant, tests: Sequence[str] | set[str]) -> list[str]:
        """Sort: nearest in name first, then quick ones."""
        file, area = mutant.file, mutant.file.relative_to(PACKAGE).parts[0]
        names = [file.stem.strip("_"), file.parent.name, f"unit/{area}"]
        return sorted(
            tests, key=lambda test: (*(name not in test for name in names), self.times[test])
        )


@cache
def suites(file: Path) -> dict[int, str]:
    """Return the suite around each line of a file's functions, as its file and first line."""
    name = file.relative_to(ROOT)
    found: dict[int, str] = {}

    def visit(node: ast.AST, inside: bool) -> None:  # noqa: FBT001
        for suite in _suites(node):
            if _is_in_function(node, inside):
                place = f"{name}:{suite[0].lineno}"
                last = suite[-1].end_lineno or suite[-1].lineno
                found.update(dict.fromkeys(range(suite[0].lineno, last + 1), place))
        for child in ast.iter_child_nodes(node):  # an inner suite takes its lines from the outer
            visit(child, _is_in_function(node, inside))

    visit(ast.parse(file.read_text("utf-8")), False)  # noqa: FBT003
    return found


def _is_in_function(node: ast.AST, inside: bool) -> bool:  # noqa: FBT001
    """Return whether the suites of a node run when a function is called, not at import."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
        inside and not isinstance(node, ast.ClassDef)
    )


def _suites(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        suite = getattr(node, name, None)
        if isinstance(suite, list) and suite and not _is_elif(node, name, suite):
            yield suite


def _is_elif(node: ast.AST, name: str, suite: list[ast.stmt]) -> bool:
    return isinstance(node, ast.If) and name == "orelse" and isinstance(suite[0], ast.If)


def probed(file: Path) -> CodeType:
    """Compile a file with a probe at the start of each suite of its functions."""
    tree = ast.parse(file.read_text("utf-8"))
    wanted = set(suites(file).values())
    for node in list(ast.walk(tree)):
        for suite in _suites(node):
            place = f"{file.relative_to(ROOT)}:{suite[0].lineno}"
            if place in wanted:
                call = ast.Call(ast.Name(_PROBE, ast.Load()), [ast.Constant(place)], [])
                suite.insert(0, ast.copy_location(ast.Expr(call), suite[0]))
    return compile(ast.fix_missing_locations(tree), str(file), "exec")


def kept_files(items: Sequence[pytest.Item]) -> dict[Path, list[pytest.Item]]:
    """Name the file that keeps what the tests of each file reach."""
    tests = (ROOT / "tests").rglob("*.py")
    shared = [file for file in tests if not file.name.startswith("test_")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in sorted(shared)))
    kept: dict[Path, list[pytest.Item]] = {}
    for path, of_file in itertools.groupby(items, lambda item: item.path):
        own = digest.copy()
        own.update(path.read_bytes())
        kept.setdefault(FOLDER / f"{path.stem}-{own.hexdigest()[:16]}.json", []).extend(of_file)
    return kept


def run_with_probes(items: Sequence[pytest.Item], kept: Path) -> None:
    """Run the tests of a file and keep what each reaches; what fails proves nothing."""
    found: dict[str, tuple[float, list[str]]] = {}
    current: set[str] = set()
    vars(builtins)[_PROBE] = current.add
    for item, following in zip(items, [*items[1:], None], strict=True):
        start, failed = time.process_time(), item.session.testsfailed
        current.clear()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        reached = sorted(current) if item.session.testsfailed == failed else []
        found[item.nodeid] = (time.process_time() - start, reached)
    _save(found, kept)


def _save(found: dict[str, tuple[float, list[str]]], kept: Path) -> None:
    """Write the name of each suite once, and what their files are now."""
    numbers: dict[str, int] = {}
    tests = {
        test: (seconds, [numbers.setdefault(suite, len(numbers)) for suite in reached])
        for test, (seconds, reached) in found.items()
    }
    kept.parent.mkdir(parents=True, exist_ok=True)
    files = {suite.rpartition(":")[0] for suite in numbers}
    sources = {file: _digest(ROOT / file) for file in sorted(files)}
    kept.write_text(json.dumps([list(numbers), tests, sources]), "utf-8")


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ""


def knows(kept: Path, items: Sequence[pytest.Item]) -> bool:
    """Return whether a file keeps what these tests reach now."""
    if not kept.exists():
        return False
    _, tests, sources = json.loads(kept.read_text("utf-8"))
    return all(item.nodeid in tests for item in items) and all(
        _digest(ROOT / file) == digest for file, digest in sources.items()
    )


def load(kept: dict[Path, list[pytest.Item]]) -> Reach:
    """Read what was found about some tests."""
    reach = Reach()
    for file, items in kept.items():
        names, tests, _ = json.loads(file.read_text("utf-8"))
        for item in items:
            reach.times[item.nodeid], reached = tests[item.nodeid]
            for number in reached:
                reach.tests[names[number]].append(item.nodeid)
    return reach
