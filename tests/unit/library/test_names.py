"""The promised names: loaded when first used, typed by the stub, all of them there."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pumice

STUB = Path(pumice.__file__).with_suffix(".pyi")


def test_the_stub_has_every_name_and_no_other() -> None:
    tree = ast.parse(STUB.read_text())
    typed = {
        alias.asname
        for each in tree.body
        if isinstance(each, ast.ImportFrom)
        for alias in each.names
    }
    assert typed | {"__version__"} == set(dir(pumice))


@pytest.mark.parametrize("name", sorted(set(dir(pumice)) - {"__version__"}))
def test_every_name_is_there_and_says_what_it_is(name: str) -> None:
    assert getattr(pumice, name).__doc__
    assert name in dir(pumice)


def test_another_name_is_none_of_ours() -> None:
    with pytest.raises(AttributeError, match="module 'pumice' has no attribute 'simulation'"):
        _ = pumice.simulation  # type: ignore[attr-defined]


def test_importing_the_package_loads_no_numpy() -> None:
    code = "import sys, pumice; print('numpy' in sys.modules)"
    done = subprocess.run(  # noqa: S603  (our own code)
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
