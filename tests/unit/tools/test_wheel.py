"""The wheel alone, in an environment of its own: what it has, what it asks for, what it says."""

import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
from importlib.metadata import packages_distributions
from typing import Any

import pytest

from tools.release import ROOT, build

IMPORTS = re.compile(r"(?m)^ *(?:from (\w[\w.]*) import |import (\w[\w., ]*)(?: *#.*)?$)")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def pumice(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Install the wheel into an empty environment; only what it depends on comes from here.

    Nothing is downloaded: a path file shows the environment the packages of this one, without the
    path files among them, so that this checkout is not found.
    """
    folder = tmp_path_factory.mktemp("wheel")
    wheel = next(
        file for file in build(folder, 1_700_000_000, "-t", "wheel") if file.suffix == ".whl"
    )
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    packages = next((folder / "venv" / "lib").glob("python*/site-packages"))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install = [
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--quiet",
        "--no-deps",
        "--no-compile",
    ]
    options = ["--no-index", "--no-compile", "--disable-pip-version-check", str(wheel)]
    subprocess.run([sys.executable, *install, *options], check=True, env={})  # noqa: S603

    def run(*words: str) -> str:
        command = [str(folder / "venv" / "bin" / "pumice"), *words]
        found = subprocess.run(  # noqa: S603
            command, cwd=folder, env={}, capture_output=True, text=True, check=False
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    return run


def test_the_installed_command_answers(pumice: Any) -> None:
    assert pumice("--version") == f"pumice {PROJECT['version']}\n"
    assert "trace" in pumice("--help")


def test_what_is_installed_decides_simulates_and_describes(pumice: Any) -> None:
    examples = ROOT / "examples"
    assert "1 passed" in pumice("test", str(ROOT / "tests/golden/gang/004.json"))
    assert "jobs" in pumice("trace", "describe", str(examples / "sim/synthetic.yaml"))
    trace = str(examples / "sim/manifests.yaml")
    assert "report.html" in pumice("sim", "--trace", trace, "--dir", "out")


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
