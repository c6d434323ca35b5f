"""How often Python searches for unused objects that refer to each other."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_RARELY = 150_000


def collect_rarely() -> None:
    """Search after 150,000 new objects instead of 700.

    Modules are 100,000 objects and a cluster that is read hundreds of thousands, all of which stay,
    and objects that refer to each other are few: of a command's time the searches took a fifth.
    """
    gc.set_threshold(_RARELY, 20, 100)


@contextmanager
def paused() -> Iterator[None]:
    """Search for nothing while many objects are made, all of which stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def reading() -> Iterator[None]:
    """Search for nothing while a command reads its input, and never among what it has read.

    After that, search once twice as many objects are new as were read: an answer plays what was
    read as it is and as it would be, and both stay.
    """
    gc.disable()
    try:
        yield
    finally:
        new = gc.get_count()[0]  # those that are frozen would have to be counted one by one
        gc.freeze()
        gc.set_threshold(max(_RARELY, 2 * new), 20, 100)
        gc.enable()
