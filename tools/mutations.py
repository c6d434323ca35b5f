"""What `make mutants` changes: one comparison, operator, condition, number or statement."""

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGE: Final = ROOT / "src" / "pumice"
AREAS: Final = (
    *("framework", "actions", "plugins", "core", "scheduler.py"),
    *("binder", "cache", "controllers", "cluster", "serve/scheduler"),
)
"""The deciding side and the writing side."""
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

    @property
    def place(self) -> str:
        """Name the file and the line."""
        return f"{self.file.relative_to(ROOT)}:{self.line}"

    def source(self) -> str:
        """Return the text of the changed file."""
        height = self.old.count("\n") - self.new.count("\n")  # what follows keeps its lines
        return self.file.read_text(encoding="utf-8").replace(self.old, self.new + "\n" * height, 1)

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
        if not isinstance(statement, ast.stmt) or is_description(statement):
            continue
        first, last = statement.lineno, _head_end(statement)
        old = "".join(lines[first - 1 : last])
        if text.count(old) != 1:  # the change would hit another place
            continue
        for new in _changed(statement):
            indent = " " * statement.col_offset
            word = "el" if old.lstrip().startswith("elif") else ""
            body = "".join(f"{indent}{word}{line}\n" for line in new.splitlines())
            found.append(Mutant(file, first, old, body))
    return sorted(found, key=lambda one: (one.line, one.new))


def is_description(statement: ast.stmt) -> bool:
    """Return whether a statement decides nothing: import, definition, docstring, declaration."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    plain = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Pass, ast.Raise)
    return isinstance(
        statement, (*plain, ast.AsyncFunctionDef, ast.Try, ast.AnnAssign, ast.With, ast.AsyncWith)
    )


def _head_end(statement: ast.stmt) -> int:
    """Return the last line of a statement, without the statements inside it."""
    body = getattr(statement, "body", None)
    return body[0].lineno - 1 if body else (statement.end_lineno or statement.lineno)


def _changed(statement: ast.stmt) -> Iterator[str]:
    """Write a statement with each of its changes; of one with a body, only the head."""
    if isinstance(statement, ast.Break | ast.Continue):
        yield "pass"
        return
    if isinstance(statement, ast.Expr | ast.AugAssign):
        yield "pass"
    if isinstance(statement, ast.If):
        yield f"if not ({ast.unparse(statement.test)}):"
        yield "if False:"
    for part in _own_parts(statement):
        for node in _noticeable(part):
            for undo in _mutate(node):
                yield _written(statement)
                undo()


def _own_parts(statement: ast.stmt) -> list[ast.AST]:
    """Return what a statement evaluates itself; the statements inside it are changed alone."""
    if isinstance(statement, ast.If | ast.While):
        return [statement.test]
    if isinstance(statement, ast.For | ast.AsyncFor):
        return [statement.iter]
    if isinstance(statement, ast.Match):
        return [statement.subject, *(case.guard for case in statement.cases if case.guard)]
    return [statement]


def _written(statement: ast.stmt) -> str:
    """Write a statement without its body; a match, which is replaced as a whole, with it."""
    if isinstance(statement, ast.If | ast.While):
        word = "while" if isinstance(statement, ast.While) else "if"
        return f"{word} {ast.unparse(statement.test)}:"
    if isinstance(statement, ast.For | ast.AsyncFor):
        word = "async for" if isinstance(statement, ast.AsyncFor) else "for"
        return f"{word} {ast.unparse(statement.target)} in {ast.unparse(statement.iter)}:"
    return ast.unparse(statement)


def _noticeable(tree: ast.AST) -> Iterator[ast.AST]:
    """Walk over a tree without what can never matter: checks of lengths, numbers of log levels."""
    yield tree
    children = list(ast.iter_child_nodes(tree))
    if isinstance(tree, ast.Call):
        if isinstance(tree.func, ast.Name) and tree.func.id == "zip":
            children = [one for one in children if getattr(one, "arg", "") != "strict"]
        if isinstance(tree.func, ast.Attribute) and tree.func.attr == "v":
            children = [one for one in children if not isinstance(one, ast.Constant)]
    for child in children:
        yield from _noticeable(child)


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


def files_of(areas: Sequence[str]) -> list[Path]:
    """List the files of some areas below src/pumice."""
    places = [PACKAGE / area for area in areas]
    return [
        file for place in places for file in ([place] if place.is_file() else place.rglob("*.py"))
    ]


def sample(files: Sequence[Path], count: int, seed: int) -> list[Mutant]:
    """Draw changes, each file in proportion to its lines."""
    known = [mutant for file in sorted(files) for mutant in mutants_of(file)]
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(known), size=min(count, len(known)), replace=False)
    return [known[i] for i in chosen]
