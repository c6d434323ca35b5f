"""The files that users apply match the definitions."""

from pathlib import Path
from typing import Any

import pytest

from deploy import build
from deploy.crds import RESOURCES


@pytest.fixture(scope="module")
def outputs() -> dict[Path, str]:
    return build.outputs()


def test_every_generated_file_is_up_to_date(outputs: Any) -> None:
    """If one is not: python -m deploy.build."""
    found = {path: path.read_text(encoding="utf-8") if path.exists() else "" for path in outputs}
    assert [str(path) for path, text in outputs.items() if found[path] != text] == []


@pytest.mark.parametrize("folder", ["crds", "helm/pumice/files", "helm/pumice/files/crds"])
def test_no_file_is_left_over(outputs: Any, folder: str) -> None:
    present = {path for path in (build.HERE / folder).iterdir() if path.is_file()}
    assert present == {path for path in outputs if path.parent == build.HERE / folder}


def test_the_manifest_can_be_applied_by_a_client() -> None:
    """kubectl apply keeps a copy of each object in an annotation, which has a limit."""
    longest = max(len(build.to_yaml([one.manifest()])) for one in RESOURCES)
    assert longest < 200_000
