"""The shell commands of the page on migration do what it says with the real manifests."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "migrating.md").read_text(encoding="utf-8")
CONF = ("ConfigMap", "volcano-scheduler-configmap")


def objects(text: str) -> list[Any]:
    return [one for one in yaml.load_all(text, yaml.CSafeLoader) if one]


def name_of(one: Any) -> tuple[str, str]:
    return one["kind"], one["metadata"]["name"]


def run(command: str, cwd: Path) -> str:
    done = subprocess.run(  # noqa: S602  (a command of our own page)
        command, shell=True, cwd=cwd, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture
def pumice(tmp_path: Path) -> str:
    """Return pumice.yaml with the image of step 0."""
    (tmp_path / "deploy").symlink_to(ROOT / "deploy")
    for command in re.findall(r"^sed .*$", PAGE, re.MULTILINE):
        run(command, tmp_path)
    assert "image: pumice:" not in (tmp_path / "shadow.yaml").read_text()
    return (tmp_path / "pumice.yaml").read_text()


def test_everything_but_the_configuration_is_applied(pumice: str, tmp_path: Path) -> None:
    command = next(iter(re.findall(r"^awk .* pumice\.yaml > .*$", PAGE, re.MULTILINE)))
    run(command, tmp_path)
    everything = objects(pumice)
    kept = objects((tmp_path / command.split()[-1]).read_text())
    assert kept == [one for one in everything if name_of(one) != CONF]
    assert len(kept) == len(everything) - 1


def test_images_carry_the_registry(pumice: str) -> None:
    images = re.findall(r"^ *image: (.*)$", pumice, re.MULTILINE)
    assert images
    assert {image.partition("/")[0] for image in images} == {"registry.example"}


def test_webhooks_that_pumice_has_are_not_deleted(pumice: str) -> None:
    kept = {name for kind, name in map(name_of, objects(pumice)) if "Webhook" in kind}
    deleted = re.findall(r"^kubectl delete \w+webhookconfiguration (.*)$", PAGE, re.MULTILINE)
    names = {name for line in deleted for name in line.split() if not name.startswith("-")}
    assert len(names) == 4
    assert not names & kept


def test_what_is_scaled_and_deleted_is_there(pumice: str) -> None:
    there = {name_of(one) for one in objects(pumice)}
    scaled = set(re.findall(r"deploy/(volcano-(?!shadow)\w+)", PAGE))
    assert {("Deployment", name) for name in scaled} == {
        each for each in there if each[0] == "Deployment"
    }
    assert ("Job", "volcano-admission-init") in there
