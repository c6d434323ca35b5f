"""What accounts hold and held: means over the past in which each half-life counts half.

An account that holds an amount since t0 without change has a mean of
``amount * (1 - 2 ** (-(now - t0) / halfLife))``; see docs/plugins/fairshare.md.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Final, Literal, NamedTuple

import msgspec
import numpy as np

from pumice.core.resources import Column, IndexArray, Resources
from pumice.errors import InputError

Kind = Literal["namespace", "user", "queue"]
_LEAST: Final = 0.001
"""Of the units of the tables; less is forgotten."""
_MOST_BYTES: Final = 900_000
"""Of a text; the API server refuses objects beyond a mebibyte and a half."""


class Account(NamedTuple):
    """One that is charged for what jobs hold."""

    kind: Kind
    name: str


class _State(msgspec.Struct):
    """The ledger as text; amounts in the units of the tables."""

    at: float
    accounts: dict[Kind, dict[str, dict[str, float]]] = msgspec.field(default_factory=dict)


class Ledger:
    """The accounts by column; ``held`` is what each holds since ``at``, (R, A) as ``usage``."""

    def __init__(self) -> None:
        self.at = -math.inf
        """Up to when amounts are charged."""
        self.written = -math.inf
        """Up to when they were when the state was last written."""
        self.column_of: dict[Account, int] = {}
        self.usage: Column = np.zeros((0, 0))
        self.held: Column = np.zeros((0, 0))
        self.source: object = None
        """The ConfigMap that was looked at last."""

    def columns(self, accounts: Iterable[Account], n_resources: int) -> IndexArray:
        """Return the columns of accounts, new ones too (n,)."""
        places = self.column_of
        found = [places.setdefault(each, len(places)) for each in accounts]
        more = ((0, n_resources - len(self.usage)), (0, len(places) - self.usage.shape[1]))
        if any(end for _, end in more):
            self.usage, self.held = np.pad(self.usage, more), np.pad(self.held, more)
        return np.array(found, dtype=np.intp)

    def advance(self, now: float, half_life: float) -> None:
        """Charge what is held up to a time; a clock that was set back charges nothing."""
        if now > self.at:
            kept = 0.5 ** ((now - self.at) / half_life)
            self.usage = self.usage * kept + self.held * (1.0 - kept)
        self.at = now

    def prune(self, shares: Column, used: Collection[int], most: int) -> None:
        """Keep the accounts with the greatest shares (A,), and all that are in use."""
        idle = [i for i in np.argsort(-shares, kind="stable").tolist() if i not in used]
        kept = sorted({*used, *idle[: max(0, most - len(used))]})
        names = [*self.column_of]
        self.column_of = {names[i]: at for at, i in enumerate(kept)}
        self.usage, self.held = self.usage[:, kept], self.held[:, kept]

    def to_text(self, resources: Resources, order: Iterable[int]) -> str:
        """Write usage and time; the first columns of the order as far as an object holds them."""
        state, names, size = _State(at=self.at), [*self.column_of], 0
        for column in order:
            kind, name = names[column]
            stated = zip(resources.names, self.usage[:, column].tolist(), strict=True)
            found = {each: round(amount, 3) for each, amount in stated if amount >= _LEAST}
            size += len(msgspec.json.encode((name, found)))
            if size > _MOST_BYTES:
                break
            if found:
                state.accounts.setdefault(kind, {})[name] = found
        return msgspec.json.encode(state).decode()

    @classmethod
    def read(cls, text: str, resources: Resources) -> "Ledger":
        """Read what was written; resources that the cluster no longer knows are left out.

        Raises:
            InputError: the text is something else.
        """
        try:
            state = msgspec.json.decode(text, type=_State)
        except (msgspec.DecodeError, UnicodeEncodeError) as error:
            raise InputError(wanted="the state of fairshare", found=str(error)) from error
        ledger = cls()
        ledger.at = ledger.written = state.at
        for kind, accounts in state.accounts.items():
            columns = ledger.columns((Account(kind, each) for each in accounts), len(resources))
            for column, amounts in zip(columns.tolist(), accounts.values(), strict=True):
                ledger.usage[:, column] = _vector(amounts, resources)
        return ledger


def _vector(amounts: Mapping[str, float], resources: Resources) -> Column:
    return np.array([max(0.0, amounts.get(name, 0.0)) for name in resources.names])
