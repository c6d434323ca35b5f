"""From the section ``metrics`` of the scheduler configuration to a source of node usage."""

import base64
import ssl
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pumice.api.usage_conf import UsageConf, usage_conf
from pumice.cluster.http.tls import tls_context
from pumice.cluster.usage.endpoint import Endpoint, ServiceWithin
from pumice.cluster.usage.measured import (
    CustomMetricsUsage,
    ElasticsearchUsage,
    MetricsServerUsage,
    PrometheusUsage,
)
from pumice.cluster.usage.source import StaticUsage, UsageSource
from pumice.errors import ConfError, Problem

_IN_POD: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_API_SERVER: Final = {
    "address": "https://kubernetes.default.svc",
    "tokenFile": f"{_IN_POD}/token",
    "tls.caFile": f"{_IN_POD}/ca.crt",
}
"""Where a pod finds the API server; used if neither an address nor a connection is given."""


def usage_source(
    metrics: Mapping[str, str], api_server: ServiceWithin | None = None
) -> UsageSource:
    """Make the source that the section names; an empty one if it names no type.

    ``api_server`` is the default API server, unless the section names another.

    Raises:
        ConfError: with every problem of the section.
    """
    conf = usage_conf(metrics)
    if not conf.source:
        return StaticUsage()
    if conf.source == "prometheus":
        return PrometheusUsage(_endpoint(conf), period_s=conf.period_s)
    if conf.source == "elasticsearch":
        return ElasticsearchUsage(
            _endpoint(conf), index=conf.index, host_field=conf.host_field, period_s=conf.period_s
        )
    own = None if conf.address or api_server is None else api_server(conf.timeout_s)
    service = _endpoint(conf) if own is None else own
    if conf.source == "prometheus_adaptor":
        return CustomMetricsUsage(service)
    return MetricsServerUsage(service)


def refresh_period(metrics: Mapping[str, str]) -> float:
    """Return the seconds between two readings.

    Raises:
        ConfError: with every problem of the section.
    """
    return usage_conf(metrics).interval_s


def _endpoint(conf: UsageConf) -> Endpoint:
    in_pod = not conf.address
    if in_pod:
        conf = replace(
            conf,
            address=_API_SERVER["address"],
            token_file=conf.token_file or ("" if conf.token else _API_SERVER["tokenFile"]),
            ca_file=conf.ca_file or _API_SERVER["tls.caFile"],
        )
    user = f"{conf.username}:{conf.password}".encode() if conf.username else b""
    return Endpoint(
        conf.address,
        token=conf.token,
        token_file=conf.token_file or None,
        basic=base64.b64encode(user).decode("ascii"),
        tls=_tls(conf, in_pod=in_pod),
        timeout_s=conf.timeout_s,
    )


def _tls(conf: UsageConf, *, in_pod: bool) -> ssl.SSLContext | None:
    if not conf.ca_file and conf.verify and not conf.address.startswith("https:"):
        return None
    try:
        return tls_context(conf.ca_file or None, verify=conf.verify)
    except OSError as error:
        problem = Problem(
            wanted="a file with certificates",
            found=conf.ca_file,
            field="metrics.tls.caFile",
            hint="outside a pod, give an address" if in_pod else error.strerror or str(error),
        )
        raise ConfError([problem]) from error
