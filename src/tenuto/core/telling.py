"""What the next request has to carry beside the conversation: told once, again when it changes, and again when a
compaction has taken it out of the view.

It stands at the end of what is sent, as developer messages in the gap before a request (DESIGN section 3).
"""

from __future__ import annotations

from tenuto.core.live import LiveSession
from tenuto.core.pins import tell_pins
from tenuto.core.reminders import (
    FILES_KIND,
    JOBS_KIND,
    changed_files_message,
    due_messages,
    finished_jobs_message,
    last_told,
    names_in,
)
from tenuto.protocol.message import DeveloperMessage


def tell_at_prompt(live: LiveSession) -> None:
    """Tell what has changed before a new prompt goes into the history; what was told of jobs before is old by now."""
    live.told_jobs.clear()
    _tell_surroundings(live)
    changed = live.changed_files.find(live.session.state.files)
    if changed:
        live.session.append(changed_files_message(changed))


def tell_before_request(live: LiveSession) -> None:
    """Tell what the request that is made next has to carry and does not: each one, also when a step is repeated."""
    ended = live.tool_context.jobs.take_finished()
    if ended:
        live.told_jobs.extend(ended)
        live.session.append(finished_jobs_message(ended))
    tell_pins(live)
    _tell_surroundings(live)
    compaction = live.session.reading.compaction
    if compaction is not live.told_after:
        live.told_after = compaction
        _tell_again(live)


def _tell_surroundings(live: LiveSession) -> None:
    told = last_told(live.session.get_llm_history())
    for message in due_messages(told, live.mode, live.session.cwd, live.clock()):
        live.session.append(message)


def _tell_again(live: LiveSession) -> None:
    """Tell of files and jobs what was told before, still holds, and is not in the view any more."""
    notes = [message for message in live.session.get_llm_history() if isinstance(message, DeveloperMessage)]
    files = names_in(notes, FILES_KIND)
    changed = [path for path in live.changed_files.told(live.session.state.files) if path not in files]
    if changed:
        live.session.append(changed_files_message(changed))
    jobs = "\n".join(message.text for message in notes if message.kind == JOBS_KIND)
    ended = [job for job in live.told_jobs if f"Background job {job.id} " not in jobs]
    if ended:
        live.session.append(finished_jobs_message(ended))
