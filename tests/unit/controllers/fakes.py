"""A view that is a dictionary, and a loop that applies plans to it until nothing is planned."""

from copy import deepcopy
from typing import Any

from pumice.api.kinds import kind_of
from pumice.api.times import rfc3339
from pumice.controllers.base import Create, Delete, Key, Patch, Record, Update, UpdateStatus

NOON = 1_767_268_800.0
"""2026-01-01T12:00:00Z."""


def place(manifest: Any) -> Any:
    metadata = manifest["metadata"]
    return kind_of(manifest), metadata.get("namespace", ""), metadata["name"]


def merge(target: Any, changes: Any) -> None:
    for name, value in changes.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict):
            merge(target.setdefault(name, {}), value)
        else:
            target[name] = value


class FakeView:
    """Objects by kind, namespace and name; ``events`` are the reasons recorded."""

    def __init__(self, *manifests: Any, now: Any = NOON) -> None:
        self.now = now
        self.objects: dict[Any, Any] = {}
        self.records: list[Any] = []
        self.watched: tuple[str, ...] | None = None
        for manifest in manifests:
            self.add(manifest)

    @property
    def events(self) -> Any:
        return [record.reason for record in self.records]

    def add(self, manifest: Any) -> Any:
        stored = deepcopy(manifest)
        stored["metadata"].setdefault("uid", f"uid-of-{stored['metadata']['name']}")
        stored["metadata"].setdefault("creationTimestamp", rfc3339(self.now))
        self.objects[place(stored)] = stored
        return stored

    def get(self, kind: Any, namespace: Any, name: Any) -> Any:
        assert self.watched is None or kind in self.watched
        return self.objects.get((kind, namespace, name))

    read = get

    def list(self, kind: Any, namespace: str = "", labels: Any = None) -> Any:
        assert self.watched is None or kind in self.watched
        wanted = (labels or {}).items()
        return [
            manifest
            for (its_kind, its_namespace, _), manifest in sorted(self.objects.items())
            if its_kind == kind
            and namespace in ("", its_namespace)
            and wanted <= (manifest["metadata"].get("labels") or {}).items()
        ]

    def below(self, kind: Any, parent: Any) -> Any:
        return [one for one in self.list(kind) if one.get("spec", {}).get("parent") == parent]

    def owned_by(self, kind: Any, owner: Any) -> Any:
        return [
            manifest
            for manifest in self.list(kind)
            for reference in manifest["metadata"].get("ownerReferences") or ()
            if reference.get("controller") and reference["uid"] == owner["metadata"]["uid"]
        ]

    def apply(self, plan: Any) -> Any:
        for effect in plan.effects:
            match effect:
                case Create(manifest):
                    assert place(manifest) not in self.objects
                    self.add(manifest)
                case Update(manifest):
                    self.objects[place(manifest)] = manifest
                case UpdateStatus(manifest):
                    self.objects[place(manifest)]["status"] = manifest["status"]
                case Patch(key, changes):
                    merge(self.objects[key.kind, key.namespace, key.name], changes)
                case Delete(key):
                    self.objects.pop((key.kind, key.namespace, key.name))
                case Record():
                    self.records.append(effect)
        return plan

    def settle(self, controller: Any, *manifests: Any) -> Any:
        """Reconcile the objects that changes concern until nothing more is planned.

        Meanwhile only what it watches can be seen.
        """
        self.watched = controller.watches
        try:
            return self._settle(controller, manifests)
        finally:
            self.watched = None

    def _settle(self, controller: Any, manifests: Any) -> Any:
        keys = [
            key
            for manifest in manifests
            for key in controller.concerns(kind_of(manifest), manifest, self)
        ]
        for _ in range(20):
            plans = [self.apply(controller.reconcile(key, self)) for key in keys]
            keys += {key: None for plan in plans for key in plan.look_at if key not in keys}
            if not any(plan.effects for plan in plans) and len(plans) == len(keys):
                return plans[-1] if plans else None
        raise AssertionError("the controller does not come to rest")


def key(manifest: Any) -> Any:
    return Key(*place(manifest))
