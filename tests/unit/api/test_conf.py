"""The scheduler configuration: what is read, what is refused, and on which line."""

import pickle
from textwrap import dedent
from typing import Any

import pytest

from pumice.api.conf import DEFAULT_CONF, SWITCHES, parse_conf, read_conf
from pumice.api.conf_checks import check_names
from pumice.api.wording import nearest
from pumice.api.yaml_text import plain_value
from pumice.errors import ConfError

REPRESENTATIVE = {
    "chart default": """
        actions: "enqueue, allocate, backfill"
        tiers:
        - plugins:
          - name: priority
          - name: gang
            enablePreemptable: false
          - name: conformance
        - plugins:
          - name: overcommit
          - name: drf
            enablePreemptable: false
          - name: predicates
          - name: proportion
          - name: nodeorder
          - name: binpack
        """,
    "actions without quotes or spaces": "actions: enqueue,allocate\ntiers: []\n",
    "flow style": 'actions: "allocate"\ntiers: [{plugins: [{name: gang, enableJobOrder: no}]}]\n',
    "tier without plugins": "actions: allocate\ntiers:\n- plugins:\n- plugins: []\n",
    "no tiers": "actions: allocate\n",
    "arguments left empty": "actions: a\ntiers:\n- plugins:\n  - {name: p, arguments: }\n",
    "explicit document start and comments": "---\n# all\nactions: allocate # one\ntiers: []\n",
    "binpack with extended resources": """
        actions: "allocate"
        tiers:
        - plugins:
          - name: binpack
            arguments:
              binpack.weight: 10
              binpack.cpu: -2
              binpack.resources: "nvidia.com/gpu, example.com/foo"
              binpack.resources.nvidia.com/gpu: 8
        """,
    "hierarchical queues": """
        actions: "enqueue, allocate, reclaim"
        tiers:
        - plugins:
          - name: capacity
            enableHierarchy: true
            arguments:
              ancestorReclaimLevel: 1
        """,
    "hierarchical drf and proportion in different tiers": """
        actions: "allocate"
        tiers:
        - plugins:
          - {name: drf, enableHierarchy: true}
        - plugins:
          - {name: proportion}
        """,
    "nested arguments": """
        actions: "shuffle"
        tiers:
        - plugins:
          - name: rescheduling
            arguments:
              interval: 5m
              strategies:
              - name: lowNodeUtilization
                params:
                  thresholds: {cpu: 20, memory: 20}
                  targetThresholds:
                    cpu: 50
          - name: usage
            enablePredicate: false
            arguments:
              estimator: {request_ratio: 0.5, burst_ratio: 0}
              thresholds:
                cpu: 70
                mem: 80
        """,
    "time windows": """
        actions: "allocate, shuffle"
        tiers:
        - plugins:
          - name: tdm
            arguments:
              tdm.revocable-zone.rz1: 10:00-21:00
              tdm.revocable-zone.rz2: "00:00-05:00"
              tdm.evict.period: 10s
        """,
    "arguments of actions": """
        actions: "enqueue, allocate, preempt"
        tiers:
        - plugins: [{name: gang}]
        configurations:
        - name: allocate
          arguments: {predicateErrorCacheEnable: false}
        - name: preempt
          arguments:
            enableTopologyAwarePreemption: true
        """,
    "metrics": """
        actions: "allocate"
        tiers: []
        metrics:
          type: prometheus
          address: http://prometheus:9090
          interval: 30
        """,
    "every switch written out": "actions: a\ntiers:\n- plugins:\n  - name: p\n"
    + "".join(f"    {switch.key}: false\n" for switch in SWITCHES),
    "a plugin listed in two tiers": """
        actions: "enqueue"
        tiers:
        - plugins: [{name: resourcequota}]
        - plugins: [{name: resourcequota}]
        """,
}


def conf_of(text: Any) -> Any:
    return parse_conf(dedent(text))


def problems_of(text: Any) -> Any:
    return read_conf(dedent(text)).problems


def only_problem(text: Any) -> Any:
    problems = problems_of(text)
    assert len(problems) == 1, [str(problem) for problem in problems]
    return problems[0]


def first_plugin(text: Any) -> Any:
    return conf_of(text).tiers[0].plugins[0]


