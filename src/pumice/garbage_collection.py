"""How often Python searches for unused objects that refer to each other."""

import gc


def collect_rarely() -> None:
    """Search after 50,000 new objects instead of 700.

    A cluster that is read is hundreds of thousands of objects, all of which stay, and objects that
    refer to each other are few: of a command's time the searches took a fifth.
    """
    gc.set_threshold(50_000, 20, 100)
