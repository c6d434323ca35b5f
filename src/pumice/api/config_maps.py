"""ConfigMaps, in the parts that plugins read: texts by key.  Types only."""

from typing import Any, ClassVar

from pumice.api.meta import KubeObject


class ConfigMap(KubeObject):
    """Texts by key; other values are ignored."""

    API_VERSION: ClassVar[str] = "v1"

    data: dict[str, Any] = {}

    def text(self, key: str) -> str:
        """Return the text under a key, empty if there is none."""
        found = self.data.get(key, "")
        return found if isinstance(found, str) else ""
