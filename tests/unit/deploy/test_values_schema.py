"""The schema of the chart's values: what the chart has is right, what is misspelt is refused."""

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from pumice.webhooks.registry import SERVICES

CHART = Path(__file__).resolve().parents[3] / "deploy" / "helm" / "pumice"
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
VALUES = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))


def problems(**values: Any) -> list[str]:
    """Find what is wrong with values that are laid over the defaults."""
    merged = {**VALUES}
    for section, given in values.items():
        merged[section] = {**merged.get(section, {}), **given} if isinstance(given, dict) else given
    checker = jsonschema.Draft7Validator(SCHEMA)
    return [error.message for error in checker.iter_errors(merged)]


def test_the_schema_is_one_and_the_defaults_follow_it() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert problems() == []


@pytest.mark.parametrize(
    "values",
    [
        {"custom": {"scheduler_replica": 2}},
        {"custom": {"sheduler_name": "mine"}},
        {"basic": {"image_tag": "1"}},
        {"service": {"ipFamily": "IPv4"}},
        {"customs": {"scheduler_replicas": 2}},
    ],
)
def test_a_misspelt_name_is_refused_by_name(values: Any) -> None:
    (problem,) = problems(**values)
    name = next(iter(values)) if "customs" in values else next(iter(*values.values()))
    assert f"'{name}'" in problem


@pytest.mark.parametrize(
    "custom",
    [
        {"scheduler_replicas": "two"},
        {"scheduler_replicas": -1},
        {"admission_enable": "yes"},
        {"default_tolerations": {"key": "a"}},
        {"scheduler_resources": "small"},
        {"scheduler_affinity": []},
        {"enabled_admissions": "/jobs/mutate,/jobs/validat"},
        {"enabled_admissions": "/jobs/mutate;/jobs/validate"},
        {"enabled_admissions": ["/jobs/mutate"]},
        {"scheduler_schedule_period": "soon"},
        {"scheduler_schedule_period": "1"},
        {"scheduler_schedule_period": "0.0s"},
        {"scheduler_sharding_mode": "medium"},
    ],
)
def test_a_value_of_no_use_is_refused(custom: Any) -> None:
    assert problems(custom=custom)


def test_every_webhook_can_be_enabled() -> None:
    assert problems(custom={"enabled_admissions": ",".join(SERVICES)}) == []
    assert problems(custom={"enabled_admissions": " /jobs/mutate , /pods/validate,"}) == []


@pytest.mark.parametrize("period", ["1s", "0.5s", "1m0s", "0m30s", "10ms", ""])
def test_a_period_is_a_duration_above_zero(period: str) -> None:
    assert problems(custom={"scheduler_schedule_period": period}) == []


def test_a_values_file_of_volcano_can_be_kept() -> None:
    custom = {
        "metrics_enable": False,
        "scheduler_node_worker_threads": 20,
        "agent_cni_config_path": "/etc/cni",
        "scheduler_resources": None,
        "colocation_enable": False,
    }
    assert problems(custom=custom, basic={"agent_image_name": "x"}) == []
