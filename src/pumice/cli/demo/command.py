"""`pumice demo`: three queues, gangs, a preemption, a reclaim, a rescheduling, in a few seconds."""

from pathlib import Path

import click

from pumice.api.output_files import make_folder
from pumice.cli.printing import echo, print_heading, print_text


@click.command()
@click.option(
    "--report",
    metavar="FILE",
    default="pumice-demo.html",
    show_default=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="Where to write the report with charts.",
)
def demo(*, report: Path) -> None:
    """Play a short story on an embedded cluster and print each decision with its reason.

    Scheduler, controllers and binder are those of a real cluster, on a virtual clock.
    """
    from pumice.cli.demo.player import Player, load_story
    from pumice.cli.demo.report import narrate, write_report

    story = load_story()
    played = Player(story).play()
    chapters = narrate(played)
    print_text(f"{story.title}: {len(story.jobs)} jobs in {len(story.deserved)} queues", bold=True)
    for number, chapter in enumerate(chapters, start=1):
        print_heading(f"{number}. {chapter.title}")
        print_text(chapter.text, indent="   ")
        for line in chapter.lines:
            print_text(line, indent="     ", first="   • ")
    make_folder(report.parent)
    page, table = write_report(played, chapters, report)
    ended = sum(phase == "Completed" for phase in played.phases.values())
    echo()
    echo(f"All {ended} jobs completed after {played.cycles} cycles.")
    echo(f"report: {page.resolve()}")
    echo(f"decisions: {table.resolve()}")
