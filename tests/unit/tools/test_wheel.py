"""What the package asks for, and what it says of itself."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest

from tools.packages import ROOT

IMPORTS = re.compile(r"(?m)^ *(?:from (\w[\w.]*) import |import (\w[\w., ]*)(?: *#.*)?$)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def imported() -> set[str]:
    """Name the packages of others that the source imports."""
    found: set[str] = set()
    for file in (ROOT / "src").rglob("*.py"):
        for one in IMPORTS.finditer(file.read_text(encoding="utf-8")):
            names = (one[1] or one[2]).split(", ")
            found |= {name.partition(".")[0].partition(" ")[0] for name in names}
    return found - {"pumice"} - set(sys.stdlib_module_names)


def plain(requirement: str) -> str:
    return re.split(r"[\s\[<>=!;~]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def test_every_package_that_is_imported_is_asked_for() -> None:
    """An empty machine has nothing else."""
    extras = PROJECT["optional-dependencies"].values()
    asked = {plain(one) for ones in (PROJECT["dependencies"], *extras) for one in ones}
    owners = packages_distributions()
    missing = {
        name
        for name in imported()
        if not {owner.lower().replace("_", "-") for owner in owners.get(name, [name])} & asked
    }
    assert missing == set()


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_every_extra_is_documented_with_what_it_brings(extra: str) -> None:
    page = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")
    assert re.search(rf"^\|[^|]*`{extra}`[^|]*\| \S", page, re.MULTILINE)


def test_the_versions_of_python_are_stated_up_from_the_least() -> None:
    stated = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if ":: 3." in line]
    assert stated == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == ">=3.11"
