"""Objects and configurations without possible secrets: environment, commands, keys, tokens.

Used by whatever keeps a cluster in a file: snapshots and records.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from pumice.api.annotations import LAST_APPLIED
from pumice.api.kinds import Manifest

_SECRETS: Final = (
    *("env", "envFrom", "command", "args"),
    *("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"),  # commands and headers
)
_LAST_WORDS: Final = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_TOKEN: Final = re.compile(
    r"""(?m)(^|[{,\s])(["']?token["']?\s*:\s*)("[^"\n]*"|'[^'\n]*'|[^\s,}]+)"""
)
"""The one secret that a scheduler configuration may hold: the token for measured use."""
_PRIVATE_KEY: Final = "ssh-private-key"
"""The argument of the plugin `ssh` of a job that is a secret."""
_PARTS: Final = ("containers", "initContainers", "ephemeralContainers")


def conf_without_secrets(text: str) -> str:
    """Return the text of a scheduler configuration without tokens."""
    return _TOKEN.sub(r"\1\2redacted", text)


def without_secrets(manifest: Manifest) -> Manifest:
    """Return an object without possible secrets; it shares its other parts."""
    meta = {key: value for key, value in manifest["metadata"].items() if key != "managedFields"}
    marks = meta.get("annotations")
    if marks and LAST_APPLIED in marks:
        meta["annotations"] = {key: value for key, value in marks.items() if key != LAST_APPLIED}
    out = {**manifest, "metadata": meta}
    if manifest["kind"] == "Pod":
        out["spec"] = _pod_without_secrets(manifest)
        if manifest.get("status"):
            status = manifest["status"].items()
            out["status"] = {key: value for key, value in status if key not in _LAST_WORDS}
    if manifest["kind"] == "Job":
        tasks = [
            {**task, "template": {**template, "spec": _pod_without_secrets(template)}}
            for task in manifest["spec"].get("tasks") or ()
            for template in (task.get("template") or {},)
        ]
        plugins = manifest["spec"].get("plugins") or {}
        known = {name: [*_without_keys(words or ())] for name, words in plugins.items()}
        out["spec"] = {**manifest["spec"], "tasks": tasks, **({"plugins": known} if known else {})}
    return out


def _without_keys(arguments: Iterable[str]) -> Iterator[str]:
    """Yield the arguments of a plugin of a job, without the private key that one may be given."""
    words = iter(arguments)
    for word in words:
        name, equals, _ = word.partition("=")
        if name.lstrip("-") != _PRIVATE_KEY:
            yield word
            continue
        if not equals:
            next(words, None)
        yield f"--{_PRIVATE_KEY}=redacted"


def _pod_without_secrets(pod: Manifest) -> Manifest:
    """Return the specification of a pod, or of a template of pods."""
    spec = dict(pod.get("spec") or {})
    for part in _PARTS:
        if spec.get(part):
            spec[part] = [
                {key: value for key, value in one.items() if key not in _SECRETS}
                for one in spec[part]
            ]
    return spec
