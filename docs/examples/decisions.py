"""What was decided outlives every compaction: the session's model lists it, and the list stays word for word."""

import tenuto as t
from tenuto.extension import AskError, Extension

QUESTION = "List the decisions in this conversation, one a line, with the reason. Only the list.\n\n"


def setup(tenuto: Extension) -> None:
    found: list[str] = []

    @tenuto.on("session_before_compact")
    async def ask(event):
        covered = [*event.preparation.messages_to_summarize, *event.preparation.turn_prefix_messages]
        if not covered:
            return None
        try:
            found[:] = [await tenuto.ask_model(QUESTION + t.serialize_conversation(covered), max_tokens=800)]
        except AskError as error:
            tenuto.notify(f"no list of decisions: {error}", "warning")
        return {"add_focus": "Decisions are listed elsewhere: leave them out."}

    @tenuto.on("session_compact")
    def keep(event):
        if found:
            tenuto.add_entry(f"Decisions so far:\n{found.pop()}", keep=True)

    @tenuto.command("decided")
    def compact_now(argument):
        """Compact at the end of the next step, with what was decided in mind."""
        tenuto.request_compaction(f"what was decided {argument}".strip())
        return "A compaction is asked for."
