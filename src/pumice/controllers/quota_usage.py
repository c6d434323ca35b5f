"""Usage of pods as resource quotas count it: ``minResources`` of a PodGroup.

Amounts keep their form: 32Mi twice is 64Mi, 32M twice is 64M.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from pumice.api.pod_resources import Amounts, plus
from pumice.api.quantity import Amount
from pumice.api.quota_amounts import pod_usage

_SHORT: Final = 4096
"""Bytes of what is stated up to which its usage is remembered."""
_OF_CONTAINERS: Final = ("resources", "restartPolicy")


def pods_usage(pods: Iterable[tuple[Mapping[str, Any], int]]) -> dict[str, str]:
    """Sum up what pods use, given as specs with the number of pods of each."""
    stated = [(_stated(spec), n_pods) for spec, n_pods in pods if n_pods > 0]
    text = msgspec.json.encode(stated)
    return dict(_usage(text) if len(text) <= _SHORT else _usage.__wrapped__(text))


def _stated(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return all of a spec that has to do with amounts."""
    lists = {
        field: [{name: one[name] for name in _OF_CONTAINERS if name in one} for one in spec[field]]
        for field in ("containers", "initContainers")
        if spec.get(field)
    }
    return lists | {field: spec[field] for field in ("resources", "overhead") if field in spec}


@lru_cache(maxsize=1024)  # most pods are like others
def _usage(stated: bytes) -> Mapping[str, str]:
    total: Amounts = {}
    for spec, n_pods in msgspec.json.decode(stated):
        used = pod_usage(spec)
        total = plus(
            total, {name: Amount(each.nano * n_pods, each.form) for name, each in used.items()}
        )
    return {name: str(each) for name, each in total.items()}
