"""Worker processes that end with the block that uses them, at once if it is left early.

Used by the runner of scenarios and by sweeps.
"""

import logging
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import Literal

from pumice.garbage_collection import collect_rarely


@contextmanager
def worker_processes(
    count: int, method: Literal["fork", "spawn"] | None = None
) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool; an exception in the block, including Ctrl-C, ends its workers at once.

    ``method`` is how a worker starts; None is the platform's default.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(count, mp_context=get_context(method), initializer=_prepare)
    try:
        yield pool
    except BaseException:
        for worker in set(active_children()) - others:
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare() -> None:
    """Collect rarely; leave Ctrl-C, which reaches all processes of a terminal, to the parent.

    A worker that is not forked would print warnings that the parent has chosen not to print.
    """
    collect_rarely()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = logging.getLogger("pumice")
    if not log.handlers:
        log.addHandler(logging.NullHandler())
