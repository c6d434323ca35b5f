"""`pumice lint`: file, line, object, field, what was found and what was wanted."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from pumice.cli.main import main

QUEUE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: research}
spec: {weight: 1}
"""
JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: train
spec:
  queue: research
  minAvailable: 5
  tasks:
  - name: worker
    replicas: 2
    template:
      spec:
        containers:
        - name: main
          image: busybox
"""


@pytest.fixture
def lint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: Any, files: Any = (), given: Any = None) -> Any:
        for name, text in dict(files).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        result = CliRunner().invoke(main, ["lint", *arguments], input=given)
        return result.exit_code, result.output.splitlines()

    return run


def test_a_finding_names_line_object_field_found_and_wanted(lint: Any) -> None:
    code, lines = lint("a.yaml", files={"a.yaml": f"{QUEUE}---\n{JOB}"})
    assert (code, lines) == (
        1,
        [
            (
                "a.yaml:12: Job default/train: spec.minAvailable: got 5, "
                "expected at most 2, the replicas of all tasks"
            ),
            "1 problem in 2 objects",
        ],
    )


def test_a_fault_that_follows_from_another_is_not_reported(lint: Any) -> None:
    job = JOB.replace("replicas: 2", "replicas: two")
    assert job != JOB
    code, lines = lint("a.yaml", files={"a.yaml": f"{QUEUE}---\n{job}"})
    assert code == 1
    assert [line.split(": ", 2)[2] for line in lines[:-1]] == [
        'spec.tasks[0].replicas: got "two", expected a whole number of 32 bits'
    ]


POD = """\
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  schedulerName: volcano
  nodeSelector: [a, b]
  priority: high
  containers: [{name: c, image: busybox}]
"""


def test_values_of_a_wrong_type_in_a_pod_are_found_where_they_are(lint: Any) -> None:
    code, lines = lint("p.yaml", files={"p.yaml": POD})
    assert code == 1
    assert lines[:2] == [
        'p.yaml:6: Pod default/p: spec.nodeSelector: got ["a", "b"], expected a mapping',
        'p.yaml:7: Pod default/p: spec.priority: got "high", expected a whole number of 32 bits',
    ]


def test_queues_below_each_other_are_reported_as_that(lint: Any) -> None:
    child = QUEUE.replace("{weight: 1}", "{parent: other}")
    other = QUEUE.replace("research", "other").replace("{weight: 1}", "{parent: research}")
    _, lines = lint("a.yaml", files={"a.yaml": f"{child}---\n{other}"})
    assert [line.partition(", ")[2] for line in lines[:2]] == [
        "expected a queue that is not below it"
    ] * 2


def test_files_without_a_fault_are_fine(lint: Any) -> None:
    good = JOB.replace("minAvailable: 5", "minAvailable: 2")
    files = {"d/queue.yaml": QUEUE, "d/deep/job.yml": good, "d/notes.txt": "no: yaml: at all"}
    assert lint("d", files=files) == (0, ["no problems in 2 objects"])


def test_a_queue_in_another_file_counts_and_so_does_one_that_is_named(lint: Any) -> None:
    good = JOB.replace("minAvailable: 5", "minAvailable: 2")
    code, lines = lint("job.yaml", files={"job.yaml": good, "queue.yaml": QUEUE})
    assert (code, lines[0]) == (
        1,
        "job.yaml:6: Job default/train: spec.queue: got research, expected a queue that exists",
    )
    assert lint("job.yaml", "queue.yaml")[0] == 0
    assert lint("job.yaml", "--queue", "research")[0] == 0


def test_all_faults_of_an_object_are_reported_at_once_in_the_order_of_lines(lint: Any) -> None:
    bad = JOB.replace("replicas: 2", "replicas: -1").replace("image: busybox", "image: 5")
    bad = bad.replace("minAvailable: 5", "minAvailable: -5")
    _, lines = lint("-", "--queue", "research", given=bad)
    assert [line.partition(": got")[0] for line in lines[:-1]] == [
        "<stdin>:7: Job default/train: spec.minAvailable",
        "<stdin>:10: Job default/train: spec.tasks[0].replicas",
        "<stdin>:15: Job default/train: spec.tasks[0].template.spec.containers[0].image",
    ]
    assert lines[2].endswith("image: got 5, expected a text (quote it)")


def test_a_number_is_compared_with_the_replicas_of_its_own_task(lint: Any) -> None:
    bad = JOB.replace("minAvailable: 5", "minAvailable: 1").replace("replicas: 2", "replicas: two")
    bad = bad.replace("- name: worker", "- name: worker\n    minAvailable: 3")
    master = bad[bad.index("  - name: worker") :].replace("worker", "master")
    _, lines = lint("-", "--queue", "research", given=bad + master.replace("two", "2"))
    assert [line.partition(": got")[0] for line in lines[:-1]] == [
        "<stdin>:11: Job default/train: spec.tasks[0].replicas",
        "<stdin>:18: Job default/train: spec.tasks[1].minAvailable",
    ]


HYPER_NODES = """\
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: s0}
spec:
  tier: "1"
  members: [{type: Rack, selector: {exactMatch: {name: 5}}}]
