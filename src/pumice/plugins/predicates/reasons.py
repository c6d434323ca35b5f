"""Reasons for which predicates refuses a node, in Kubernetes' words, and which are curable."""

from enum import IntEnum

from pumice.api.codes import Cause
from pumice.framework.plugin import Reason


class Code(IntEnum):
    """Numbers of the reasons, in the order in which the tests are made."""

    FITS = 0
    PODS = 1
    CORDON = 2
    NODE_AFFINITY = 3
    TAINT = 4
    PORTS = 5
    AFFINITY = 6
    ANTI_AFFINITY = 7
    EXISTING_ANTI_AFFINITY = 8
    VOLUME_LIMIT = 9
    VOLUME_ZONE = 10
    SPREAD_LABEL = 11
    SPREAD = 12
    VOLUME_NODE = 13
    VOLUME_BINDING = 14
    VOLUME_CAPACITY = 15
    CLAIM_NODE = 16
    DEVICES = 17


REASONS = (
    Reason("node(s) pod number exceeded", code=Cause.POD_LIMIT),
    Reason("node(s) were unschedulable", curable=False, code=Cause.NODE_UNSCHEDULABLE),
    Reason(
        "node(s) didn't match Pod's node affinity/selector", curable=False, code=Cause.NODE_AFFINITY
    ),
    Reason("node(s) had untolerated taint(s)", curable=False, code=Cause.TAINT),
    Reason("node(s) didn't have free ports for the requested pod ports", code=Cause.HOST_PORT),
    Reason("node(s) didn't match pod affinity rules", curable=False, code=Cause.POD_AFFINITY),
    Reason("node(s) didn't match pod anti-affinity rules", code=Cause.POD_ANTI_AFFINITY),
    Reason(
        "node(s) didn't satisfy existing pods anti-affinity rules", code=Cause.POD_ANTI_AFFINITY
    ),
    Reason("node(s) exceed max volume count", code=Cause.VOLUME),
    Reason("node(s) had no available volume zone", curable=False, code=Cause.VOLUME),
    Reason(
        "node(s) didn't match pod topology spread constraints (missing required label)",
        curable=False,
        code=Cause.TOPOLOGY_SPREAD,
    ),
    Reason("node(s) didn't match pod topology spread constraints", code=Cause.TOPOLOGY_SPREAD),
    Reason(
        "node(s) didn't match PersistentVolume's node affinity", curable=False, code=Cause.VOLUME
    ),
    Reason(
        "node(s) didn't find available persistent volumes to bind", curable=False, code=Cause.VOLUME
    ),
    Reason("node(s) did not have enough free storage", curable=False, code=Cause.VOLUME),
    Reason(
        "node(s) don't reach the devices of the pod's resource claims",
        curable=False,
        code=Cause.DEVICE,
    ),
    Reason("node(s) cannot allocate all resource claims", curable=False, code=Cause.DEVICE),
)
"""The reason of code k is at index k - 1."""
