"""Mutants: each is one change of one place that still compiles; a seed draws the same again."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tools.mutant_trials import compiled, near_tests, replace_code
from tools.mutations import PACKAGE, ROOT, Mutant, mutants_of, sample
from tools.reach import load

CODE = '''\
"""A module."""


def most(numbers: list[int], least: int = 0) -> int:
    """Return the most."""
    best = least
    for number in numbers:
        if number > best and not number == 7:
            best = number
    return best + 1
'''


@pytest.fixture
def made(tmp_path: Path) -> list[Mutant]:
    file = tmp_path / "module.py"
    file.write_text(CODE)
    return mutants_of(file)


def test_every_mutant_compiles_and_differs(made: list[Mutant]) -> None:
    assert len(made) >= 7
    for mutant in made:
        assert ast.dump(ast.parse(mutant.source())) != ast.dump(ast.parse(CODE))


@pytest.mark.parametrize("change", ["number >= best", "if False:", "best - 1", "best + 2", " or "])
def test_the_usual_changes_are_there(made: list[Mutant], change: str) -> None:
    assert any(change in mutant.new for mutant in made)


def test_docstrings_and_imports_stay(made: list[Mutant]) -> None:
    assert all('"""' not in mutant.new and "import" not in mutant.new for mutant in made)


def test_a_seed_draws_the_same_again() -> None:
    files = sorted((PACKAGE / "binder").glob("*.py"))
    assert sample(files, 5, 3) == sample(files, 5, 3)
    assert sample(files, 5, 3) != sample(files, 5, 4)


def test_an_elif_stays_one(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("if one:\n    pass\nelif two == 2:\n    go()\nelse:\n    stop()\n")
    assert "elif two != 2:\n" in {mutant.new for mutant in mutants_of(file)}
    for mutant in mutants_of(file):
        ast.parse(mutant.source())


def test_lines_after_a_change_keep_their_numbers(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("total = sum(\n    [\n        1,\n    ]\n)\nlast()\n")
    assert {mutant.source().splitlines().index("last()") for mutant in mutants_of(file)[:1]} == {5}


def test_tests_named_after_a_file_run_on_changes_of_its_own_statements() -> None:
    assert near_tests(PACKAGE / "plugins" / "tdm.py") == [
        str(ROOT / "tests/unit/plugins/test_tdm.py")
    ]
    assert near_tests(PACKAGE / "core" / "__init__.py") == [str(ROOT / "tests/unit/core")]


def test_functions_that_others_imported_get_the_code_of_a_change(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text(CODE)
    code = compiled(file)
    module: dict[str, Any] = {}
    exec(code, module)  # noqa: S102
    most = module["most"]
    assert replace_code(code, compiled(file, CODE.replace("best + 1", "best + 100")))
    assert most([3]) == 103


def test_a_change_outside_functions_is_not_made_in_memory(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    file.write_text("LIMIT = 3\n")
    assert not replace_code(compiled(file), compiled(file, "LIMIT = 4\n"))


TESTS = """
from pumice.core.module import most

def test_most():
    assert most([3]) == 4

def test_none():
    assert most([]) == 1
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project of one module, its tests, and the tool."""
    source = tmp_path / "src" / "pumice" / "core"
    source.mkdir(parents=True)
    for package in (source, source.parent):
        (package / "__init__.py").touch()
    (source / "module.py").write_text(CODE + "\n\nFIRST = most([1])\n")
    tests = tmp_path / "tests" / "unit" / "core"
    tests.mkdir(parents=True)
    (tests / "test_module.py").write_text(TESTS)
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    return tmp_path


def test_what_no_test_detects_survives(project: Path) -> None:
    command = [sys.executable, "-m", "tools.mutants", "--count", "1000", "tests/unit"]
    env = {**os.environ, "PYTHONPATH": str(project / "src")}
    done = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True)  # noqa: PLW1510, S603
    parts = done.stdout.split("\n   ")
    survivors = {part.splitlines()[2][1:].strip() for part in parts if "SURVIVED" in part}
    assert survivors == {
        "if number > best or not number == 7:",
        "if number >= best and (not number == 7):",
        "if number > best and (not number == 8):",
        "FIRST = most([2])",
    }
    assert done.returncode == 1
    (kept,) = (project / "build" / "reach").iterdir()
    reached = load(kept)
    assert len(reached.tests["src/pumice/core/module.py:10"]) == 2
    assert len(reached.tests["src/pumice/core/module.py:8"]) == 1
