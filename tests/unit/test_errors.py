"""Errors: one sentence each, values as attributes, whole after pickling."""

import pickle
from typing import Any

import pytest

from pumice.errors import (
    ABSENT,
    AlreadyExistsError,
    BadHookResultError,
    ConfError,
    ConflictError,
    DeniedError,
    ExtenderError,
    GoneError,
    HttpError,
    InputError,
    InvariantError,
    ManifestError,
    NotFoundError,
    OutputError,
    PluginError,
    Problem,
    PumiceError,
    QuantityError,
    RejectedError,
    ScenarioError,
    UnavailableError,
    UnknownHookError,
)

SAID = {
    "expected a list, got 5": InputError(wanted="a list", found=5),
    "f.yaml: spec.x: expected a list, got nothing (try y)": ScenarioError(
        wanted="a list", field="spec.x", file="f.yaml", hint="try y"
    ),
    "f.yaml:3: Pod p: spec: expected a mapping, got []": ManifestError(
        wanted="a mapping", found=[], field="spec", file="f.yaml:3", subject="Pod p"
    ),
    "c.conf: line 4: actions: expected a text, got 1": ConfError(
        [Problem(wanted="a text", found=1, field="actions", line=4)], file="c.conf"
    ),
    "2 problems in the configuration\n  expected a, got 1\n  line 2: expected b, got 2 (c)": (
        ConfError([Problem(wanted="a", found=1), Problem(wanted="b", found=2, line=2, hint="c")])
    ),
    "out.csv: expected a file that can be written, got No space left on device (free some space "
    "and try again)": OutputError(28, "No space left on device", "out.csv"),
    "plugin 'gang': cannot be used": PluginError("gang", problem="cannot be used"),
    "plugin 'gang', hook 'score_node': there is no such hook; did you mean 'score_nodes'?": (
        UnknownHookError("gang", "score_node", "score_nodes")
    ),
    "plugin 'gang', hook 'x': there is no such hook": UnknownHookError("gang", "x"),
    "plugin 'drf', hook 'score_nodes': expected float64, got 'int8'": BadHookResultError(
        "drf", "score_nodes", wanted="float64", found="int8"
    ),
    "http://x/y: no answer in time": HttpError("http://x/y", "no answer in time"),
    "extender at http://x/y: no answer in time": ExtenderError("http://x/y", "no answer in time"),
    "Pod ns/p: not found": NotFoundError("Pod", "ns", "p"),
    "Node n: already exists": AlreadyExistsError("Node", "", "n"),
    "Pod ns/p: is on node n already": ConflictError("Pod", "ns", "p", "is on node n already"),
    "Pod: version 3 is forgotten": GoneError("Pod", problem="version 3 is forgotten"),
    "Queue root: cannot be closed": RejectedError("Queue", "", "root", "cannot be closed"),
    "broken rule: used is never negative\n  place p on n\n  undo": InvariantError(
        "used is never negative", ["place p on n", "undo"]
    ),
}


@pytest.mark.parametrize("said", SAID)
def test_an_error_says_where_what_was_wanted_and_what_was_found(said: Any) -> None:
    assert said == str(SAID[said])


@pytest.mark.parametrize("said", SAID)
def test_an_error_survives_the_way_between_processes(said: Any) -> None:
    again = pickle.loads(pickle.dumps(SAID[said]))  # noqa: S301
    assert said == str(again)
    assert vars(SAID[said]) == vars(again)


@pytest.mark.parametrize("said", SAID)
def test_every_error_is_a_pumice_error(said: Any) -> None:
    assert isinstance(SAID[said], PumiceError)


def test_an_absent_value_differs_from_a_null() -> None:
    assert str(InputError(wanted="x", found=None)) == "expected x, got null"
    assert InputError(wanted="x").found is ABSENT


def test_a_long_value_is_cut() -> None:
    assert len(str(QuantityError(wanted="x", found="9" * 1000))) < 120


def test_a_value_that_python_does_not_print_is_described() -> None:
    assert str(QuantityError(wanted="x", found=10**5000)) == "expected x, got a very large int"


def test_a_conf_error_shows_its_first_problem_as_its_own() -> None:
    error = ConfError([Problem(wanted="a text", found=1, field="actions", hint="quote it")])
    assert (error.wanted, error.found, error.field) == ("a text", 1, "actions")


LONG = "x" * 2_000_000


@pytest.mark.parametrize(
    "error",
    [
        PumiceError(LONG),
        InputError(wanted=LONG, found=LONG, field=LONG, file=LONG, hint=LONG),
        ManifestError(wanted="x", subject=LONG, field=LONG),
        ConfError([Problem(wanted="a text", found=LONG, field=LONG)] * 10_000, file=LONG),
        OutputError(28, LONG, LONG),
        PluginError(LONG, LONG, LONG),
        UnknownHookError(LONG, LONG, LONG),
        BadHookResultError("p", "h", wanted=LONG, found=LONG),
        HttpError(LONG, LONG),
        ExtenderError(LONG, LONG),
        NotFoundError(LONG, LONG, LONG, LONG),
        DeniedError("Pod", "ns", "p", LONG),
        UnavailableError("Pod", "ns", "p", LONG),
        InvariantError(LONG, [LONG] * 3),
    ],
    ids=lambda error: type(error).__name__,
)
def test_no_message_is_longer_than_a_screen_or_two(error: PumiceError) -> None:
    assert len(str(error)) < 4100
    assert "more characters)" in str(error) or "…" in str(error)
    assert len(getattr(error, "problem", "")) < 3100
    assert len(str(pickle.loads(pickle.dumps(error)))) < 4100  # noqa: S301


def test_what_is_wanted_is_read_after_a_long_place() -> None:
    error = InputError(wanted="a list", found=5, field=LONG, file="f.yaml")
    assert str(error).endswith("… (1,999,500 more characters): expected a list, got 5")
    assert str(error).startswith("f.yaml: xxx")
