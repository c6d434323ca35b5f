"""Which tests reach which mutants, and how long each test takes.

A probe is set at every sampled statement and all tests run once.  That costs little more than the
tests themselves, where tracing every line costs several times as much.
"""

import ast
import builtins
import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Final

import pytest

from tools.mutations import PACKAGE, ROOT, Mutant, is_description

FOLDER: Final = ROOT / "build" / "reach"
_PROBE: Final = "_a_mutant_is_reached"


@dataclass
class Reach:
    """The tests that reach a line of a file, and the CPU seconds of each test."""

    tests: dict[str, list[str]] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)

    def of(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant: nearest in name first, then quick ones."""
        file, area = mutant.file, mutant.file.relative_to(PACKAGE).parts[0]
        names = [file.stem.strip("_"), file.parent.name, f"unit/{area}"]
        return sorted(
            self.tests.get(mutant.place, []),
            key=lambda test: (*(name not in test for name in names), self.times[test]),
        )


def kept_reach(mutants: Sequence[Mutant], items: Sequence[pytest.Item]) -> Path:
    """Name the file that keeps what these tests reach of these mutants."""
    files = sorted({item.path for item in items})
    parts = [repr(one) for one in mutants] + [file.read_text("utf-8") for file in files]
    return FOLDER / f"{hashlib.sha256(''.join(parts).encode()).hexdigest()[:16]}.json"


def probed(file: Path, lines: Sequence[int]) -> CodeType:
    """Compile a file with a probe at each statement that starts on one of the lines."""
    tree = ast.parse(file.read_text("utf-8"))
    _Probing(file.relative_to(ROOT), set(lines)).visit(tree)
    return compile(ast.fix_missing_locations(tree), str(file), "exec")


class _Probing(ast.NodeTransformer):
    def __init__(self, file: Path, lines: set[int]) -> None:
        self._file, self._lines = file, lines
        self._depth = 0

    def visit(self, node: ast.AST) -> ast.AST | list[ast.AST]:
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        self._depth += is_function
        self.generic_visit(node)
        self._depth -= is_function
        if not isinstance(node, ast.stmt) or is_description(node):
            return node
        if node.lineno not in self._lines or not self._depth:  # a module's own statement
            return node
        name = ast.Constant(f"{self._file}:{node.lineno}")
        call = ast.Call(ast.Name(_PROBE, ast.Load()), [name], [])
        if isinstance(node, ast.If | ast.While):
            node.test = _after(call, node.test)
        elif isinstance(node, ast.For):
            node.iter = _after(call, node.iter)
        else:
            return [ast.copy_location(ast.Expr(call), node), node]
        return node


def _after(call: ast.expr, value: ast.expr) -> ast.expr:
    """Write ``(call, value)[1]``."""
    pair = ast.Tuple([call, value], ast.Load())
    return ast.copy_location(ast.Subscript(pair, ast.Constant(1), ast.Load()), value)


def run_with_probes(items: Sequence[pytest.Item]) -> Reach:
    """Run tests one after the other and record what each reaches; what fails proves nothing."""
    reach = Reach(defaultdict(list))
    current: set[str] = set()
    vars(builtins)[_PROBE] = current.add
    for item, following in zip(items, [*items[1:], None], strict=True):
        start, failed = time.process_time(), item.session.testsfailed
        current.clear()
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        reach.times[item.nodeid] = time.process_time() - start
        if item.session.testsfailed == failed:
            for place in current:
                reach.tests[place].append(item.nodeid)
    return reach


def save(reach: Reach, file: Path) -> None:
    """Keep what was found."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps([reach.tests, reach.times]), encoding="utf-8")


def load(file: Path) -> Reach:
    """Read what was found."""
    return Reach(*json.loads(file.read_text("utf-8")))
