"""`make mutants`: do the tests detect a change?  Samples small changes of the code and counts.

Each mutant is one changed expression or statement in a copy of the sources.  Those tests run on the
copy that reach its line, as ``--measure`` has found; where nothing was measured, those that belong
to its file, nearest first.  What survives is printed as a diff: write a test, or see that the
change changes nothing.
"""

import argparse
import ast
import difflib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from tools.reach import ROOT, Reach, measure

PACKAGE: Final = ROOT / "src" / "pumice"
DECIDING: Final = ("framework", "actions", "plugins", "core")
WRITING: Final = ("binder", "serve/scheduler", "cluster/kube")
FURTHER: Final = {
    **dict.fromkeys(DECIDING, ("tests/unit/{area}", "tests/scenarios")),
    "binder": ("tests/unit/binder", "tests/unit/serve/scheduler"),
    "serve/scheduler": ("tests/unit/serve", "tests/properties/test_live.py"),
    "cluster/kube": ("tests/unit/cluster",),
}
"""Tests beside those named after a file, by area."""
_FIRST: Final = 40
"""Tests of a mutant that run before the rest."""
_COMPARED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_COMBINED: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change: the lines it replaces, and the replacement."""

    file: Path
    line: int
    old: str
    new: str

    def source(self) -> str:
        """Return the text of the changed file."""
        return self.file.read_text(encoding="utf-8").replace(self.old, self.new, 1)

    def diff(self) -> str:
        """Show the change."""
        name = str(self.file.relative_to(ROOT))
        lines = difflib.unified_diff(
            self.old.splitlines(), self.new.splitlines(), name, f"line {self.line}", "", "", 0, ""
        )
        return "\n".join(list(lines)[3:])


def mutants_of(file: Path) -> list[Mutant]:
    """List every change of a file that this tool knows, in the order of its lines."""
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    lines = text.splitlines(keepends=True)
    found: list[Mutant] = []
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.stmt) or _is_description(statement):
            continue
        first, last = statement.lineno, _head_end(statement)
        old = "".join(lines[first - 1 : last])
        if text.count(old) != 1:  # the change would hit another place
            continue
        for new in _changed(statement):
            indent = " " * statement.col_offset
            body = "".join(f"{indent}{line}\n" for line in new.splitlines())
            found.append(Mutant(file, first, old, body))
    return sorted(found, key=lambda one: (one.line, one.new))


def _is_description(statement: ast.stmt) -> bool:
    """Return whether a statement decides nothing: import, definition, docstring, declaration."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    plain = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Pass, ast.Raise)
    return isinstance(statement, (*plain, ast.AsyncFunctionDef, ast.Try, ast.AnnAssign, ast.With))


def _head_end(statement: ast.stmt) -> int:
    """Return the last line of a statement, without the statements inside it."""
    body = getattr(statement, "body", None)
    return body[0].lineno - 1 if body else (statement.end_lineno or statement.lineno)


def _changed(statement: ast.stmt) -> Iterator[str]:
    """Write a statement with each of its changes."""
    if isinstance(statement, ast.If | ast.While | ast.For):
        yield from (f"{head}" for head in _heads(statement))
        return
    if isinstance(statement, ast.Expr | ast.AugAssign):
        yield "pass"
    if isinstance(statement, ast.Break | ast.Continue):
        yield "pass"
        return
    for node in ast.walk(statement):
        for undo in _mutate(node):
            yield ast.unparse(statement)
            undo()


def _heads(statement: ast.If | ast.While | ast.For) -> Iterator[str]:
    word = "while" if isinstance(statement, ast.While) else "if"
    if isinstance(statement, ast.For):
        for node in ast.walk(statement.iter):
            for undo in _mutate(node):
                target = ast.unparse(statement.target)
                yield f"for {target} in {ast.unparse(statement.iter)}:"
                undo()
        return
    if isinstance(statement, ast.If):
        yield f"if not ({ast.unparse(statement.test)}):"
        yield "if False:"
    for node in ast.walk(statement.test):
        for undo in _mutate(node):
            yield f"{word} {ast.unparse(statement.test)}:"
            undo()


