"""`pumice demo`: three queues, gangs, a preemption, a reclaim, a rescheduling, in a few seconds."""

from collections.abc import Sequence
from pathlib import Path

from pumice.api.output_files import make_folder
from pumice.cli.demo.narration import ChapterText, narrate
from pumice.cli.demo.player import Player
from pumice.cli.demo.report import write_report
from pumice.cli.demo.story import load_story
from pumice.cli.terminal import echo, print_heading, print_text


def demo(*, report: Path) -> None:
    """Play the story, print it and write its report."""
    story = load_story()
    played = Player(story).play()
    chapters = narrate(played)
    print_text(f"{story.title}: {len(story.jobs)} jobs in {len(story.deserved)} queues", bold=True)
    _print(chapters)
    make_folder(report.parent)
    page, table = write_report(played, chapters, report)
    ended = sum(phase == "Completed" for phase in played.phases.values())
    echo()
    echo(f"All {ended} jobs completed after {played.cycles} cycles.")
    echo(f"report: {page.resolve()}")
    echo(f"decisions: {table.resolve()}")


def _print(chapters: Sequence[ChapterText]) -> None:
    for number, chapter in enumerate(chapters, start=1):
        print_heading(f"{number}. {chapter.title}")
        print_text(chapter.text, indent="   ")
        for line in chapter.lines:
            print_text(line, indent="     ", first="   • ")
