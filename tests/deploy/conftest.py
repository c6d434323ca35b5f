"""A control plane for the tests of what is deployed; the one that all tests on a cluster use."""

from tests.e2e_kube.conftest import kubectl, plane

__all__ = ["kubectl", "plane"]
