"""Orders to the controllers: a Command object that names what it is about."""

from pumice.api.kinds import Manifest
from pumice.cli.vcctl.verbs import Call


def order(call: Call, about: Manifest, action: str, namespace: str) -> None:
    """Post a Command; the controller that carries it out deletes it."""
    name = about["metadata"]["name"]
    target = {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        "name": name,
        "uid": about["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    call.cluster.create(
        {
            "apiVersion": "bus.volcano.sh/v1alpha1",
            "kind": "Command",
            "metadata": {
                "generateName": f"{name}-{action.lower()}-",
                "namespace": namespace,
                "ownerReferences": [dict(target)],
            },
            "action": action,
            "target": target,
        }
    )