---
apiVersion: topology.volcano.sh/v1alpha1
kind: HyperNode
metadata: {name: s1}
spec: {members: 3, tier: null}
"""


def test_values_of_a_wrong_type_are_shown_and_what_is_wanted_is_plain(lint: Any) -> None:
    member = "spec.members[0]"
    code, lines = lint("-", given=HYPER_NODES)
    assert (code, lines) == (
        1,
        [
            '<stdin>:5: HyperNode s0: spec.tier: got "1", expected a whole number',
            (
                f"<stdin>:6: HyperNode s0: {member}.type: got Rack, "
                'expected one of "Node", "HyperNode"'
            ),
            (
                f"<stdin>:6: HyperNode s0: {member}.selector.exactMatch.name: got 5, "
                "expected a text (quote it)"
            ),
            "<stdin>:11: HyperNode s1: spec.members: got 3, expected a list",
            "<stdin>:11: HyperNode s1: spec.tier: expected a value",
            "5 problems in 2 objects",
        ],
    )
    written = "".join(lint("-", "-o", "json", given=HYPER_NODES)[1])
    assert [each["found"] for each in json.loads(written)] == ["1", "Rack", 5, 3, None]


def test_an_amount_that_is_neither_a_whole_number_nor_a_text_is_one_problem(lint: Any) -> None:
    bad = QUEUE.replace("weight: 1", "weight: 1, capability: {cpu: 1.5}")
    assert lint("-", given=bad)[1] == [
        (
            "<stdin>:4: Queue research: spec.capability.cpu: got 1.5, "
            "expected a whole number or a text"
        ),
        "1 problem in 1 object",
    ]


def test_all_outputs_of_other_commands_are_known(lint: Any) -> None:
    files = {"queue.yaml": QUEUE}
    for output in ("table", "text"):
        assert lint("queue.yaml", "-o", output, files=files) == (0, ["no problems in 1 object"])
    assert lint("queue.yaml", "-o", "yaml") == (0, ["[]"])
    assert lint("queue.yaml", "-o", "xml")[0] == 2


def test_bad_quantities_are_reported_with_all_other_faults(lint: Any) -> None:
    asked = "image: busybox\n          resources: {requests: {cpu: 4cores, memory: 1Gii}}"
    bad = JOB.replace("image: busybox", asked)
    _, lines = lint("-", "--queue", "research", given=bad)
    assert [line.rpartition("resources.")[2].partition(" such as")[0] for line in lines[:-1]] == [
        (
            "<stdin>:7: Job default/train: spec.minAvailable: got 5, expected at most 2, "
            "the replicas of all tasks"
        ),
        "requests.cpu: got 4cores, expected a quantity",
        "requests.memory: got 1Gii, expected a quantity",
    ]


def test_a_misspelt_event_is_reported_once(lint: Any) -> None:
    good = JOB.replace("minAvailable: 5", "minAvailable: 2")
    bad = good.replace("  tasks:", "  policies: [{event: PodFaild, action: RestartJob}]\n  tasks:")
    _, lines = lint("-", "--queue", "research", given=bad)
    assert len(lines) == 2
    assert "spec.policies[0].event: got PodFaild, expected one of" in lines[0]


def test_an_object_without_a_spec_lacks_one(lint: Any) -> None:
    """The webhook of a cluster fails to complete it, and says only that."""
    bare = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: root}\n"
    _, lines = lint("-", given=bare)
    assert lines[0] == "<stdin>:1: Queue root: spec: expected an object"


def test_an_unknown_field_is_reported_with_the_one_probably_meant(lint: Any) -> None:
    code, lines = lint("-", given=JOB.replace("queue: research", "quue: default"))
    assert code == 1
    assert lines[0] == (
        '<stdin>:6: Job default/train: spec.quue: unknown field "spec.quue"; did you mean queue?'
    )


def test_json_files_have_lines_too(lint: Any) -> None:
    content = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue",
        "metadata": {"name": "q"}, "spec": {"weight": -1},
    }  # fmt: skip
    _, lines = lint("q.json", files={"q.json": json.dumps(content, indent=1)})
    assert lines[0] == "q.json:8: Queue q: spec.weight: got -1, expected at least 1"


def test_json_output_has_the_message_of_the_cluster(lint: Any) -> None:
    code, lines = lint("-o", "json", "a.yaml", files={"a.yaml": f"{QUEUE}---\n{JOB}"})
    assert code == 1
    assert json.loads("\n".join(lines)) == [
        {
            "file": "a.yaml",
            "line": 12,
            "object": "Job default/train",
            "field": "spec.minAvailable",
            "found": 5,
            "wanted": "at most 2, the replicas of all tasks",
            "message": "job 'minAvailable' should not be greater than total replicas in tasks;",
        }
    ]


def test_a_file_that_cannot_be_read_is_a_finding(lint: Any) -> None:
    code, lines = lint("a.yaml", "missing.yaml", files={"a.yaml": "a: [\n"})
    assert code == 1
    assert [line.split(":")[0] for line in lines] == [
        "a.yaml", "missing.yaml", "2 problems in 0 objects",
    ]  # fmt: skip
    assert lines[1] == "missing.yaml:1: No such file or directory; expected a readable file"


JOB_HEAD = "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: a}\n"


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.json", '{"a": ', "got no value where one must follow, expected readable JSON"),
        ("a.json", '{"a": 1 2}', "got no ',' where one must follow, expected readable JSON"),
        ("a.json", '{"a": "b', "got a quote that is not closed, expected readable JSON"),
        ("a.yaml", JOB_HEAD, "Job default/a: spec: expected an object"),
        ("a.yaml", f"{JOB_HEAD}spec: {{tasks: []}}\n", "got 0, expected at least 1 item"),
    ],
)
def test_faults_are_told_in_plain_words(lint: Any, name: str, text: str, found: str) -> None:
    code, lines = lint(name, files={name: text})
    assert code == 1
    assert lines[0].endswith(found)


def test_an_object_that_stands_there_twice_is_a_finding(lint: Any) -> None:
    _, lines = lint("a.yaml", files={"a.yaml": f"{QUEUE}---\n{QUEUE}"})
    assert lines[0] == (
        "a.yaml:8: Queue research: metadata.name: got research, "
        "expected each object once (the first is at a.yaml:1)"
    )


def test_kinds_without_rules_are_passed_over(lint: Any) -> None:
    config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
    text = f"{config}---\njust: values\n---\nobjects: []\n"
    notes = [
        "note: not checked: 1 scenario, which 'pumice run' reads",
        "note: not objects, not checked: 1 document",
        "note: without rules, not checked: 1 ConfigMap",
    ]
    assert lint("-", given=text) == (0, ["no problems in 0 objects", *notes])


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (
            "kind: Queue\nmetadata: {name: a}\n",
            "1: Queue a: apiVersion: expected a non-empty string",
        ),
        ("apiVersion: v1\nmetadata: {name: a}\n", "1: kind: expected a non-empty string"),
        ("metadata: {name: a}\n", "1: apiVersion: expected a non-empty string"),
        (
            "metadata: {name: a}\nkind: Pod\napiVersion: 1\n",
            "3: Pod default/a: apiVersion: got 1, expected a non-empty string",
        ),
    ],
)
def test_an_object_without_kind_or_version_is_a_finding(lint: Any, text: str, finding: str) -> None:
    assert lint("a.yaml", files={"a.yaml": text}) == (
        1,
        [f"a.yaml:{finding}", "1 problem in 0 objects"],
    )


def test_files_without_objects_are_refused(lint: Any) -> None:
    refusal = "Error: <stdin>: expected manifests, got none"
    assert lint("-", given="# nothing\n") == (2, [refusal])


def test_a_document_that_is_no_mapping_is_a_finding(lint: Any) -> None:
    code, lines = lint("-", given="hello world\n---\n[1, 2]\n")
    assert (code, lines[:2]) == (
        1,
        [
            "<stdin>:1: got hello world, expected an object with apiVersion and kind",
            "<stdin>:3: got [1, 2], expected an object with apiVersion and kind",
        ],
    )


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("config.volcano.sh/v1alpha1", "ColocationConfiguration"),
        ("workload.serving.volcano.sh/v1alpha1", "ModelServing"),
        ("scheduling.volcano.sh/v1beta1", "PodGroupList"),
    ],
)
def test_kinds_of_other_groups_and_lists_are_passed_over(
    lint: Any, version: str, kind: str
) -> None:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n"
    code, lines = lint("-", given=text)
    assert (code, lines[0]) == (0, "no problems in 0 objects")


def test_an_old_version_of_a_kind_is_found_once(lint: Any) -> None:
    text = QUEUE.replace("v1beta1", "v1alpha2")
    assert lint("-", given=text)[1][-1] == "1 problem in 1 object"


@pytest.mark.parametrize(
    ("version", "kind", "wanted"),
    [
        ("batch.volcano.sh/v1alpha1", "Jobb", "Job of batch.volcano.sh/v1alpha1"),
        ("scheduling.volcano.sh/v1beta1", "PodGroop", "PodGroup of scheduling.volcano.sh/v1beta1"),
        ("flow.volcano.sh/v1alpha1", "Jobflow", "JobFlow of flow.volcano.sh/v1alpha1"),
    ],
)
def test_a_misspelt_kind_is_a_finding(lint: Any, version: str, kind: str, wanted: str) -> None:
    text = f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a}}\n"
    code, lines = lint("-", given=text)
    assert code == 1
    assert lines[0] == (
        f"<stdin>:1: {kind} a: kind: got {kind} of {version}, "
        f"expected a kind of Volcano, such as {wanted}"
    )


TREE = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: top}
spec: {capability: {cpu: 4}, deserved: {cpu: 4}, guarantee: {resource: {cpu: 2}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: a}
spec: {parent: top, deserved: {cpu: 3}, guarantee: {resource: {cpu: 2}}}
---
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: b}
spec: {parent: top, capability: {cpu: 9}, deserved: {cpu: 3}, guarantee: {resource: {cpu: 1}}}
"""
ROOT = """\
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {name: root}
spec: {capability: {cpu: 3}}
"""


