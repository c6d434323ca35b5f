"""What controllers make of the Volcano jobs of a scenario before its first cycle.

Pods that are still to be made, and that an API server would refuse, are not there.
"""

from collections.abc import Iterator, Sequence

from pumice.api.kinds import LIMIT_RANGE, RESOURCE_QUOTA, Manifest
from pumice.cluster.embedded.quotas import usage_of
from pumice.controllers.expected import is_expected, missing_class, with_expected
from pumice.controllers.quota_headroom import QuotaHeadroom, RefusedPod, counted_elsewhere
from pumice.scenarios.objects import group_of, is_job, key_of
from pumice.scenarios.scenario import Scenario
from pumice.webhooks.files import stored_job


def with_made_objects(scenario: Scenario) -> tuple[list[Manifest], dict[str, str]]:
    """Return the objects with those that are made, and pods to the words of their refusal.

    Raises:
        ManifestError: A job cannot be used; names its file and line.
    """
    jobs = [
        stored_job(dict(one), source=scenario.line(number))
        for number, one in enumerate(scenario.objects)
        if is_job(one)
    ]
    rest = [one for one in scenario.objects if not is_job(one)]
    objects = with_expected(rest, jobs, scenario.now)
    words = {key_of(each.pod): each.why[0].problem for each in _refused(objects, scenario)}
    known = {one["metadata"]["name"] for one in objects if one["kind"] == "PriorityClass"}
    for one in objects:
        if one["kind"] == "Pod" and is_expected(one) and (name := missing_class(one, known)):
            words[key_of(one)] = f"no PriorityClass with name {name} was found"
    return [one for one in objects if one["kind"] != "Pod" or key_of(one) not in words], words


def _refused(objects: Sequence[Manifest], scenario: Scenario) -> Iterator[RefusedPod]:
    """Yield the pods still to be made that quotas among the objects refuse."""
    quotas = [one for one in objects if one["kind"] == RESOURCE_QUOTA]
    pods = [one for one in objects if one["kind"] == "Pod"]
    if not quotas:
        return
    by_group: dict[str, list[Manifest]] = {}
    for pod in pods:
        by_group.setdefault(group_of(pod) or "", []).append(pod)
    groups = {key_of(one): one for one in objects if one["kind"] == "PodGroup"}
    elsewhere = counted_elsewhere(quotas, pods, usage_of)
    knows_defaults = LIMIT_RANGE not in scenario.hidden
    rooms = QuotaHeadroom(quotas, pods, usage_of, elsewhere, demands=knows_defaults)
    for found in rooms.refusals(by_group, groups).values():
        yield from found.pods
