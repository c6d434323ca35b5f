"""The Dockerfile: locked, small, and without root."""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8")
STEPS = [
    line.split(maxsplit=1)
    for line in re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", TEXT, flags=re.MULTILINE)).splitlines()
    if line.strip()
]
STAGES = [at for at, step in enumerate(STEPS) if step[0] == "FROM"]
LAST = STEPS[STAGES[-1] :]


def words(step: Any) -> Any:
    return [argument for name, argument in LAST if name == step]


def test_the_last_stage_runs_as_a_numbered_user_that_is_not_root() -> None:
    """The kubelet can check that a number is not root, but not a name."""
    assert words("USER") == ["1000:1000"]


def test_it_starts_the_command_without_a_shell() -> None:
    assert [json.loads(one) for one in words("ENTRYPOINT")] == [["pumice"]]


def test_what_builds_is_not_in_the_image() -> None:
    assert len(STAGES) == 2
    assert [one for one in words("COPY") if not one.startswith("--from=build")] == []
    assert "pip uninstall" in " ".join(words("RUN"))


def test_packages_come_with_hashes_or_from_the_build_itself() -> None:
    installs = re.findall(r"pip install (.*?)(?: && |$)", " ".join(step[1] for step in STEPS))
    assert len(installs) == 3
    for one in installs:
        assert "--no-deps" in one
        assert "--require-hashes" in one or "--no-index" in one


def test_all_that_is_copied_exists_and_is_not_ignored() -> None:
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    sources = [
        source
        for name, argument in STEPS
        if name == "COPY" and not argument.startswith("--from")
        for source in argument.split()[:-1]
    ]
    for source in sources:
        assert (ROOT / source).exists()
        assert f"!{source.rstrip('/')}" in kept


def test_it_exposes_the_ports_of_the_processes() -> None:
    assert {*words("EXPOSE")[0].split()} == {"8080", "8081", "8443", "11251"}


def test_the_base_is_named_by_version_and_digest() -> None:
    bases = [step[1] for step in STEPS if step[0] == "FROM"]
    assert all(one.split()[0] == "${PYTHON}" for one in bases)
    (given,) = [step[1] for step in STEPS if step[0] == "ARG"]
    assert re.fullmatch(r"PYTHON=python:\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", given)


def test_actions_of_workflows_are_named_by_commit() -> None:
    used = [
        line.split("uses:")[1].strip()
        for file in (ROOT / ".github" / "workflows").glob("*.yml")
        for line in file.read_text(encoding="utf-8").splitlines()
        if "uses:" in line
    ]
    assert used
    assert [one for one in used if not re.match(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d", one)] == []
