"""What would have been right, in plain words; the messages of a cluster stay as they are."""

from typing import Any

import pytest

from pumice.api.kinds import Manifest
from pumice.webhooks.fields import path_text
from pumice.webhooks.files import Files
from pumice.webhooks.lint import lint_object
from pumice.webhooks.plain_words import plainly

VOLCANO = {
    "Job": "batch.volcano.sh/v1alpha1",
    "Queue": "scheduling.volcano.sh/v1beta1",
    "HyperNode": "topology.volcano.sh/v1alpha1",
}


def made(kind: str, metadata: Any, **spec: Any) -> Manifest:
    return {"apiVersion": VOLCANO[kind], "kind": kind, "metadata": metadata, "spec": spec}


def job(metadata: Any = None, container: Any = None, **task: Any) -> Manifest:
    given = {"name": "a", "image": "a", **(container or {})}
    template = {"spec": {"containers": [given]}}
    tasks = [{"name": "a", "replicas": 1, "template": template, **task}]
    return made("Job", {"name": "j", **(metadata or {})}, minAvailable=1, tasks=tasks)


def member(**selector: Any) -> Manifest:
    return made(
        "HyperNode", {"name": "h"}, tier=1, members=[{"type": "Node", "selector": selector}]
    )


ENDS = "a letter or digit first and last"
CASES = [
    (
        made("Queue", {"name": "Q_1"}),
        "metadata.name",
        f"lower case letters, digits, '-' and '.', {ENDS} (such as 'example.com')",
    ),
    (job(name="Task_A"), "spec.tasks[0].name", f"lower case letters, digits and '-', {ENDS}"),
    (
        job(container={"name": "A B"}),
        "spec.tasks[0].template.spec.containers[0].name",
        f"lower case letters, digits and '-', {ENDS} (such as 'my-name' or '123-abc')",
    ),
    (
        job({"labels": {"a b": "c"}}),
        "metadata.labels",
        (
            f"a name of letters, digits, '-', '_' and '.', {ENDS} "
            "(such as 'MyName' or 'my.name' or '123-abc')"
        ),
    ),
    (
        job({"labels": {"a": "c d"}}),
        "metadata.labels",
        (
            f"nothing, or letters, digits, '-', '_' and '.', {ENDS} "
            "(such as 'MyValue' or 'my_value' or '12345')"
        ),
    ),
    (
        job({"labels": {"A_b/c": "d"}}),
        "metadata.labels",
        f"a prefix of lower case letters, digits, '-' and '.', {ENDS} (such as 'example.com')",
    ),
    (
        job({"labels": {"a/b/c": "d"}}),
        "metadata.labels",
        (
            f"letters, digits, '-', '_' and '.', {ENDS} "
            "(such as 'MyName' or 'my.name' or '123-abc'), "
            "behind a prefix with '/' if need be (such as 'example.com/MyName')"
        ),
    ),
    (job({"labels": {"a": True}}), "metadata.labels.a", "a text (quote it)"),
    (
        job(container={"env": [{"name": "1=2"}]}),
        "spec.tasks[0].template.spec.containers[0].env[0].name",
        (
            "letters, digits, '_', '-' and '.', no digit first "
            "(such as 'my.env-name' or 'MY_ENV.NAME' or 'MyEnvName1')"
        ),
    ),
    (
        made("Queue", {"name": "q"}, guarantee={"resource": {"cpu": "4"}}),
        "spec.deserved.cpu",
        "at least 4, its guarantee",
    ),
    (
        made("Queue", {"name": "q"}, capability={"cpu": "4"}, deserved={"cpu": "5"}),
        "spec.deserved.cpu",
        "at most 4, its capability",
    ),
    (
        member(exactMatch={"name": ""}),
        "spec.members[0].selector.exactMatch.name",
        "a text that is not empty",
    ),
    (
        member(exactMatch={"name": "a"}, regexMatch={"pattern": "a"}),
        "spec.members[0].selector",
        "only one of exactMatch, regexMatch and labelMatch",
    ),
    (
        member(regexMatch={"pattern": "["}),
        "spec.members[0].selector.regexMatch.pattern",
        "a regular expression that can be read: missing closing ]: `[`",
    ),
]


@pytest.mark.parametrize(("manifest", "field", "wanted"), CASES, ids=[one[1] for one in CASES])
def test_what_is_wanted_is_in_plain_words(manifest: Any, field: str, wanted: str) -> None:
    found = [(path_text(one.path), one.wanted) for one in lint_object(manifest, Files(()))]
    assert (field, wanted) in found


def test_the_message_stays_that_of_the_cluster() -> None:
    (found,) = lint_object(made("Queue", {"name": "Q_1"}), Files(()))
    assert "a lowercase RFC 1123 subdomain must consist of" in found.text
    assert "regex used for validation is" in found.text
    (found,) = lint_object(CASES[9][0], Files(()))
    assert 'Invalid value: "<nil>": deserved[cpu] must be >= guarantee[cpu]=4' in found.text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("match '^x+$'", "a text that matches '^x+$'"),
        ("no more than 15 characters", "no more than 15 characters"),
        (f"{'>= a[' * 300}]=1", f"{'>= a[' * 300}]=1"),
        ("odd (e.g. nothing)", "odd (e.g. nothing)"),
    ],
)
def test_other_messages_stay(text: str, wanted: str) -> None:
    assert plainly(text) == wanted
