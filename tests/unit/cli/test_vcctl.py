"""`pumice vcctl`: syntax, help and messages beyond the recorded ones."""

import socket
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.connect import connect
from pumice.cli.main import main
from pumice.cli.vcctl.columns import duration
from pumice.cli.vcctl.command import run_vcctl
from pumice.cli.vcctl.verbs import VerbError, canonical
from pumice.cluster.embedded.store import EmbeddedCluster

MINUTE, HOUR, DAY = 60, 3600, 86400


def run(*words: Any) -> Any:
    out: list[str] = []
    err: list[str] = []
    code = run_vcctl(words, lambda _: nullcontext(EmbeddedCluster()), out.append, err.append)
    return code, "".join(out), "".join(err)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["job", "list", "-x"], "unknown shorthand flag: 'x' in -x"),
        (["job", "list", "-n"], "flag needs an argument: 'n' in -n"),
        (["job", "list", "--namespace"], "flag needs an argument: --namespace"),
        (["job", "list", "--=x"], "bad flag syntax: --=x"),
        (["job", "--frob"], "unknown flag: --frob"),
        (["job", "--all-namespaces", "list"], "unknown flag: --all-namespaces"),
        (
            ["job", "list", "--all-namespaces=maybe"],
            ('invalid argument "maybe" for "--all-namespaces" flag: '
            'strconv.ParseBool: parsing "maybe": invalid syntax'),
        ),
        (
            ["queue", "create", "-w", "2147483648"],
            ('invalid argument "2147483648" for "-w, --weight" flag: '
            'strconv.ParseInt: parsing "2147483648": value out of range'),
        ),
        (["jo"], ('unknown command "jo" for "vcctl"\n\nDid you mean this?\n'
         "\tjob\n\tjobtemplate\n\tjobflow\n\tpod\n")),
    ],
)  # fmt: skip
def test_words_that_cannot_be_read_are_reported_as_by_the_original(
    words: Any, message: str
) -> None:
    assert run(*words) == (1, "", f"Error: {message}\n")


@pytest.mark.parametrize(
    "words",
    [
        ["job", "list", "-n", "x"],
        ["job", "list", "-nx"],
        ["job", "list", "-n=x"],
        ["job", "-n", "x", "list"],
        ["-v", "3", "job", "list", "--namespace=x", "surplus"],
        ["job", "list", "--all_namespaces", "--", "-n"],
    ],
)
def test_options_may_stand_anywhere(words: Any) -> None:
    assert run(*words) == (0, "No resources found\n", "")


def test_numbers_may_be_written_as_in_go() -> None:
    cluster = EmbeddedCluster()
    words = ["queue", "create", "-n", "q", "-w", "0x1_0"]
    assert run_vcctl(words, lambda _: nullcontext(cluster), print, print) == 0
    assert cluster.get("Queue.scheduling.volcano.sh", "", "q")["spec"]["weight"] == 16


def test_help_is_given_for_groups_verbs_and_topics() -> None:
    code, text, _ = run("queue", "operate", "-h")
    assert code == 0
    assert text.startswith("operate queue\n\nUsage:\n  vcctl queue operate [flags]\n\nFlags:\n")
    assert "  -w, --weight int32        the weight of the queue\n" in text
    assert run("help", "queue", "operate")[1] == text
    assert run("help", "queue")[1] == run("queue")[1] == run("queue", "--help")[1]
    assert run("help")[1] == run()[1] == run("--help")[1]
    assert run("help", "frob")[2].startswith("Unknown help topic [`frob`]\nUsage:\n")
    assert "Examples:\nvcctl version\n" in run("version", "--help")[1]


def test_the_alias_is_a_command_of_pumice() -> None:
    result = CliRunner().invoke(main, ["vcctl", "job", "list", "--frob"])
    assert (result.exit_code, result.stderr) == (1, "Error: unknown flag: --frob\n")


@pytest.mark.parametrize("words", ["-v 3 job list -nx", "job -v=3 list -- -n", "job list -- --x"])
def test_every_word_reaches_the_alias(words: Any) -> None:
    result = CliRunner().invoke(
        main, ["vcctl", *words.split()], obj=lambda _: nullcontext(EmbeddedCluster())
    )
    assert result.output == "No resources found\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (119.9, "119s"),
        (2 * MINUTE, "2m"),
        (9 * MINUTE + 1, "9m1s"),
        (179 * MINUTE + 59, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 5 * MINUTE, "7h5m"),
        (47 * HOUR, "47h"),
        (2 * DAY + 2 * HOUR, "2d2h"),
        (8 * DAY + 5 * HOUR, "8d"),
        (2 * 365 * DAY, "2y"),
        (2 * 365 * DAY + 3 * DAY, "2y3d"),
        (8 * 365 * DAY + 3 * DAY, "8y"),
    ],
)
def test_a_time_span_has_at_most_two_units(seconds: Any, text: str) -> None:
    assert duration(seconds) == text
    assert duration(seconds, whole_years=False) == ("2y0d" if text == "2y" else text)


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("1000m", "1"), ("1.5", "1500m"), ("0.5Gi", "512Mi"), ("1023", "1023"), ("100Ki", "100Ki"),
        ("0.1Ki", "102400m"), ("2048Mi", "2Gi"), ("120000", "120k"), ("1e3", "1e3"), ("-1", "-1"),
        ("0", "0"), (4, "4"), ("1500n", "1500n"), ("0.1n", "1n"),
    ],
)  # fmt: skip
def test_amounts_are_written_in_their_canonical_form(given: Any, wanted: str) -> None:
    assert canonical(given) == wanted


@pytest.mark.parametrize(
    ("given", "problem"),
    [("", "quantities must"), ("1Q", "quantities must"), ("1KM", "suffix"), ("m", "numeric part")],
)
def test_what_is_no_amount_is_refused(given: str, problem: str) -> None:
    with pytest.raises(VerbError, match=problem):
        canonical(given)


@pytest.mark.parametrize("named", ["", "http://10.0.0.9:1"])
def test_without_any_kubeconfig_the_usual_address_is_asked(
    named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def pretended(options: Any) -> Any:
        asked.append(options.fallback)
        return nullcontext(EmbeddedCluster())

    monkeypatch.setenv("KUBERNETES_MASTER", named)
    assert run_vcctl(["job", "list"], pretended, asked.append, asked.append) == 0
    assert asked == [named or "http://localhost:8080", "No resources found\n"]
    asked.clear()
    CliRunner().invoke(main, ["job", "list"], obj=pretended)
    assert asked == [""]


def test_when_nothing_answers_the_address_is_reported_as_by_the_original(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("KUBERNETES_MASTER", f"http://{address}")
    reported: list[str] = []
    assert run_vcctl(["job", "list"], connect, reported.append, reported.append) == 255
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    problem = f"dial tcp {address}: connect: connection refused"
    assert reported == [f'Failed to list job: Get "http://{address}{path}": {problem}\n']
