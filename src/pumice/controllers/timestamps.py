"""Times as manifests write them; the reading side is ``pumice.api.meta.epoch``."""

from datetime import UTC, datetime, tzinfo


def rfc3339(seconds: float, zone: tzinfo = UTC) -> str:
    """Write seconds since 1970 as whole seconds of RFC 3339, in a time zone."""
    text = datetime.fromtimestamp(int(seconds), zone).isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
