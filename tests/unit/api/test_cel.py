"""Selectors of devices: what Kubernetes' documentation shows, and what must not hurt."""

import subprocess
import sys
import time
from typing import Any

import msgspec
import pytest

from pumice.api.cel import SelectorError, compiled, device_value
from pumice.api.devices import Device

GPU = {
    "name": "gpu-0",
    "attributes": {
        "model": {"string": "A100"},
        "index": {"int": 3},
        "healthy": {"bool": True},
        "driverVersion": {"version": "1.2.3"},
        "other.example.com/rack": {"string": "r1"},
    },
    "capacity": {"memory": {"value": "40Gi"}},
}
DOMAIN = 'device.attributes["gpu.example.com"]'
MEMORY = 'device.capacity["gpu.example.com"].memory'


def value() -> Any:
    return device_value("gpu.example.com", msgspec.convert(GPU, Device))


def holds(expression: str) -> bool:
    return compiled(expression).matches(value())


@pytest.mark.parametrize(
    ("expression", "want"),
    [
        ('device.driver == "gpu.example.com"', True),
        (f'{DOMAIN}.model == "A100"', True),
        (f'{DOMAIN}.model in ["V100", "H100"]', False),
        (f'{DOMAIN}.model.lowerAscii().matches("^a1[0-9]+$")', True),
        (f"{DOMAIN}.index > 2 && {DOMAIN}.healthy", True),
        ('device.attributes["other.example.com"].rack == "r1"', True),
        ('"rack" in device.attributes["nobody.example.com"]', False),
        (f"has({DOMAIN}.nope)", False),
        (f'{DOMAIN}.?nope.orValue("none") == "none"', True),
        (f'{MEMORY}.isGreaterThan(quantity("39Gi"))', True),
        (f'{MEMORY}.isLessThan(quantity("40Gi"))', False),
        (f'{MEMORY}.compareTo(quantity("40960Mi")) == 0', True),
        (f'{MEMORY} == quantity("40960Mi")', True),
        (f"{MEMORY}.asInteger() == 42949672960", True),
        ('quantity("1500m").isInteger()', False),
        ('quantity("1").add(quantity("500m")).sub(1) == quantity("500m")', True),
        ('quantity("-1").sign() == -1 && quantity("1500m").asApproximateFloat() == 1.5', True),
        ('isQuantity("1Gi") && !isQuantity("1Gx")', True),
        (f'{DOMAIN}.driverVersion.isLessThan(semver("1.10.0"))', True),
        (f'{DOMAIN}.driverVersion.compareTo(semver("1.2.3")) == 0', True),
        (f"{DOMAIN}.driverVersion.major() == 1 && {DOMAIN}.driverVersion.patch() == 3", True),
        ('semver("1.0.0-alpha.2").isLessThan(semver("1.0.0-alpha.10"))', True),
        ('semver("1.0.0-rc.1").isLessThan(semver("1.0.0"))', True),
        ('semver("1.0.0+a") == semver("1.0.0+b")', True),
        ('semver("v1.02", true) == semver("1.2.0")', True),
        ('isSemver("1.2") || isSemver("01.2.3")', False),
        ('cel.bind(m, device.driver, m.startsWith("gpu"))', True),
        ("[1, 2, 3].exists(x, x == 2)", True),
    ],
)
def test_expressions(expression: str, want: bool) -> None:
    assert holds(expression) is want


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("device.driver ==", "1:17: Syntax error"),
        ("model == 1", "undeclared reference to 'model'"),
        ("device.driver.size()", "got one of int"),
        (f'{MEMORY} >= quantity("1Gi")', "found no matching overload for '_>=_'"),
        ("x" * 11_000, "11000 bytes long; expected at most 10240"),
    ],
)
def test_wrong_expressions_are_refused_when_they_are_read(expression: str, problem: str) -> None:
    with pytest.raises(SelectorError, match=problem.replace("(", r"\(").replace("[", r"\[")):
        compiled(expression)


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        (f"{DOMAIN}.nope == 1", 'Key not found in map: "nope"'),
        ("device.driver", "expected true or false, got 'gpu.example.com'"),
        ('quantity("x").sign() == 1', "quantities must match"),
        ('quantity("1").isLessThan(semver("1.0.0"))', "expected two quantities or two semantic"),
        (f'{DOMAIN}.model.isLessThan(quantity("1"))', "No matching overloads found"),
    ],
)
def test_expressions_that_fail_for_a_device_say_why(expression: str, problem: str) -> None:
    with pytest.raises(SelectorError) as caught:
        holds(expression)
    assert problem in str(caught.value)


LIST = "[" + ",".join(["1"] * 200) + "]"


@pytest.mark.parametrize(
    "expression",
    [
        f"{LIST}.all(a, {LIST}.all(b, {LIST}.all(c, true)))",
        "'a'" + ".replace('a', 'aa')" * 60 + " == ''",
        "cel.bind(a0, 'xxxxxxxx', "
        + "".join(f"cel.bind(a{i + 1}, a{i} + a{i}, " for i in range(26))
        + "a26.size() > 0"
        + ")" * 27,
        "(" * 5000 + "true" + ")" * 5000,
        "[" * 3000 + "]" * 3000 + " == []",
    ],
)
def test_costly_expressions_are_given_up_soon(expression: str) -> None:
    started = time.process_time()  # others on the machine do not change it
    with pytest.raises(SelectorError):
        holds(expression)
    assert time.process_time() - started < 2.0


def test_an_unreadable_version_is_a_text() -> None:
    odd = msgspec.convert({"name": "d", "attributes": {"v": {"version": "one"}}}, Device)
    assert device_value("x", odd)["attributes"] == {"x": {"v": "one"}}


def test_the_library_is_loaded_when_it_is_needed() -> None:
    code = "import pumice.plugins, sys; print('cel_expr_python' in sys.modules)"
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert found.stdout.strip() == "False"
