"""Names that evictions import; see ``placement.ahead``."""

from pumice.framework.placement.ahead import Imagined, has_plain_shape, longest

__all__ = ["Imagined", "has_plain_shape", "longest"]