@pytest.mark.parametrize("text", REPRESENTATIVE.values(), ids=REPRESENTATIVE.keys())
def test_configurations_as_people_write_them_have_no_problem(text: Any) -> None:
    assert conf_of(text).problems == ()


def test_the_default_is_volcanos_built_in_one() -> None:
    conf = parse_conf(DEFAULT_CONF)
    assert conf.actions == ("enqueue", "allocate", "backfill")
    assert [[plugin.name for plugin in tier.plugins] for tier in conf.tiers] == [
        ["priority", "gang", "conformance"],
        ["overcommit", "drf", "predicates", "proportion", "nodeorder"],
    ]
    assert (conf.configurations, conf.metrics, conf.problems) == ({}, {}, ())


def test_a_plugin_keeps_its_arguments_in_their_yaml_type_and_knows_its_lines() -> None:
    plugin = first_plugin(
        """\
        actions: allocate
        tiers:
        - plugins:
          - name: p
            arguments:
              int: 1
              quoted: "1"
              float: 1.0
              bool: yes
              nothing:
              list: [1, a]
              mapping:
                cpu: 70
        """
    )
    assert plugin.arguments == {
        "int": 1,
        "quoted": "1",
        "float": 1.0,
        "bool": True,
        "nothing": None,
        "list": [1, "a"],
        "mapping": {"cpu": 70},
    }
    assert type(plugin.arguments["float"]) is float
    assert plugin.line == 4
    assert plugin.argument_lines["int"] == 6
    assert plugin.argument_lines["mapping"] == 12


def test_arguments_of_actions_are_found_by_the_name_of_the_action() -> None:
    conf = conf_of(
        """\
        actions: preempt
        configurations:
        - name: preempt
          arguments:
            maxCandidateNodesAbsolute: 5
        - name: allocate
        """
    )
    assert conf.configurations == {"preempt": {"maxCandidateNodesAbsolute": 5}, "allocate": {}}
    assert conf.configuration_lines == {"preempt": 3, "allocate": 6}
    assert conf.configuration_argument_lines["preempt"] == {"maxCandidateNodesAbsolute": 5}


def test_metrics_are_texts_whatever_they_look_like() -> None:
    conf = conf_of(REPRESENTATIVE["metrics"])
    assert conf.metrics["interval"] == "30"


def test_equal_configurations_are_equal_wherever_their_lines_are() -> None:
    assert parse_conf("actions: allocate") == parse_conf("# moved\n\nactions: 'allocate '")
    assert parse_conf("actions: allocate") != parse_conf("actions: backfill")


def test_a_configuration_travels_between_processes() -> None:
    conf = parse_conf(DEFAULT_CONF)
    assert pickle.loads(pickle.dumps(conf)) == conf  # noqa: S301


class TestSwitches:
    def test_absent_switches_are_on_except_hierarchy_and_cluster_order(self) -> None:
        switches = first_plugin("{actions: a, tiers: [{plugins: [{name: p}]}]}").switches
        off = {key for key, on in switches.items() if not on}
        assert off == {"enableHierarchy", "enabledClusterOrder"}
        assert len(switches) == 25

    @pytest.mark.parametrize("switch", SWITCHES, ids=lambda switch: switch.key)
    def test_both_spellings_set_the_same_switch(self, switch: Any) -> None:
        flipped = str(not switch.default).lower()
        for spelling in (switch.key, switch.alias):
            conf = f"actions: a\ntiers: [{{plugins: [{{name: p, {spelling}: {flipped}}}]}}]"
            changed = {
                other.key: value
                for other in SWITCHES
                if (value := first_plugin(conf).switches[other.key]) is not other.default
            }
            assert changed == {switch.key: not switch.default}

    @pytest.mark.parametrize("word", ["y", "Yes", "on", "TRUE", "true"])
    def test_yaml_1_1_words_are_booleans(self, word: str) -> None:
        conf = f"actions: a\ntiers: [{{plugins: [{{name: p, enableHierarchy: {word}}}]}}]"
        assert first_plugin(conf).switches["enableHierarchy"] is True

    @pytest.mark.parametrize("value", ["'true'", "1", "maybe", "[true]", "{}"])
    def test_anything_but_a_boolean_is_an_error(self, value: str) -> None:
        problem = only_problem(
            f"actions: a\ntiers:\n- plugins:\n  - name: p\n    enableJobOrder: {value}\n"
        )
        assert (problem.line, problem.severity) == (5, "error")
        assert problem.path == "tiers[0].plugins[0].enableJobOrder"
        assert problem.wanted == "true or false"

    def test_a_switch_left_empty_keeps_its_default_and_is_reported(self) -> None:
        conf = conf_of("actions: a\ntiers:\n- plugins:\n  - name: p\n    enableHierarchy:\n")
        assert conf.tiers[0].plugins[0].switches["enableHierarchy"] is False
        assert [(p.severity, p.line) for p in conf.problems] == [("ignored", 5)]

    def test_an_unknown_switch_names_the_nearest(self) -> None:
        problem = only_problem(
            "actions: a\ntiers:\n- plugins:\n  - name: p\n    enableJobOder: true\n"
        )
        assert (problem.line, problem.found) == (5, "enableJobOder")
        assert "enableJobOrder" in problem.hint

    def test_the_two_spellings_of_one_switch_exclude_each_other(self) -> None:
        problem = only_problem(
            "actions: a\ntiers:\n- plugins:\n  - name: p\n"
            "    enableOverused: true\n    enabledOverused: false\n"
        )
        assert (problem.line, problem.found) == (6, "enabledOverused")