def reported(lint: Any, text: str, name: str) -> list[str]:
    _, lines = lint("-", given=text)
    return [line.partition(f"Queue {name}: ")[2] for line in lines if f"Queue {name}: " in line]


def test_a_queue_hears_of_all_that_its_children_ask_for_beyond_it(lint: Any) -> None:
    assert reported(lint, TREE, "top") == [
        "spec.capability.cpu: got 4, expected at least 9, as the queues below",
        ("spec.guarantee: got cpu 2, expected at least cpu 3, the sum of the queues below"),
        ("spec.deserved: got cpu 4, expected at least cpu 6, the sum of the queues below"),
    ]


def test_a_child_that_exceeds_its_parent_names_the_parent_and_counts_in_cores(lint: Any) -> None:
    text = TREE.replace("capability: {cpu: 9}, ", "")
    assert reported(lint, text, "b") == [
        (
            "spec.guarantee: got with its siblings cpu 3, "
            "expected at most cpu 2 together, as queue top states"
        )
    ]


def test_a_child_of_a_parent_that_guarantees_nothing_is_shown_that(lint: Any) -> None:
    text = TREE.replace("capability: {cpu: 9}, ", "").replace(
        "deserved: {cpu: 4}, guarantee: {resource: {cpu: 2}}", "deserved: {cpu: 4}"
    )
    assert (
        "spec.guarantee: got with its siblings cpu 3, expected none, as queue top states no "
        in (" ".join(reported(lint, text, "b")))
    )


