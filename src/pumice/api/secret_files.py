"""Small files that a setting names: tokens, certificates, keys.

A kubeconfig or a configuration may come from somebody else.  What it names is read in bounds, and
only if it is a file: a pipe would hold the reader for ever, a device never ends.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 4 << 20
"""A bundle of all authorities of the world takes a quarter of a megabyte."""


def read_secret(path: Path) -> bytes:
    """Read a token, a certificate or a key.

    Raises:
        OSError: it cannot be read, is no file, or is too large.
    """
    opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(opened, "rb") as file:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            raise OSError(errno.EINVAL, "Not a file", str(path))
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(errno.EFBIG, f"More than {MOST_BYTES >> 20} MiB", str(path))
    return content