ERRORS = {
    "nothing at all": ("", 1, "actions"),
    "only a comment": ("# nothing\n", 1, "actions"),
    "a list instead of a mapping": ("- actions\n", 1, ""),
    "no actions": ("tiers: []\n", 1, "actions"),
    "empty actions": ("tiers: []\nactions:\n", 2, "actions"),
    "a comma too many": ("actions: enqueue,, allocate\n", 1, "actions"),
    "actions as a list": ("actions: [enqueue]\n", 1, "actions"),
    "actions as a mapping": ("actions:\n  enqueue: 1\n", 1, "actions"),
    "an unknown top-level key": ("actions: a\ntier: []\n", 2, ""),
    "a key twice": ("actions: a\ntiers: []\nactions: b\n", 3, ""),
    "tiers that are no list": ("actions: a\ntiers: {}\n", 2, "tiers"),
    "a tier that is no mapping": ("actions: a\ntiers:\n- plugins: []\n- gang\n", 4, "tiers[1]"),
    "an empty tier": ("actions: a\ntiers:\n- {}\n", 3, "tiers[0]"),
    "plugins that are no list": ("actions: a\ntiers:\n- plugins: gang\n", 3, "tiers[0].plugins"),
    "a plugin that is only a name": (
        "actions: a\ntiers:\n- plugins:\n  - gang\n",
        4,
        "tiers[0].plugins[0]",
    ),
    "a misspelt key of a tier": ("actions: a\ntiers:\n- plugin: []\n", 3, "tiers[0]"),
    "a plugin without name": (
        "actions: a\ntiers:\n- plugins:\n  - enableJobOrder: true\n",
        4,
        "tiers[0].plugins[0]",
    ),
    "arguments that are a list": (
        "actions: a\ntiers:\n- plugins:\n  - name: p\n    arguments: [1]\n",
        5,
        "tiers[0].plugins[0].arguments",
    ),
    "an unknown key of an action's entry": (
        "actions: a\nconfigurations:\n- name: a\n  argument: {}\n",
        4,
        "configurations[0]",
    ),
    "an entry for no action": (
        "actions: a\nconfigurations:\n- arguments: {}\n",
        3,
        "configurations[0]",
    ),
    "metrics that are no mapping": ("actions: a\nmetrics: prometheus\n", 2, "metrics"),
    "a metric that is a list": ("actions: a\nmetrics:\n  type: [x]\n", 3, "metrics.type"),
    "proportion beside hierarchical drf": (
        "actions: a\ntiers:\n- plugins: [{name: proportion}, {name: drf, enableHierarchy: true}]\n",
        3,
        "tiers[0]",
    ),
    "very many actions": (f"actions: {'a,' * 1000}a\n", 1, "actions"),
    "very many tiers": (
        "actions: a\ntiers:\n" + "- plugins: [{name: p}]\n" * 501,
        503,
        "tiers[500]",
    ),
    "very many plugins": (
        f"actions: a\ntiers:\n- plugins: [{'{name: p}, ' * 1000}]\n",
        3,
        "tiers[0]",
    ),
}


