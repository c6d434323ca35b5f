"""The promises of a plugin about victims: bounds, and what it says of candidates in company."""

import numpy as np

from pumice.errors import PluginError
from pumice.framework.columns import Jobs
from pumice.framework.dispatch import Method
from pumice.framework.plugin import Plugin
from pumice.framework.statement import Statement
from pumice.testing.hook_questions import VICTIMS, Questions


class VictimChecks:
    """Checks of the hooks about victims, of one plugin on one cluster."""

    def __init__(self, questions: Questions, asking: list[int], rng: np.random.Generator) -> None:
        self.questions = questions
        self.asking = asking
        self.rng = rng

    def check_bounds(self) -> None:
        """Compare the victims a hook names, among different candidates, with their bound."""
        every = np.asarray(self.questions.running, dtype=np.intp)
        companies = [every, *(self.rng.permutation(every)[:size] for size in (1, 3, len(every)))]
        for hook in VICTIMS:
            for row in self.asking if self.questions.has(hook) else ():
                bound = self.questions.bound(hook, row, every)
                for company in companies if bound is not None else ():
                    named = self.questions.victims(hook, row, company.tolist())
                    if named is not None and not set(company[named]) <= set(every[bound]):
                        text = f"names victims that bound_victims leaves out: {company[named]}"
                        raise PluginError(self.questions.plugin.name, hook.__name__, text)

    def check_alone(self) -> None:
        """Compare the verdicts on tasks together with those on each by itself."""
        every = self.questions.running
        for hook in VICTIMS:
            if hook.__name__ not in self.questions.plugin.judges_alone:
                continue
            for row in self.asking:
                together = self.questions.victims(hook, row, every)
                alone = [self.questions.victims(hook, row, [each]) for each in every]
                said = [None] * len(every) if together is None else together.tolist()
                if said != [None if each is None else bool(each[0]) for each in alone]:
                    text = (
                        f"judges a task by its company (leave {hook.__name__} out of judges_alone)"
                    )
                    raise PluginError(self.questions.plugin.name, hook.__name__, text)

    def check_in_turn(self, statement: Statement) -> None:
        """Test that candidates who are all offered stay so while some before them are evicted."""
        for hook in VICTIMS:
            if hook.__name__ not in self.questions.plugin.judges_in_turn:
                continue
            for row in self.asking:
                start = statement.checkpoint()
                self.check_parts(statement, hook, row, self.offered_line(hook, row))
                statement.rollback(start)

    def offered_line(self, hook: Method, row: int) -> list[int]:
        """Return the first of the candidates that could be offered, as long as they are."""
        every = self.rng.permutation(np.asarray(self.questions.running, dtype=np.intp))
        bound = self.questions.bound(hook, row, every)
        line: list[int] = (every if bound is None else every[bound]).tolist()
        offered = self.questions.victims(hook, row, line)
        if offered is None or not line:
            return []
        return line if offered.all() else line[: int(np.argmin(offered))]

    def check_parts(self, statement: Statement, hook: Method, row: int, line: list[int]) -> None:
        """Ask about the rest of a line, again and again, while some of those before it go."""
        while line:
            offered = self.questions.victims(hook, row, line)
            if offered is None or not offered.all():
                text = "refuses some of those it offered before (see judges_in_turn)"
                raise PluginError(self.questions.plugin.name, hook.__name__, text)
            before = 1 + int(self.rng.integers(len(line)))
            for victim in line[:before]:
                if self.rng.integers(2):
                    statement.evict(victim, "reclaim")
            line = line[before:]

    def check_surplus(self, statement: Statement) -> None:
        """Test that so many of each job are offered, less those of it that were evicted."""
        for hook in (Plugin.preemptable, Plugin.reclaimable):
            for row in self.asking if self.questions.has(hook) else ():
                line: list[int] = self.rng.permutation(self.questions.running).tolist()
                spare, start = self.spare_tasks(hook, line), statement.checkpoint()
                while line and spare is not None:
                    self.check_first_of_each(hook, row, line, spare)
                    for victim in (going := line[: 1 + int(self.rng.integers(len(line)))]):
                        statement.evict(victim, "reclaim")
                        spare[self.job_of(victim)] -= 1
                    line = line[len(going) :]
                statement.rollback(start)

    def check_first_of_each(
        self, hook: Method, row: int, line: list[int], spare: dict[int, int]
    ) -> None:
        """Test that the first of each job in line are offered, as many as it can spare."""
        jobs = [self.job_of(each) for each in line]
        wanted = [jobs[:i].count(job) < spare[job] for i, job in enumerate(jobs)]
        offered = self.questions.victims(hook, row, line)
        if offered is None or offered.tolist() != wanted:
            text = "offers others than the first tasks of each job, as many as surplus returns"
            raise PluginError(self.questions.plugin.name, hook.__name__, text)

    def spare_tasks(self, hook: Method, rows: list[int]) -> dict[int, int] | None:
        """Ask how many tasks of each job a hook offers."""
        owners = sorted({self.job_of(row) for row in rows})
        jobs = Jobs(self.questions.ssn.snapshot, np.array(owners, dtype=np.intp))
        found = self.questions.ask(Plugin.surplus, hook.__name__, jobs)
        return None if found is None else dict(zip(owners, found.tolist(), strict=True))

    def job_of(self, row: int) -> int:
        """Return the job of a task."""
        return int(self.questions.ssn.snapshot.tasks.job[row])
