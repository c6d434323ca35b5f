"""Preparation and check of custom resources, of equal contents once."""

from pumice.api.cloning import clone
from pumice.api.kinds import Manifest
from pumice.api.schema.build import Node
from pumice.webhooks.contents import KnownContents, content_key
from pumice.webhooks.fields import FieldError
from pumice.webhooks.schema.defaults import fill_in, without_nulls, without_unknown
from pumice.webhooks.schema.validate import check


class SchemaContents:
    """Remembers contents as they are after preparation, and those without faults.

    A schema has nothing on metadata, and an object names its kind: its content is all that counts.
    """

    def __init__(self) -> None:
        self._prepared = KnownContents[Manifest | None]()
        self._valid = KnownContents[None]()

    def prepare(self, given: Manifest, node: Node) -> list[str]:
        """Fill in defaults and remove unknown fields, in place; return the latter."""
        key = content_key(given)
        if key in self._prepared:
            known = self._prepared[key]
            if known is not None:
                metadata = given["metadata"]
                given.clear()
                given.update(clone(known), metadata=metadata)
            return []
        unknown = without_unknown(given, node)
        without_nulls(given, node)
        fill_in(given, node)
        if not unknown:
            is_same = content_key(given) == key
            self._prepared.remember(key, None if is_same else clone({**given, "metadata": {}}))
        return unknown

    def faults(self, given: Manifest, node: Node, old: Manifest | None = None) -> list[FieldError]:
        """Find faults; with an older version, only in changed parts."""
        before = None if old is None else {k: v for k, v in old.items() if k != "metadata"}
        key = content_key(given, before)
        if key in self._valid:
            return []
        found = check(given, node, old)
        if not found:
            self._valid.remember(key, None)
        return found
