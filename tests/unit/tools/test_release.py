"""A release: archives, a bill of materials and checksums that agree, the same bytes each time."""

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tools.release import ROOT, SUMS, pins, release


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("release")
    release(folder)
    return folder


@pytest.fixture
def bill(made: Path) -> Any:
    return json.loads((made / "pumice.cdx.json").read_text())


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


def test_the_bill_names_the_archives_by_checksum(made: Path, bill: Any) -> None:
    archives = bill["metadata"]["component"]["externalReferences"]
    assert sorted(one["url"].rpartition(".")[2] for one in archives) == ["gz", "whl"]
    for one in archives:
        content = (made / one["url"]).read_bytes()
        assert one["hashes"][0]["content"] == hashlib.sha256(content).hexdigest()


def test_the_wheel_holds_what_a_command_needs_and_no_test(made: Path) -> None:
    (wheel,) = made.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "pumice/cli/entry.py" in names
    assert "pumice/cli/demo/story.yaml" in names
    assert "pumice/dashboard/web/vendor/htm-3.1.1/LICENSE-preact" in names
    for folder in {name.rpartition("/")[0] for name in names if "/vendor/" in name}:
        assert any(name.startswith(f"{folder}/LICENSE") for name in names), folder
    assert not [name for name in names if name.startswith(("tests", "tools"))]
