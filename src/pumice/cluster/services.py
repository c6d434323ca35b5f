"""What a scheduler is given of the world outside: by name, for the plugins that ask for it.

Handed to a Scheduler by whoever makes one.  What a service needs is loaded once it is asked for.
"""

from collections.abc import Callable, Mapping
from typing import Final


def connect_extender(url_prefix: str, timeout_s: float) -> object:
    """Make the client of one extender."""
    from pumice.cluster.extender_client import HttpExtenderClient  # noqa: PLC0415  (asyncio)

    return HttpExtenderClient(url_prefix, timeout_s)


SERVICES: Final[Mapping[str, Callable[..., object]]] = {"extender": connect_extender}
"""All services there are."""
