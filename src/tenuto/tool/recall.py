"""The `recall` tool: everything that was ever said and done, in this session or in others of the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.session.store import find_agent
from tenuto.text.bounding import shorten
from tenuto.tool.output import ToolOutput, clean_text
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError
from tenuto.tool.search.record import Question, Span, agent_records, recall, recall_agent
from tenuto.tool.search.search import run_stoppable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenuto.tool.run.arguments import RecallArguments


class RecallTool(BuiltinTool):
    """Looks into the history, also at what a summary stands for."""

    name = "recall"

    def subject(self, arguments: RecallArguments, context: ToolContext) -> ApprovalSubject:
        """Nothing to judge: the model has seen all of it before."""
        what = " in ".join(part for part in (shorten(arguments.query, 80), arguments.seq) if part)
        return ApprovalSubject(kind="none", tool=self.name, summary=what)

    async def run(self, arguments: RecallArguments, context: ToolContext) -> ToolOutput:
        """Look off the loop, at the history as it is now."""
        name, slash, seq = arguments.seq.strip().rpartition("/")
        question = Question(
            query=arguments.query,
            regex=arguments.regex,
            span=Span.parse(seq) if seq.strip() else Span() if slash and not arguments.query.strip() else None,
            limit=arguments.limit,
        )
        history, tell = context.history, _teller(context)
        if arguments.scope == "project":
            return await _recall_project(question, name.strip(), context, branches=arguments.branches)
        if slash:
            folder = find_agent(context.session.directory, name.strip())
            if folder is None:
                raise ToolError(f"There is no sub-agent {shorten(name, 40)} of this session, or several begin so.")
            text = await run_stoppable(
                lambda stop: recall_agent(question, folder, stop, branches=arguments.branches), tell
            )
            return ToolOutput.of_text(clean_text(text))
        entries = history.everything() if arguments.branches else history.path()
        agents = agent_records(context.session.directory, branches=arguments.branches)
        text = await run_stoppable(lambda stop: recall(question, entries, context.outputs, stop, agents), tell)
        return ToolOutput.of_text(clean_text(text))


def _teller(context: ToolContext) -> Callable[[str], None]:
    """Return what shows how far a search is, as live output that writes over itself."""
    return lambda reached: context.emit(f"\rSearching, {reached}")


async def _recall_project(question: Question, name: str, context: ToolContext, *, branches: bool) -> ToolOutput:
    from tenuto.tool.search.project import recall_project  # needed by few sessions

    others = context.other_sessions
    if others is None:
        raise ToolError("The other sessions of this project are not at hand.")
    text = await run_stoppable(
        lambda stop: recall_project(question, name, others(), stop, branches=branches), _teller(context)
    )
    return ToolOutput.of_text(clean_text(text))
