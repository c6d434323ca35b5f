"""What holds of claims when a pod is bound: its disk lies on its node, its devices are its own."""

from collections import Counter
from collections.abc import Iterator

from pumice.api.kinds import CLAIM, RESOURCE_CLAIM, VOLUME, Manifest
from pumice.cluster.embedded.store import EmbeddedCluster


def check_claims(cluster: EmbeddedCluster, pod: Manifest) -> Iterator[str]:
    """Yield what is wrong with the claims of a pod that has just been bound."""
    for entry in pod["spec"].get("volumes") or ():
        source = entry.get("persistentVolumeClaim")
        if source is not None:
            yield from _check_volume(cluster, pod, source["claimName"])
    if pod["spec"].get("resourceClaims"):
        yield from _check_devices(cluster, pod)


def _check_volume(cluster: EmbeddedCluster, pod: Manifest, name: str) -> Iterator[str]:
    claim = cluster.peek(CLAIM, pod["metadata"]["namespace"], name) or {}
    volume = cluster.peek(VOLUME, "", (claim.get("spec") or {}).get("volumeName", ""))
    if volume is None:
        yield f"pod {name} is bound before its volume"
        return
    [term] = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    [only] = [each for found in term.values() for each in found]
    if only["values"] != [pod["spec"]["nodeName"]]:
        yield f"pod {name} is bound to {pod['spec']['nodeName']}, its volume is on {only['values']}"


def _check_devices(cluster: EmbeddedCluster, pod: Manifest) -> Iterator[str]:
    uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
    taken: Counter[tuple[str, str]] = Counter()
    mine = set()
    for claim in cluster.list(RESOURCE_CLAIM)[0]:
        status = claim.get("status") or {}
        devices = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        taken.update((each["pool"], each["device"]) for each in devices)
        if any(user.get("uid") == uid for user in status.get("reservedFor") or ()):
            mine |= {each["pool"] for each in devices}
    if mine != {pod["spec"]["nodeName"]}:
        yield f"pod {name} is bound to {pod['spec']['nodeName']}, its devices are on {sorted(mine)}"
    for (pool, device), count in taken.items():
        if count > 1:
            yield f"device {device} of {pool} is given to {count} claims"