def _mutate(node: ast.AST) -> Iterator["_Undo"]:
    """Change a node in place, in each possible way; yield an undo each time."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARED:
        yield _Undo(node, "ops", [_COMPARED[type(node.ops[0])](), *node.ops[1:]])
    elif isinstance(node, ast.BinOp) and type(node.op) in _COMBINED:
        yield _Undo(node, "op", _COMBINED[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _Undo(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert):
        yield _Undo(node, "op", ast.UAdd())
    elif isinstance(node, ast.IfExp):
        yield _Undo(node, "test", ast.Constant(value=True))
        yield _Undo(node, "test", ast.Constant(value=False))
    elif isinstance(node, ast.Constant) and type(node.value) in (bool, int, float):
        value = node.value
        yield _Undo(node, "value", not value if isinstance(value, bool) else value + 1)  # type: ignore[operator]


class _Undo:
    """A change of one field that can be undone."""

    def __init__(self, node: ast.AST, field: str, value: object) -> None:
        self._node, self._field, self._old = node, field, getattr(node, field)
        setattr(node, field, value)

    def __call__(self) -> None:
        setattr(self._node, self._field, self._old)


def area_of(file: Path) -> str:
    """Name the area of a file."""
    name = file.relative_to(PACKAGE).as_posix()
    return next(area for area in (*DECIDING, *WRITING) if name.startswith(f"{area}/"))


def steps_for(file: Path) -> list[list[str]]:
    """List the tests of a file in steps, nearest first."""
    area = area_of(file)
    stem, parents = file.stem, file.relative_to(PACKAGE).parent
    names = [stem.strip("_"), f"{parents.name}_{stem}"]
    if parents.as_posix() != area:
        names.append(parents.name)
    near = sorted(
        str(test.relative_to(ROOT))
        for test in (ROOT / "tests" / "unit").rglob("test_*.py")
        if any(test.stem in (f"test_{name}", f"test_{name}s") for name in names)
        or test.stem.startswith(f"test_{stem}_")
    )
    further = [path.format(area=area) for path in FURTHER[area]]
    return [step for step in (near, further) if step]


class Trial:
    """A copy of the sources in which one file at a time is changed."""

    def __init__(self, folder: Path, limit_s: float) -> None:
        self._limit_s = limit_s
        self._reach = Reach()
        self._source = folder / "src"
        shutil.copytree(ROOT / "src", self._source, ignore=shutil.ignore_patterns("__pycache__"))

    def kills(self, mutant: Mutant) -> bool:
        """Return whether a test fails, or does not end, with a change."""
        copy = self._source / mutant.file.relative_to(ROOT / "src")
        copy.write_text(mutant.source(), encoding="utf-8")
        try:
            return any(self._fails(step) for step in self._steps(mutant))
        finally:
            shutil.copy(mutant.file, copy)

    def _steps(self, mutant: Mutant) -> list[list[str]]:
        """List the tests that reach a change, those of its own area first."""
        lines = range(mutant.line, mutant.line + mutant.old.count("\n"))
        reaching = self._reach.tests(mutant.file, lines)
        if not reaching:
            return steps_for(mutant.file)
        near = [test for test in reaching if area_of(mutant.file) in test]
        first = near[:_FIRST] or reaching[:_FIRST]
        return (
            [first, [test for test in reaching if test not in first]]
            if reaching != first
            else [first]
        )

    def _fails(self, tests: Sequence[str]) -> bool:
        env = {
            **os.environ,
            "PYTHONPATH": str(self._source),
            "PYTHONDONTWRITEBYTECODE": "1",
            "COLUMNS": "100",
        }
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:randomly"]
        command += ["-p", "no:cacheprovider", *tests]
        try:
            done = subprocess.run(  # noqa: S603
                command, cwd=ROOT, env=env, capture_output=True, timeout=self._limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            return True
        return done.returncode in (1, 2)  # 2: it cannot even be imported


def sample(files: Sequence[Path], count: int, seed: int) -> list[Mutant]:
    """Draw changes, each file in proportion to its lines."""
    known = [mutant for file in files for mutant in mutants_of(file)]
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(known), size=min(count, len(known)), replace=False)
    return [known[i] for i in chosen]


def main() -> int:
    """Sample; return 1 if more than one in twenty survives."""
    parser = argparse.ArgumentParser(prog="mutants")
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--measure", action="append", metavar="TESTS", help="only measure what these tests reach"
    )
    parser.add_argument("--limit-s", type=float, default=600.0, help="of the tests of one mutant")
    parser.add_argument("--file", action="append", help="only these, below src/pumice")
    parser.add_argument("--line", type=int, action="append", help="only changes of these lines")
    chosen = parser.parse_args()
    if chosen.measure:
        measure(chosen.measure)
        return 0
    files = [PACKAGE / name for name in chosen.file or ()] or [
        file for area in (*DECIDING, *WRITING) for file in sorted((PACKAGE / area).rglob("*.py"))
    ]
    mutants = sample(files, chosen.count if not chosen.line else 10**6, chosen.seed)
    mutants = [one for one in mutants if not chosen.line or one.line in chosen.line]
    killed = 0
    with tempfile.TemporaryDirectory(prefix="pumice-mutants-") as folder:
        trial = Trial(Path(folder), chosen.limit_s)
        for number, mutant in enumerate(mutants, start=1):
            dead = trial.kills(mutant)
            killed += dead
            place = f"{mutant.file.relative_to(ROOT)}:{mutant.line}"
            print(f"{number:4} {'killed' if dead else 'SURVIVED'} {place}", flush=True)  # noqa: T201
            if not dead:
                print(mutant.diff(), flush=True)  # noqa: T201
    print(f"{killed} of {len(mutants)} mutants killed, seed {chosen.seed}")  # noqa: T201
    return int(killed < 0.95 * len(mutants))


if __name__ == "__main__":
    sys.exit(main())
