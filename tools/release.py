"""`make release`: all files of a release, the same bytes each time, without a network.

    python -m tools.release [FOLDER]

Wheels without and with the kernel, source archive, chart, manifest, the section of the changelog,
bill of materials and checksums.  The archives carry the time of the last commit, so that anyone
can build them again and compare the checksums.
"""

import hashlib
import json
import re
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pumice.api.output_files import write_file
from tools.packages import ROOT, build, chart, kernel_wheels, missing_platforms

SUMS: Final = "SHA256SUMS"
_PIN: Final = re.compile(r"(?m)^([A-Za-z0-9][\w.-]*)==(\S+?)(?:\s*;[^\\\n]*)?\s*\\?$")
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def pins(lock: Path) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the packages of a lock file: name, version and allowed checksums."""
    text = lock.read_text(encoding="utf-8")
    found = list(_PIN.finditer(text))
    for i, match in enumerate(found):
        end = found[i + 1].start() if i + 1 < len(found) else len(text)
        yield match[1].lower(), match[2], _HASH.findall(text, match.end(), end)


def bill_of_materials(files: list[Path], epoch: int) -> dict[str, Any]:
    """List the parts of Pumice, in the form of CycloneDX 1.5."""
    project = _project()
    name, version = project["name"], project["version"]
    reference = f"pkg:pypi/{name}@{version}"
    locked = list(pins(ROOT / "requirements" / "runtime.txt"))
    components = [_package(*pin) for pin in locked] + list(_vendored())
    content = json.dumps([reference, components], sort_keys=True)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": reference,
                "name": name,
                "version": version,
                "purl": reference,
                "licenses": [{"license": {"id": project["license"]}}],
                "externalReferences": [
                    {"type": "distribution", "url": file.name, "hashes": _hashes([_sum(file)])}
                    for file in files
                ],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": reference, "dependsOn": [one["bom-ref"] for one in components]},
        ],
    }


def _package(name: str, version: str, sums: list[str]) -> dict[str, Any]:
    reference = f"pkg:pypi/{name}@{version}"
    archives = [
        {"type": "distribution", "url": reference, **one}
        for one in ({"hashes": _hashes([each])} for each in sorted(sums))
    ]
    return {
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": version,
        "purl": reference,
        "externalReferences": archives,
    }


def _vendored() -> Iterator[dict[str, Any]]:
    """Yield the vendored libraries: ``vendor/NAME-VERSION``."""
    for folder in sorted((ROOT / "src").rglob("vendor/*-*")):
        name, _, version = folder.name.rpartition("-")
        reference = f"pkg:npm/{name}@{version}"
        yield {
            "type": "library",
            "bom-ref": reference,
            "name": name,
            "version": version,
            "purl": reference,
        }


def _hashes(sums: list[str]) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": one} for one in sums]


def _sum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def release(folder: Path) -> list[Path]:
    """Write everything into a folder; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in (*folder.glob("pumice-*"), *folder.glob("pumice.*"), *folder.glob(SUMS)):
        old.unlink()
    epoch, version = _commit_time(), _project()["version"]
    files = build(folder, epoch)
    files += [file for wheel in folder.glob("*-any.whl") for file in kernel_wheels(wheel)]
    files.append(chart(folder, version, epoch))
    for name, text in _texts(version).items():
        write_file(folder / name, text)
        files.append(folder / name)
    bill = folder / f"pumice-{version}.cdx.json"
    content = json.dumps(bill_of_materials(files, epoch), indent=1, sort_keys=True)
    write_file(bill, f"{content}\n")
    files.append(bill)
    sums = folder / SUMS
    write_file(sums, "".join(f"{_sum(file)}  {file.name}\n" for file in files))
    return [*files, sums]


def _texts(version: str) -> dict[str, str]:
    """Return the files of a release that are only copied."""
    manifest = (ROOT / "deploy" / "pumice.yaml").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    _, found, section = changelog.partition(f"\n## {version} (")
    texts = {f"pumice-{version}.yaml": manifest}
    if found:
        section = section.partition("\n## ")[0]
        texts[f"pumice-{version}.notes.md"] = f"## {version} ({section}"
    return texts


def _project() -> dict[str, Any]:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


def _commit_time() -> int:
    """Return when the last commit was made; outside a repository, a fixed time."""
    done = subprocess.run(
        ["git", "log", "-1", "--format=%ct"],  # noqa: S607
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 1_767_225_600


if __name__ == "__main__":
    for made in release(Path(sys.argv[1] if len(sys.argv) > 1 else "dist")):
        print(made)  # noqa: T201
    for platform in missing_platforms():
        print(f"not made: the wheel for {platform}, there is no compiler for it")  # noqa: T201
