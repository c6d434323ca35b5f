"""Metrics as text, in Prometheus' format 0.0.4.

The client library's own writer forces ``_total`` upon every counter and adds the time each series
was made; dashboards made for Volcano expect neither.
"""

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric
from prometheus_client.samples import Sample
from prometheus_client.utils import floatToGoString

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SUFFIX: Final = "_total"


def expose(registry: CollectorRegistry) -> str:
    """Write all metrics of a registry."""
    return "".join(line for metric in registry.collect() for line in _family(metric))


def _family(metric: Metric) -> Iterator[str]:
    samples = [sample for sample in metric.samples if not sample.name.endswith("_created")]
    if not samples:  # as the Go library: a family without series is left out
        return
    name = metric.name
    if metric.type == "counter" and samples[0].name != name:
        name += _SUFFIX
    kind = "untyped" if metric.type == "unknown" else metric.type
    yield f"# HELP {name} {_escape(metric.documentation)}\n"
    yield f"# TYPE {name} {kind}\n"
    for sample in samples:
        yield _line(sample)


def _line(sample: Sample) -> str:
    labels = ",".join(
        f'{name}="{_quote(_whole(text) if name == "le" else text)}"'
        for name, text in sorted(sample.labels.items())
    )
    place = f"{{{labels}}}" if labels else ""
    number = floatToGoString(sample.value)  # type: ignore[no-untyped-call]
    return f"{sample.name}{place} {_whole(number)}\n"


def _whole(number: str) -> str:
    """Write whole numbers as Go does: 50, not 50.0."""
    return number.removesuffix(".0")


def _quote(text: str) -> str:
    return _escape(text).replace('"', r"\"")


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")