@pytest.mark.parametrize("amount", ["much", "[4]", "{}"])
def test_a_child_that_cannot_be_read_is_reported_and_does_not_count(lint: Any, amount: str) -> None:
    text = TREE.replace("capability: {cpu: 9}", f"capability: {{cpu: {amount}}}")
    assert not [line for line in reported(lint, text, "top") if "capability" in line]
    assert reported(lint, text, "b")


def test_the_capability_of_the_root_is_compared_with_the_queues_below(lint: Any) -> None:
    assert reported(lint, f"{ROOT}---\n{TREE}", "root") == [
        "spec.capability.cpu: got 3, expected at least 4, as the queues below"
    ]


@pytest.mark.parametrize("name", ["-", "volcano-scheduler.conf"])
def test_a_scheduler_configuration_is_sent_to_its_own_check(lint: Any, name: str) -> None:
    text = 'actions: "allocate"\ntiers:\n- plugins: [{name: gang}]\n'
    code, lines = lint(name, files={"volcano-scheduler.conf": text}, given=text)
    assert code == 1
    assert "got a scheduler configuration" in lines[0]
    assert lines[0].endswith(f"check it with 'pumice config check {name}'")


@pytest.mark.parametrize(("namespace", "hints"), [("ai", 1), ("default", 0)])
def test_a_job_that_needs_a_secret_outside_default_gets_a_hint_and_passes(
    lint: Any, namespace: str, hints: int
) -> None:
    text = f"""\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {{name: x, namespace: {namespace}}}
spec:
  plugins: {{ssh: []}}
  minAvailable: 1
  tasks: [{{name: w, replicas: 1, template: {{spec: {{containers: [{{name: c, image: i}}]}}}}}}]
"""
    code, lines = lint("-", given=text)
    assert code == 0
    assert (
        sum("plugin ssh needs the controllers' right to secrets" in one for one in lines) == hints
    )


def test_a_missing_value_is_not_shown_as_one(lint: Any) -> None:
    text = QUEUE.replace("{weight: 1}", "{weight: 1, guarantee: {resource: {cpu: 4}}}")
    _, lines = lint("q.yaml", files={"q.yaml": text})
    assert lines[0].endswith(
        "Queue research: spec.deserved.cpu: expected at least 4, its guarantee"
    )
