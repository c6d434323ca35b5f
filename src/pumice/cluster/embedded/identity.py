"""Names, uids and times that a server gives to new objects; the same for the same seed."""

from typing import Final

from pumice.api.kinds import Manifest
from pumice.api.times import rfc3339

_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIXES: Final = len(_LETTERS) ** 5
_STRIDE: Final = 8_675_309  # coprime to 27**5, so that suffixes repeat only after all were used


class Identity:
    """Gives each new object what tells it from all others."""

    def __init__(self, seed: int) -> None:
        self._prefix = f"{seed & 0xFFFFFFFF:08x}-0000-4000-8000-"
        self._seed = seed
        self._uids = 0
        self._names = 0

    def stamp(self, metadata: Manifest, now: float) -> None:
        """Write uid, creationTimestamp and generation of a new object."""
        self._uids += 1
        metadata["uid"] = f"{self._prefix}{self._uids:012x}"
        metadata["creationTimestamp"] = rfc3339(now)
        metadata["generation"] = 1
        for field in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds"):
            metadata.pop(field, None)

    def name(self, prefix: str) -> str:
        """Make a name of a prefix and five letters."""
        self._names += 1
        number = (self._names + self._seed) * _STRIDE % _SUFFIXES
        suffix = ""
        for _ in range(5):
            number, letter = divmod(number, len(_LETTERS))
            suffix += _LETTERS[letter]
        return prefix + suffix