class TestErrors:
    @pytest.mark.parametrize(("text", "line", "path"), ERRORS.values(), ids=ERRORS.keys())
    def test_a_mistake_is_reported_once_with_its_place(
        self, text: Any, line: Any, path: Any
    ) -> None:
        problem = only_problem(text)
        assert (problem.line, problem.path, problem.severity) == (line, path, "error")

    def test_all_mistakes_are_reported_at_once_in_the_order_of_lines(self) -> None:
        with pytest.raises(ConfError) as caught:
            parse_conf(
                dedent("""\
                action: allocate
                metrics: []
                tiers:
                - plugins:
                  - name: gang
                    enableJobRedy: true
                    enableJobOrder: "no"
                actions: ""
                """),
                source="my.conf",
            )
        assert [problem.line for problem in caught.value.problems] == [1, 2, 6, 7, 8]
        assert "my.conf" in str(caught.value)
        assert "did you mean 'enableJobReady'?" in str(caught.value)

    def test_a_mistake_in_one_part_leaves_the_others_read(self) -> None:
        conf = read_conf("actions: allocate\ntiers: 5\nmetrics: {type: x}\n")
        assert (conf.actions, conf.metrics, conf.tiers) == (("allocate",), {"type": "x"}, ())

    def test_a_second_entry_for_an_action_is_ignored_as_volcano_does(self) -> None:
        conf = conf_of(
            "actions: a\nconfigurations:\n"
            "- {name: a, arguments: {x: 1}}\n- {name: a, arguments: {x: 2}}\n"
        )
        assert conf.configurations == {"a": {"x": 1}}
        assert [(p.line, p.severity) for p in conf.problems] == [(4, "ignored")]

    def test_the_message_tells_what_was_wanted_and_what_was_found(self) -> None:
        problem = only_problem("actions: a\ntier: []\n")
        assert problem.message == "unknown key 'tier'"
        assert str(problem) == f"line 2: {problem.message}; did you mean 'tiers'?"


class TestNames:
    conf = parse_conf(
        "actions: enqueue, alocate\n"
        "tiers:\n- plugins:\n  - name: gang\n- plugins:\n  - name: binpak\n  - name: zzz\n"
        "configurations:\n- name: preemt\n"
    )

    def test_unknown_actions_and_plugins_are_errors_with_line_and_nearest_name(self) -> None:
        problems = check_names(self.conf, {"enqueue", "allocate"}, {"gang", "binpack"})
        assert [(p.line, p.path, p.found, p.severity) for p in problems] == [
            (1, "actions", "alocate", "error"),
            (6, "tiers[1].plugins[0]", "binpak", "error"),
            (7, "tiers[1].plugins[1]", "zzz", "error"),
            (9, "configurations", "preemt", "ignored"),
        ]
        assert problems[0].hint == "did you mean 'allocate'?"
        assert problems[1].hint == "did you mean 'binpack'?"
        assert problems[2].hint == "there are binpack, gang"
        many = {f"plugin-{n}" for n in range(20)}
        assert "--plugin" in check_names(self.conf, {"enqueue"}, many)[-2].hint

    def test_known_names_are_no_problem(self) -> None:
        known = {"enqueue", "alocate", "preemt"}
        assert check_names(self.conf, known, {"gang", "binpak", "zzz"}) == []

    def test_nearest_disregards_case_and_gives_up_on_strangers(self) -> None:
        assert nearest("GANG", ["drf", "gang"]) == "gang"
        assert nearest("enablejoborder", ["enableJobOrder"]) == "enableJobOrder"
        assert nearest("xyz", ["drf", "gang"]) is None
        assert nearest("xyz", []) is None


