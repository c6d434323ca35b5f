"""A release: files that agree, the same bytes each time, each of which works on an empty system."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.e2e_kube.controlplane.build import Programs
from tools.packages import CHART, ROOT, missing_platforms
from tools.release import SUMS, _project, pins, release

VERSION = _project()["version"]
HELM = shutil.which(os.environ.get("HELM", "helm")) or Programs.from_environment().find("helm")
LOADED = "from pumice.kernel.library import library; print(library() is not None)"
PACKAGES = {"kernel": "*-manylinux*_x86_64.whl", "any": "*-any.whl", "source": "*.tar.gz"}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    release(folder)
    return folder


@pytest.fixture
def bill(made: Path) -> Any:
    return json.loads((made / f"pumice-{VERSION}.cdx.json").read_text())


@pytest.mark.slow
def test_two_builds_are_the_same_bytes(made: Path, tmp_path: Path) -> None:
    again = release(tmp_path)
    assert {file.name: file.read_bytes() for file in again} == {
        file.name: file.read_bytes() for file in made.iterdir()
    }


def test_checksums_are_those_of_the_files(made: Path) -> None:
    lines = (made / SUMS).read_text().splitlines()
    sums = {line.split("  ")[1]: line.split("  ")[0] for line in lines}
    assert set(sums) == {file.name for file in made.iterdir()} - {SUMS}
    for name, value in sums.items():
        assert hashlib.sha256((made / name).read_bytes()).hexdigest() == value


def test_the_bill_lists_every_locked_package_and_what_is_vendored(bill: Any) -> None:
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    listed = {(one["name"], one["version"]) for one in bill["components"]}
    locked = {(name, version) for name, version, _ in pins(ROOT / "requirements/runtime.txt")}
    assert locked <= listed
    assert {name for name, _ in listed - locked} == {"htm", "uplot"}
    references = [one["bom-ref"] for one in bill["components"]]
    assert len(references) == len(set(references))
    assert bill["dependencies"][0]["dependsOn"] == references


def test_the_bill_names_the_other_files_by_checksum(made: Path, bill: Any) -> None:
    files = bill["metadata"]["component"]["externalReferences"]
    assert {one["url"] for one in files} >= {f"pumice-{VERSION}.tgz", f"pumice-{VERSION}.yaml"}
    for one in files:
        content = (made / one["url"]).read_bytes()
        assert one["hashes"][0]["content"] == hashlib.sha256(content).hexdigest()


def test_the_wheel_holds_what_a_command_needs_and_no_test(made: Path) -> None:
    names = zipfile.ZipFile(next(made.glob("*-any.whl"))).namelist()
    assert "pumice/cli/demo/story.yaml" in names
    assert "pumice/dashboard/web/vendor/htm-3.1.1/LICENSE-preact" in names
    for folder in {name.rpartition("/")[0] for name in names if "/vendor/" in name}:
        assert any(name.startswith(f"{folder}/LICENSE") for name in names), folder
    assert not [name for name in names if name.startswith(("tests", "tools"))]


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", PACKAGES)
def test_each_package_works_in_an_empty_environment(made: Path, tmp_path: Path, name: str) -> None:
    """Nothing is downloaded: a path file shows the packages of this environment, not this clone."""
    if name == "kernel" and "manylinux_2_17_x86_64" in missing_platforms():
        pytest.skip("no compiler for it")
    (package,) = made.glob(PACKAGES[name])
    venv.create(tmp_path / "venv", with_pip=False)
    python = tmp_path / "venv" / "bin" / "python"
    packages = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index"]
    options = ["--no-deps", "--no-compile", "--no-build-isolation", "--disable-pip-version-check"]
    subprocess.run([*pip, *options, str(package)], check=True, env={})  # noqa: S603

    def run(*words: str) -> str:
        found = subprocess.run(  # noqa: S603
            words,
            cwd=tmp_path,
            env={"HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert found.returncode == 0, found.stderr
        return found.stdout

    pumice = str(python.with_name("pumice"))
    assert run(pumice, "--version") == f"pumice {VERSION}\n"
    assert "1 passed" in run(pumice, "test", str(ROOT / "tests/golden/gang/004.json"))
    if name == "kernel":
        assert (packages / "pumice" / "kernel" / "kernel.so").exists()
        assert run(str(python), "-c", LOADED) == "True\n"
        trace = str(ROOT / "examples/sim/manifests.yaml")
        assert "report.html" in run(pumice, "sim", "--trace", trace, "--dir", "out")


def test_the_chart_is_packed_whole(made: Path) -> None:
    with tarfile.open(made / f"pumice-{VERSION}.tgz") as archive:
        names = archive.getnames()
    assert names[0] == "pumice/Chart.yaml"
    files = {file.relative_to(CHART).as_posix() for file in CHART.rglob("*") if file.is_file()}
    assert {name.removeprefix("pumice/") for name in names} == files


@pytest.mark.skipif(HELM is None, reason="reads the package: install helm or set HELM")
@pytest.mark.parametrize(
    "words", [("lint", "--strict"), ("template", "pumice", "--kube-version=1.36.1")]
)
def test_helm_takes_the_package_of_the_chart(made: Path, words: tuple[str, ...]) -> None:
    command = [str(HELM), *words, str(made / f"pumice-{VERSION}.tgz")]
    found = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert found.returncode == 0, found.stdout + found.stderr
    if words[0] == "template":
        assert f"image: pumice:{VERSION}" in found.stdout


def test_an_image_can_be_built_from_the_source_archive(made: Path) -> None:
    with tarfile.open(next(made.glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    recipe = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    copied = [
        source
        for line in re.findall(r"(?m)^COPY (?!--from)(.*)$", recipe)
        for source in line.split()[:-1]
    ]
    assert {"Dockerfile", ".dockerignore", "Makefile", "requirements/dev.txt"} <= names
    assert copied
    assert [one for one in copied if not any(name.startswith(one) for name in names)] == []
