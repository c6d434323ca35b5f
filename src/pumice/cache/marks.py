"""Names and times as manifests write them, read the way Kubernetes and Go read them."""

from pumice.api.meta import KubeObject, epoch


def key_of(thing: KubeObject) -> str:
    """Name an object: ``namespace/name``, or the name alone."""
    meta = thing.metadata
    return f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name


def time_of(text: str) -> float:
    """Read a time; none at all is the beginning of time."""
    return epoch(text) if text else 0.0


def index_of(name: str) -> int:
    """Read the number at the end of a pod name of at least three parts; -1 if there is none."""
    parts = name.split("-")
    if len(parts) < 3:  # job, task, number
        return -1
    last = parts[-1]
    return int(last) if last.isascii() and last.isdigit() and len(last) < 10 else -1