FAULTS = {
    "an argument twice": (
        "actions: a\ntiers:\n- plugins:\n  - name: p\n    arguments:\n      w: 1\n      w: 2\n",
        7,
        "tiers[0].plugins[0].arguments",
    ),
    "a key twice deep inside": (
        "actions: a\ntiers:\n- plugins:\n  - name: p\n    arguments: {x: {y: {z: 1, z: 2}}}\n",
        5,
        "tiers[0].plugins[0].arguments.x.y",
    ),
    "a key that is a list": ("actions: a\nmetrics:\n  ? [a]\n  : b\n", 3, "metrics"),
    "a tag nobody knows": (
        "actions: a\nconfigurations:\n- name: a\n  arguments: {x: !secret y}\n",
        4,
        "configurations[0].arguments.x",
    ),
    "a tag that lies": (
        "actions: a\nconfigurations:\n- name: a\n  arguments: {x: !!int y}\n",
        4,
        "configurations[0].arguments.x",
    ),
    "no YAML": ("actions: a\ntiers: [\n", 3, ""),
    "an anchor that does not exist": ("actions: a\ntiers: *x\n", 2, ""),
    "an anchor inside itself": ("actions: a\ntiers: &x\n- *x\n", 2, ""),
    "a second document": ("actions: a\n---\nactions: b\n", 2, ""),
    "a control character": ("actions: a\nmetrics: \x00\n", 2, ""),
    "nesting without end in sight": (f"actions: a\ntiers: {'[' * 60}{']' * 60}\n", 2, ""),
    "nesting beyond the reader": ("[" * 5000 + "]" * 5000, 1, ""),
}


@pytest.mark.parametrize(("text", "line", "path"), FAULTS.values(), ids=FAULTS.keys())
def test_a_fault_is_reported_once_with_its_place(text: Any, line: Any, path: Any) -> None:
    problems = read_conf(text).problems
    assert [(p.line, p.path, p.severity) for p in problems] == [(line, path, "error")]


def test_a_fault_in_a_shared_part_is_reported_once() -> None:
    problems = read_conf(
        "actions: a\nconfigurations:\n- name: a\n  arguments: &x {y: 1, y: 2}\n"
        "- name: b\n  arguments: *x\n"
    ).problems
    assert [p.line for p in problems] == [4]


def test_anchors_and_merge_keys_are_followed_and_own_keys_win() -> None:
    conf = parse_conf(
        dedent("""\
        actions: allocate
        tiers:
        - plugins:
          - &base {name: one, enableJobOrder: false, enableTaskOrder: false}
          - {<<: *base, name: two, enableTaskOrder: true}
        """)
    )
    two = conf.tiers[0].plugins[1]
    assert two.name == "two"
    assert (two.switches["enableJobOrder"], two.switches["enableTaskOrder"]) == (False, True)


def test_of_several_merged_mappings_the_first_wins() -> None:
    conf = parse_conf(
        "actions: a\nconfigurations:\n- {name: a, arguments: &a {x: 1}}\n"
        "- {name: b, arguments: &b {x: 2, y: 2}}\n- {name: c, arguments: {<<: [*a, *b]}}\n"
    )
    assert conf.configurations["c"] == {"x": 1, "y": 2}


def test_an_alias_used_a_billion_times_costs_nothing() -> None:
    arguments = "a0: &a0 [x]\n" + "".join(
        f"    a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(30)
    )
    conf = f"actions: a\nconfigurations:\n- name: a\n  arguments:\n    {arguments}"
    assert read_conf(conf).problems == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("~", None),
        ("yes", True),
        ("Off", False),
        ("n", False),
        ("5", 5),
        ("+5", 5),
        ("1_000", 1000),
        ("0x1F", 31),
        ("0b11", 3),
        ("-0o17", -15),
        ("017", 15),
        ("08", 8.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e3", 1000.0),
        (str(2**63 - 1), 2**63 - 1),
        (str(2**63), float(2**63)),
        ("-.inf", float("-inf")),
        ("1e999", "1e999"),
        ("9" * 5000, "9" * 5000),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("10:00-21:00", "10:00-21:00"),
        ("5m", "5m"),
        ("-", "-"),
        ("yEs", "yEs"),
    ],
)
def test_unquoted_scalars_get_the_type_that_volcanos_reader_gives_them(
    text: Any, value: Any
) -> None:
    assert (plain_value(text), type(plain_value(text))) == (value, type(value))


def test_an_explicit_tag_decides_the_type() -> None:
    conf = parse_conf(
        "actions: a\nconfigurations:\n- name: a\n"
        "  arguments: {s: !!str 5, i: !!int '5', f: !!float 5, b: !!bool 'yes', n: !!null ''}\n"
    )
    arguments = conf.configurations["a"]
    assert arguments == {"s": "5", "i": 5, "f": 5.0, "b": True, "n": None}
    assert type(arguments["f"]) is float
