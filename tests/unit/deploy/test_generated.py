"""The files that users apply match the definitions."""

from typing import Any

import pytest

from deploy import build
from deploy.crds import RESOURCES

OUTPUTS = build.outputs()


@pytest.mark.parametrize("path", OUTPUTS, ids=lambda path: str(path.relative_to(build.HERE.parent)))
def test_a_generated_file_is_up_to_date(path: Any) -> None:
    """If it is not: python -m deploy.build."""
    assert path.read_text(encoding="utf-8") == OUTPUTS[path]


@pytest.mark.parametrize("folder", ["crds", "helm/pumice/files", "helm/pumice/files/crds"])
def test_no_file_is_left_over(folder: str) -> None:
    present = {path for path in (build.HERE / folder).iterdir() if path.is_file()}
    assert present == {path for path in OUTPUTS if path.parent == build.HERE / folder}


def test_the_manifest_can_be_applied_by_a_client() -> None:
    """kubectl apply keeps a copy of each object in an annotation, which has a limit."""
    longest = max(len(build.to_yaml([one.manifest()])) for one in RESOURCES)
    assert longest < 200_000
