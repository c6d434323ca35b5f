"""Clusters for tests of the simulator."""

from collections.abc import Mapping
from typing import Any

from pumice.api.objects import KubeObject, from_manifest, in_namespace


def kube_objects(*manifests: Mapping[str, Any]) -> list[KubeObject]:
    """Read manifests as a cluster holds them."""
    return [from_manifest(in_namespace(dict(manifest))) for manifest in manifests]
