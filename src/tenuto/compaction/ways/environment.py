"""What one compaction is built from: the whole environment of the session at that moment (seed 001).

The core fills it once; strategies and rungs read it. It holds functions where something is only needed on some ways
(asking which models may summarise can mean a request).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from tenuto.compaction.measure.budget import Budget
from tenuto.compaction.plan.plan import CompactionPlan, NothingToCompact, plan_compaction
from tenuto.compaction.summary.prompts import Prompts
from tenuto.compaction.summary.summarise import Patience, Progress
from tenuto.compaction.summary.view import SessionData, with_skills
from tenuto.compaction.ways.validate import CurrentContext, Proposal, evaluate, find_flaw
from tenuto.protocol.compaction import CompactionContext, CompactionModel, CompactionOutcome, RungError
from tenuto.protocol.entry import BranchEntry, PinEntry, SkillEntry, UndoEntry, UnpinEntry, ViewEditEntry
from tenuto.protocol.message import CompactionEntry, FileUse
from tenuto.protocol.model import ModelRequest, RemoteCompactor
from tenuto.protocol.usage import Usage

_CHANGES = (CompactionEntry, ViewEditEntry, UndoEntry, BranchEntry, PinEntry, UnpinEntry, SkillEntry)


class PreparedSummary(msgspec.Struct, frozen=True, kw_only=True):
    """`summary` stands for everything before the entry `first_kept_index`, as of the leaf `covered`; both are seqs."""

    summary: str
    first_kept_index: int
    covered: int
    model_id: str


def still_holds(prepared: PreparedSummary, current: CurrentContext) -> bool:
    """Say whether the history begins with exactly what was covered, for the same model."""
    if prepared.model_id != current.model_id:
        return False
    for entry in reversed(current.path):
        if entry.seq <= prepared.covered:
            return entry.seq == prepared.covered
        if isinstance(entry, _CHANGES):
            return False
    return False


class SummaryModel(msgspec.Struct, frozen=True):
    """A model that may write the summary, and how its own window is divided."""

    model: CompactionModel
    budget: Budget


@dataclass(slots=True)
class Spending:
    """What the calls of one compaction have cost, whatever came of them."""

    usage: Usage = field(default_factory=Usage)

    def add(self, usage: Usage) -> None:
        """Count one call."""
        self.usage += usage


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionEnvironment:
    """The session's environment at the moment of the compaction.

    `request` is what the next step would send. `constraints` is the text of the instruction files. `keep_tokens` is how
    much of the end stays, `None` for the usual; `unseen_tokens` how much of results that the model has not seen yet,
    `None` for what the window leaves. `tracker` has the newest use of every file, `directory` is the working directory.
    `compactor` is the present model's client where its provider can compact by itself. `prepared` is a summary written
    ahead of time. `shares_prefix`: the prefix cache may be used. `observed` is the tokens of a request that the
    provider took and that filled the window. `first_kept` is the seq with which the user wants the kept tail to begin
    (0: where the plan cuts).
    """

    current: CurrentContext
    request: ModelRequest
    summarisers: Callable[[], Awaitable[Sequence[SummaryModel]]]
    progress: Progress
    prompts: Prompts = field(default_factory=Prompts)
    constraints: str = ""
    session_data: SessionData = field(default_factory=SessionData)
    tracker: Mapping[str, FileUse] = field(default_factory=dict[str, FileUse])
    directory: str = ""
    keep_tokens: int | None = None
    first_kept: int = 0
    unseen_tokens: int | None = None
    compactor: RemoteCompactor | None = None
    prepared: PreparedSummary | None = None
    shares_prefix: bool = True
    observed: int = 0
    spending: Spending = field(default_factory=Spending)
    patience: Patience = field(default_factory=Patience)

    def plan(
        self, *, manual: bool = False, keep_tokens: int | None = None, first_kept: int = 0
    ) -> CompactionPlan | NothingToCompact:
        """Return what a summary of the older part would cover, or why there is nothing to summarise."""
        current = self.current
        return plan_compaction(
            current.path,
            current.view,
            size=with_skills(current.size, self.session_data.skills),
            budget=current.budget,
            meter=current.meter,
            model_id=current.model_id,
            manual=manual,
            keep_tokens=self.keep_tokens if keep_tokens is None else keep_tokens,
            tracker=self.tracker,
            directory=self.directory,
            first_kept=first_kept or self.first_kept,
            unseen_tokens=self.unseen_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundContext(CompactionContext):
    """The context that Tenuto passes to a strategy: the seed's fields, and the environment for the built-in ones."""

    environment: CompactionEnvironment

    @property
    def is_manual(self) -> bool:
        """Whether it was asked for, by user or agent: then it keeps less, and only has to make the context smaller."""
        return self.reason in {"manual", "agent"}


def accept(ctx: BoundContext, outcome: CompactionOutcome) -> Proposal:
    """Return the outcome as a proposal that may be written. Raises `RungError` with what is wrong with it.

    An automatic compaction also has to bring the next request under its limit, as a rule the trigger (R-004).
    """
    current = ctx.environment.current
    proposal = evaluate(outcome, current)
    flaw = find_flaw(proposal, current) or over_limit(ctx, proposal)
    if flaw:
        raise RungError(flaw)
    return proposal


def over_limit(ctx: BoundContext, proposal: Proposal) -> str:
    """Return by how much an automatic compaction would miss its aim, as one line; empty when it does not."""
    limit = ctx.environment.current.budget.trigger
    if ctx.is_manual or proposal.tokens_after <= limit:
        return ""
    return f"the context would still be over its limit ({proposal.tokens_after:,} of {limit:,} tokens)"
