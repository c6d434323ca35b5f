"""Commands: objects that ask a controller to do something with a job or a queue."""

from pumice.api.kinds import Manifest

QUEUE_COMMANDS = "default"
"""The namespace of commands about queues, which have none of their own."""


def command(about: Manifest, action: str, namespace: str) -> Manifest:
    """Return the Command for an object; the controller that carries it out deletes it."""
    name = about["metadata"]["name"]
    target = {
        "apiVersion": about["apiVersion"],
        "kind": about["kind"],
        "name": name,
        "uid": about["metadata"].get("uid", ""),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
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
