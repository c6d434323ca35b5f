"""Find cycles of imports between the files of a package.

Counts every import: at the top of a file, inside a function, under ``TYPE_CHECKING``, by
``import_module`` with a fixed name, and the dotted name of a module in a quoted annotation.

    python -m tools.import_cycles [FOLDER OF THE PACKAGE]
"""

import ast
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path

Graph = Mapping[str, Mapping[str, int]]
"""Importing module to imported module to the line of the import."""


def import_graph(package: Path) -> Graph:
    """Read every file of a package."""
    files = {_module_name(package, path): path for path in sorted(package.rglob("*.py"))}
    return {
        name: _imports(name, path, files, is_package=path.stem == "__init__")
        for name, path in files.items()
    }


def _module_name(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(name: str, path: Path, known: Iterable[str], *, is_package: bool) -> dict[str, int]:
    found: dict[str, int] = {}
    home = name if is_package else name.rpartition(".")[0]
    for target, line in _mentioned(ast.parse(path.read_text(encoding="utf-8")), home):
        module = _module_of(target, known)
        if module:
            found.setdefault(module, line)
    return found


def _module_of(target: str, known: Iterable[str]) -> str:
    """Return the module of a dotted name, empty if it is outside the package."""
    while target and target not in known:
        target = target.rpartition(".")[0]
    return target


def _mentioned(tree: ast.AST, home: str) -> Iterator[tuple[str, int]]:
    """Yield the dotted names that a file imports, with their lines."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from ((alias.name, node.lineno) for alias in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                above = home.split(".")
                base = above[: len(above) - level + 1] if level else []
                origin = ".".join([*base, module] if module else base)
                yield from ((f"{origin}.{alias.name}", node.lineno) for alias in names)
            case ast.Call(args=[ast.Constant(value=str(target)), *_]) if _loads(node.func):
                yield target, node.lineno
            case ast.arg(annotation=hint) | ast.AnnAssign(annotation=hint):
                yield from _quoted(hint)
            case ast.FunctionDef(returns=hint) | ast.AsyncFunctionDef(returns=hint):
                yield from _quoted(hint)


def _loads(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name in ("import_module", "__import__")
    return False


def _quoted(hint: ast.expr | None) -> Iterator[tuple[str, int]]:
    """Yield the dotted names in the quoted parts of an annotation."""
    for node in ast.walk(hint) if hint else ():
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                parsed = ast.parse(node.value, mode="eval")
            except SyntaxError:  # a Literal, not a type
                continue
            for each in ast.walk(parsed):
                if isinstance(each, ast.Attribute):
                    yield ast.unparse(each), node.lineno


def circles(graph: Graph) -> list[list[str]]:
    """Return, for each group of modules that import each other, its shortest cycle.

    A cycle ends with the module it began with.
    """
    reach = {name: _reachable(graph, name) for name in graph}
    found, done = [], set[str]()
    for name in graph:
        if name not in done and name in reach[name]:
            group = {other for other in reach[name] if name in reach[other]}
            done |= group
            found.append(min((_shortest(graph, each) for each in sorted(group)), key=len))
    return found


def _reachable(graph: Graph, start: str) -> set[str]:
    found, left = set[str](), [start]
    while left:
        new = graph[left.pop()].keys() - found
        found |= new
        left += new
    return found


def _shortest(graph: Graph, start: str) -> list[str]:
    """Return the shortest path from a module back to itself."""
    ways, seen = deque([[start]]), set[str]()
    while ways:
        way = ways.popleft()
        for target in graph[way[-1]]:
            if target == start:
                return [*way, start]
            if target not in seen:
                seen.add(target)
                ways.append([*way, target])
    raise ValueError(f"{start} is in no circle")


def main(arguments: list[str]) -> int:
    """Print each cycle with the lines of its imports; return 1 if there is any."""
    graph = import_graph(Path(arguments[0] if arguments else "src/pumice"))
    found = circles(graph)
    for circle in found:
        sys.stdout.write(f"circle of imports: {' -> '.join(circle)}\n")
        for importer, imported in pairwise(circle):
            line = graph[importer][imported]
            sys.stdout.write(f"  {importer}, line {line}: imports {imported}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
