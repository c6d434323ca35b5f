"""The promises of a plugin about victims: bounds, and what it says of candidates in company."""

import numpy as np

from pumice.errors import PluginError
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
