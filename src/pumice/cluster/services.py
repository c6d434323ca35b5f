"""External services for a scheduler: by name, for the plugins that need them.

Passed to a Scheduler by its creator.  The modules of a service are loaded on first use.
"""

from collections.abc import Callable, Mapping
from typing import Final


def connect_extender(url_prefix: str, timeout_s: float) -> object:
    """Make the client of one extender."""
    from pumice.cluster.extender_client import HttpExtenderClient  # noqa: PLC0415  (asyncio)

    return HttpExtenderClient(url_prefix, timeout_s)


SERVICES: Final[Mapping[str, Callable[..., object]]] = {"extender": connect_extender}
"""All services."""
