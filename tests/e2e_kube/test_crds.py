"""What is deployed, asked of a real API server: schemas, rules in CEL, and the certificate."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from deploy import certificates
from deploy.build import to_yaml
from deploy.workloads import NAMESPACE, SECRET, certificate_job
from tests.e2e_kube.install import manifests
from tests.unit.deploy.test_crds import ACCEPTED, REFUSED, schema_of

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]
ADMISSION = "admissionregistration.k8s.io"


def create(kubectl: Any, manifest: Any) -> Any:
    named = {**manifest, "metadata": {**manifest["metadata"], "namespace": "default"}}
    if manifest["kind"] in {"HyperNode", "Queue"}:
        named = manifest
    words = ("create", "--dry-run=server", "--validate=strict", "-o", "yaml", "-f", "-")
    return kubectl.run(*words, given=json.dumps(named))


@pytest.mark.parametrize("case", ACCEPTED)
def test_what_volcano_knows_is_stored_whole(kubectl: Any, case: Any) -> None:
    done = create(kubectl, ACCEPTED[case])
    assert done.returncode == 0, done.stderr
    assert _lost(ACCEPTED[case]["spec"], yaml.safe_load(done.stdout)["spec"], "") == []


def _lost(sent: Any, stored: Any, path: Any) -> Any:
    """List what was sent and not stored; defaults may have come on top."""
    parts: list[tuple[Any, ...]]
    if isinstance(sent, dict) and isinstance(stored, dict):
        parts = [(f".{key}", part, stored.get(key)) for key, part in sent.items()]
    elif isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        parts = [(f"[{at}]", *pair) for at, pair in enumerate(zip(sent, stored, strict=True))]
    else:
        return [] if sent == stored else [path]
    return [lost for place, a, b in parts for lost in _lost(a, b, path + place)]


@pytest.mark.parametrize("case", REFUSED)
def test_a_mistake_is_refused_where_it_was_made(kubectl: Any, case: Any) -> None:
    manifest, path = REFUSED[case]
    done = create(kubectl, manifest)
    assert done.returncode != 0
    assert path.removeprefix(".") in done.stderr
    if "misspelt" in case:
        assert f'strict decoding error: unknown field "{path.removeprefix(".")}"' in done.stderr


def _undeclared(schema: Any, known: Any, every: Any, path: str) -> Any:
    """List the fields that the API server knows below a place and the definition does not."""
    while "$ref" in known or "allOf" in known:
        known = every[known["$ref"].rpartition("/")[2]] if "$ref" in known else known["allOf"][0]
    if "items" in known:
        return _undeclared(schema["items"], known["items"], every, f"{path}[]")
    found = []
    for name, part in known.get("properties", {}).items():
        if name == "metadata":  # of a template, which has labels and annotations alone
            continue
        if name not in schema["properties"]:
            found.append(f"{path}.{name}")
        else:
            found += _undeclared(schema["properties"][name], part, every, f"{path}.{name}")
    return found


def test_a_job_declares_every_field_that_the_api_server_knows_of_a_pod(kubectl: Any) -> None:
    every = json.loads(kubectl("get", "--raw", "/openapi/v3/api/v1"))["components"]["schemas"]
    spec = schema_of("Job")["properties"]["spec"]["properties"]["tasks"]["items"]
    pods = spec["properties"]["template"]["properties"]["spec"]
    assert _undeclared(pods, every["io.k8s.api.core.v1.PodSpec"], every, "") == []


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ({}, "Either ExactMatch or RegexMatch or LabelMatch must be specified"),
        (
            {"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "b"}},
            "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
        ),
    ],
)
def test_a_member_of_the_network_is_chosen_in_one_way(
    kubectl: Any, selector: Any, problem: str
) -> None:
    hypernode = ACCEPTED["a part of the network"]
    members = [{"type": "Node", "selector": selector}]
    wrong = {**hypernode, "spec": {"tier": 1, "members": members}}
    assert problem in create(kubectl, wrong).stderr


@pytest.fixture
def configurations(kubectl: Any) -> Iterator[Any]:
    """The webhooks are registered, and gone again afterwards: they have no server here."""
    found = [one for one in manifests() if one["kind"].endswith("WebhookConfiguration")]
    text = to_yaml(found)
    kubectl("apply", "-f", "-", given=text)
    yield [(one["kind"], one["metadata"]["name"]) for one in found]
    kubectl("delete", "-f", "-", given=text)


def test_the_certificate_is_made_with_the_rights_of_its_job(
    kubectl: Any, plane: Any, configurations: Any, tmp_path: Path
) -> None:
    *_, job = certificate_job()
    spec = job["spec"]["template"]["spec"]
    token = kubectl("create", "token", spec["serviceAccountName"], "--namespace", NAMESPACE)
    (tmp_path / "token").write_text(token)
    seen = yaml.safe_load(plane.admin_kubeconfig.read_text())["clusters"][0]["cluster"]
    authority = seen.get("certificate-authority-data")
    (tmp_path / "ca.crt").write_bytes(
        base64.b64decode(authority)
        if authority
        else (plane.admin_kubeconfig.parent / seen["certificate-authority"]).read_bytes()
    )
    server = certificates.Server(seen["server"], tmp_path)
    certificates.main(spec["containers"][0]["args"], server)
    secret = json.loads(kubectl("get", "secret", SECRET, "-n", NAMESPACE, "-o", "json"))
    for kind, name in configurations:
        stored = json.loads(kubectl("get", f"{kind}.{ADMISSION}", name, "-o", "json"))
        bundles = {one["clientConfig"]["caBundle"] for one in stored["webhooks"]}
        assert bundles == {secret["data"]["ca.crt"]}
