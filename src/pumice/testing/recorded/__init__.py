"""Runs recorded cases of Volcano's own programs: their steps, compared with ours."""

from pumice.testing.recorded.controllers import is_controller_case, run_controller_case
from pumice.testing.recorded.formats import FORMATS, Format, RecordedCase, find_cases, run_case

__all__ = [
    "FORMATS",
    "Format",
    "RecordedCase",
    "find_cases",
    "is_controller_case",
    "run_case",
    "run_controller_case",
]
