"""The objects that the first cycle of a scenario decides about."""

from dataclasses import dataclass, field

from pumice.api.annotations import EXPECTED
from pumice.api.kinds import Manifest
from pumice.cluster.embedded.claim_changes import with_made_claims
from pumice.scenarios.identity import is_job
from pumice.scenarios.scenario import Scenario


@dataclass(frozen=True)
class FirstObjects:
    """The objects, and the pods that are not among them."""

    objects: list[Manifest]
    refused: dict[str, str] = field(default_factory=dict)
    """Pod to the words of the resource quota that refuses it."""


def first_objects(scenario: Scenario) -> FirstObjects:
    """Return the objects that the first cycle decides about.

    Raises:
        ManifestError: A job cannot be used; names its file and line.
    """
    if not any(is_job(one) or _is_expected(one) for one in scenario.objects):
        return FirstObjects(with_made_claims(scenario.objects))
    from pumice.scenarios.made_objects import with_made_objects  # noqa: PLC0415  (loads controllers)

    objects, refused = with_made_objects(scenario)
    return FirstObjects(objects, refused)


def _is_expected(one: Manifest) -> bool:
    return one["kind"] == "Pod" and EXPECTED in (one["metadata"].get("annotations") or ())
