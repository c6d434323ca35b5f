"""reservation: jobs that find no room are promised a start."""

from pumice.plugins.reservation.plugin import Reservation

__all__ = ["Reservation"]
