"""Answers of an API server before it checks the fields of an object."""

from typing import Any

import pytest

from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.errors import NotFoundError
from pumice.testing.recorded.admission import run_admission_case
from pumice.webhooks.embedded import EmbeddedAdmission
from pumice.webhooks.files import Files
from pumice.webhooks.lint import lint_object

MISMATCH = (
    "the API version in the data (batch.volcano.sh/v1) "
    "does not match the expected API version (batch.volcano.sh/v1alpha1)"
)


def job(version: str = "v1alpha1", **fields: Any) -> Any:
    metadata = {"name": "ghost", "namespace": "default"}
    return {"apiVersion": f"batch.volcano.sh/{version}", "kind": "Job", "metadata": metadata} | (
        fields
    )


def case(operation: str, sent: Any, result: Any, **fields: Any) -> Any:
    refused = {"allowed": False, "source": "builtin", **result}
    named = {"name": "a case", "operation": operation, "object": sent, "result": refused}
    return named | fields


@pytest.mark.parametrize("stored", [None, job(metadata={"name": "up", "namespace": "default"})])
def test_an_update_of_what_is_not_there_is_not_found_whatever_it_says(stored: Any) -> None:
    result = {
        "code": 404,
        "reason": "NotFound",
        "message": 'jobs.batch.volcano.sh "ghost" not found',
    }
    given = job(spec={"minAvailable": -5, "odd": 1})
    warnings = [r'"unknown field \"spec.odd\""']
    assert (
        run_admission_case(case("UPDATE", given, result, oldObject=stored, warnings=warnings)) == []
    )


def test_an_embedded_cluster_does_not_judge_an_update_of_what_is_not_there() -> None:
    cluster = EmbeddedCluster()
    cluster.admission = EmbeddedAdmission(cluster)
    with pytest.raises(NotFoundError):
        cluster.update(job(spec={"minAvailable": -5}))


def test_all_fields_of_a_version_that_is_not_served_are_unknown() -> None:
    sent = job("v1", spec={"minAvailable": 1, "odd": 1}, status={}, extra=1)
    sent["metadata"]["odd"] = 1
    result = {"code": 400, "reason": "BadRequest", "message": MISMATCH}
    names = ("metadata.odd", "extra", "spec", "status")
    warnings = [rf'"unknown field \"{name}\""' for name in names]
    assert run_admission_case(case("CREATE", sent, result, warnings=warnings)) == []


def test_lint_tells_of_the_version_and_not_of_the_fields() -> None:
    found = lint_object(job("v1", spec={"odd": 1}), Files([], []))
    assert [one.text for one in found] == [MISMATCH]
