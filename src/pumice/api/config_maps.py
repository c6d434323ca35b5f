"""ConfigMaps, as far as plugins read them: texts by key.  Types only."""

from typing import Any, ClassVar

from pumice.api.meta import KubeObject


class ConfigMap(KubeObject):
    """Texts by key; what is no text is nobody's to read."""

    API_VERSION: ClassVar[str] = "v1"

    data: dict[str, Any] = {}

    def text(self, key: str) -> str:
        """Return the text under a key, empty if there is none."""
        found = self.data.get(key, "")
        return found if isinstance(found, str) else ""
