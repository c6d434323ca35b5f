"""`pumice queue`: look at queues, make, open, close and delete them; who goes first, and why."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from pumice.api import kinds
from pumice.api.kinds import POD_GROUP, QUEUE_COMMANDS, Manifest
from pumice.cli.inputs import end_if_plugins_failed, read_world
from pumice.cli.options import (
    ClusterInput,
    PluginSources,
    output_option,
    plugin_option,
    world_options,
)
from pumice.cli.printing import echo, print_data, print_heading, print_rows, print_text, start_text
from pumice.cli.vcctl.columns import OUTPUTS, WRITTEN, Column, print_written, reference, show
from pumice.cli.vcctl.verbs import (
    PAST,
    Call,
    Flag,
    VerbError,
    VerbGroup,
    click_group,
    name_flag,
    order,
    verb,
)
from pumice.errors import InputError

_VERSION: Final = "scheduling.volcano.sh/v1beta1"
_PHASES: Final = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
_STATES: Final = ("Open", "Closed")
_ACTIONS: Final = {"open": "OpenQueue", "close": "CloseQueue"}


@click.command("order")
@world_options()
@plugin_option
@output_option
def show_order(
    *,
    source: ClusterInput,
    plugins: PluginSources,
    output: str,
) -> None:
    """Show the order in which queues and jobs are considered, and why."""
    from pumice.diagnosis.queue_order import queue_order

    world = read_world(source, plugins)
    found = queue_order(world).to_dict()
    if output == "table":
        _print(found, world.plain)
    else:
        print_data(found, output)
    end_if_plugins_failed(world)


def _print(found: Mapping[str, Any], say: Callable[[str], str]) -> None:
    if not found["queues"]:
        waits = "in line" if found["without_pods"] else "in any queue"
        echo(f"no job waits {waits}")
        _print_without_pods(found["without_pods"], say)
        return
    print_heading("Queues with waiting jobs, the first one first")
    plugins = list(found["queues"][0]["keys"])
    rows = [
        (str(n), line["name"], *(line["keys"][each] for each in plugins), line["after"])
        for n, line in enumerate(found["queues"], start=1)
    ]
    print_rows(("#", "queue", *plugins, "after the one before because of"), rows)
    for queue, lines in found["jobs"].items():
        print_heading(f"Jobs of queue {queue}")
        plugins = list(lines[0]["keys"]) if lines else []
        starts = ["starts"] if any(line["reservation"] for line in lines) else []
        jobs = [
            (
                str(n),
                say(line["name"]),
                *(line["keys"][each] for each in plugins),
                line["after"],
                "" if line["turn"] is None else str(line["turn"]),
                *(start_text(line["reservation"]) for _ in starts),
                say(line["outcome"]),
            )
            for n, line in enumerate(lines, start=1)
        ]
        after = "after the one before because of"
        print_rows(("#", "job", *plugins, after, "turn", *starts, "outcome"), jobs)
    _print_without_pods(found["without_pods"], say)
    print_heading("Deciding plugins in order; the first difference counts")
    for kind, plugin, rule in found["rules"]:
        print_text(f"{kind:<7} {plugin or '-':<12} {rule}", indent="  ")
    print_text(
        "turn: when allocate actually took the job; queues take turns, job by job", indent="  "
    )


def _print_without_pods(found: Mapping[str, str], say: Callable[[str], str]) -> None:
    if found:
        print_heading("Jobs waiting for their pods")
        print_rows(("job", "why"), [(say(job), say(why)) for job, why in found.items()])


def _create(call: Call) -> None:
    weight, state = call.options["weight"], call.text("state")
    if not call.exact and state not in _STATES:
        raise InputError(wanted=" or ".join(_STATES), found=state, field="--state")
    metadata = {"name": call.text("name")} if call.text("name") else {}
    made = call.cluster.create(
        {
            "apiVersion": _VERSION,
            "kind": "Queue",
            "metadata": metadata,
            "spec": ({"weight": weight} if weight else {}) | {"guarantee": {}},
            "status": {"state": state, "reservation": {}, "allocated": None},
        }
    )
    print_written(call, made)


def _delete(call: Call) -> None:
    name = _name(call)
    call.cluster.delete(kinds.QUEUE, "", name)
    print_written(call, reference(_VERSION, "Queue", name))


def _operate(call: Call) -> None:
    name, action, weight = _name(call), call.text("action"), call.options["weight"]
    if action == "update":
        if not weight:
            raise VerbError(
                f"when update queue {name}, weight must be specified, "
                "the value must be greater than 0"
            )
        print_written(call, call.cluster.patch(kinds.QUEUE, "", name, {"spec": {"weight": weight}}))
        return
    if not action:
        raise VerbError("action can not be null")
    if action not in _ACTIONS:
        raise VerbError(f"action {action} invalid, valid actions are open, close and update")
    queue = call.cluster.get(kinds.QUEUE, "", name)
    print_written(call, order(call, queue, _ACTIONS[action], QUEUE_COMMANDS))


def _name(call: Call) -> str:
    if not call.text("name"):
        raise VerbError("queue name must be specified")
    return call.text("name")


def _get(call: Call) -> None:
    if not call.text("name"):
        raise VerbError("name is mandatory to get the particular queue details")
    _show(call, [call.cluster.get(kinds.QUEUE, "", call.text("name"))], single=True)


def _list(call: Call) -> None:
    _show(call, call.listed(kinds.QUEUE), single=False)


def _show(call: Call, queues: list[Manifest], *, single: bool) -> None:
    counts = Counter(
        ((group.get("spec") or {}).get("queue"), (group.get("status") or {}).get("phase"))
        for group in (call.listed(POD_GROUP) if queues else ())
    )

    def counted(phase: str) -> Column:
        return Column(
            title=phase, value=lambda queue: counts[queue["metadata"]["name"], phase], width=8
        )

    def spec(title: str, key: str, default: str | int) -> Column:
        return Column(
            title=title, value=lambda queue: (queue.get("spec") or {}).get(key, default), width=8
        )

    columns = [
        Column(title="Name", value=lambda queue: queue["metadata"]["name"], width=25),
        spec("Weight", "weight", 0),
        Column(
            title="State", value=lambda queue: (queue.get("status") or {}).get("state", ""), width=8
        ),
        spec("Parent", "parent", ""),
        *map(counted, _PHASES),
        *(_amounts(title) for title in ("Guarantee", "Deserved", "Capability")),
    ]
    show(call, queues, columns, gap=3, single=single)


def _amounts(title: str) -> Column:
    """Make the column of a limit, shown by `-o wide`."""

    def value(queue: Manifest) -> str:
        amounts = (queue.get("spec") or {}).get(title.lower()) or {}
        amounts = amounts.get("resource") or {} if title == "Guarantee" else amounts
        return ",".join(f"{name}={amount}" for name, amount in sorted(amounts.items())) or "<none>"

    return Column(title=title, value=value, wide=True)


QUEUE: Final = VerbGroup(
    "queue",
    "Queue Operations",
    "Look at queues, make, open, close and delete them.",
    (
        verb(
            "create",
            "creates queue",
            _create,
            Flag("name", "n", "the name of queue", "test"),
            Flag("weight", "w", "the weight of the queue", 1, "int32"),
            Flag("state", "S", "the state of queue", "Open"),
            outputs=WRITTEN,
        ),
        verb("delete", "delete queue", _delete, name_flag("queue", "n"), outputs=WRITTEN),
        verb(
            "operate",
            "operate queue",
            _operate,
            name_flag("queue", "n"),
            Flag("weight", "w", "the weight of the queue", 0, "int32"),
            Flag("action", "a", "operate action to queue, valid actions are open, close, update"),
            outputs=WRITTEN,
        ),
        verb("list", "lists all the queue", _list, outputs=OUTPUTS, ours=PAST),
        verb("get", "get a queue", _get, name_flag("queue", "n"), outputs=OUTPUTS, ours=PAST),
    ),
)
queue = click_group(QUEUE)
queue.add_command(show_order)
