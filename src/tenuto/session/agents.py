"""Sub-agents' sessions: each lies in a folder of its own below `agents/` of the session that it works for.

They are sessions like all others, so they can be opened by their id. The one above keeps what they answered.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from tenuto.private_files import make_directory
from tenuto.protocol.message import AgentView, AssistantMessage, HistoryEvent, ToolResultMessage
from tenuto.protocol.part import TextPart, ToolCallPart, text_of
from tenuto.protocol.usage import Usage
from tenuto.session.errors import SessionError
from tenuto.session.library.meta import load_session
from tenuto.session.log.lock import LOCK_NAME
from tenuto.session.log.log import LOG_NAME
from tenuto.session.store import AGENTS, BLOBS, OUTPUTS, PROCESSES, RUNNING
from tenuto.session.view.pairing import interrupted_result
from tenuto.session.view.tree import newest_of_kind, of_kind
from tenuto.text.bounding import bound_middle
from tenuto.text.figures import plural

SHORT_ID = 8
"""Characters that name a sub-agent's session to the model and to the user."""
_SAID_CHARS = 8_000
"""Characters of what a sub-agent had said that an interrupted result has."""


class Said(msgspec.Struct, frozen=True):
    """What a sub-agent had come to when it ended: its last words, its calls of the model, and what it used."""

    text: str = ""
    steps: int = 0
    usage: Usage = Usage()


def last_words(path: Sequence[HistoryEvent]) -> str:
    """Return the newest answer that says something, with what of it came before an output limit cut it off."""
    texts: list[str] = []
    for answer in newest_of_kind(path, AssistantMessage):
        if texts and not answer.is_cut_off:
            break
        if text := text_of(answer.parts):
            texts.append(text)
    return "".join(reversed(texts)).strip()


def read_said(directory: Path) -> Said | None:
    """Return what a sub-agent had come to, from its log; `None` where that cannot be read."""
    try:
        loaded = load_session(directory)
        path = loaded.tree.path
        steps = sum(1 for _ in of_kind(path, AssistantMessage))
        return Said(last_words(path), steps, loaded.state.usage + loaded.held_usage)
    except (OSError, SessionError):
        return None


def bound_said(text: str) -> str:
    """Return what was said, without its middle where it is long."""
    bounded = bound_middle(text, _SAID_CHARS)
    return text if bounded is None else bounded.joined("[… the middle is left out here …]")


def interrupted_agent(call: ToolCallPart, session: str, agent: str, said: Said) -> ToolResultMessage:
    """Return the result of a call whose sub-agent ended with the process, with what it had said."""
    text = f"interrupted with the program after {plural(said.steps, 'step')}; may have taken effect; check."
    if said.text:
        text += f" What the sub-agent had said:\n{bound_said(said.text)}"
    usage = said.usage
    return msgspec.structs.replace(
        interrupted_result(call),
        parts=(TextPart(text=f"{text}\n{reference(session)}"),),
        ui=(
            AgentView(
                session=session,
                agent=agent,
                outcome="unknown",
                steps=said.steps,
                tokens=usage.total,
                cost=usage.cost,
            ),
        ),
    )


def agent_purpose(agent: str) -> str:
    """Return what a `usage` entry says of what a sub-agent used."""
    return f"sub-agent {agent}"


def reference(session: str) -> str:
    """Return the line by which the model finds a sub-agent's work again."""
    short = session[:SHORT_ID]
    return f'[Sub-agent {short}: recall with seq "{short}/" shows its work; recall searches it too.]'


def named_agents(path: Sequence[HistoryEvent]) -> set[str]:
    """Return the ids of the sub-agents whose results are on a path."""
    results = of_kind(path, ToolResultMessage)
    return {view.session for result in results for view in result.ui if isinstance(view, AgentView)}


def copy_agents(source: Path, target: Path, names: Iterable[str]) -> frozenset[str]:
    """Give a copy of a session the sub-agents that it names, with theirs; return which there were. Raises `OSError`.

    A log is copied, because either may go on; outputs and images are second names of the same files where possible.
    """
    import shutil

    copied = frozenset(name for name in names if (source / AGENTS / name / LOG_NAME).is_file())
    for name in copied:
        make_directory(target / AGENTS)
        shutil.copytree(source / AGENTS / name, target / AGENTS / name, copy_function=_copy, ignore=_left_behind)
    return copied


def remove_agents(directory: Path, copied: Iterable[str]) -> None:
    """Remove what `copy_agents` has made, from a copy in which nothing was said. Raises `OSError`."""
    import shutil

    for name in copied:
        shutil.rmtree(directory / AGENTS / name)
    if (directory / AGENTS).is_dir():
        (directory / AGENTS).rmdir()


def _copy(source: str, target: str) -> str:
    import shutil

    place = Path(source)
    if place.parent.name in {OUTPUTS, BLOBS}:
        with contextlib.suppress(OSError):
            Path(target).hardlink_to(place)
            return target
    return shutil.copy2(source, target)


def _left_behind(_folder: str, names: list[str]) -> set[str]:
    """Return what belongs to a running process: it is not copied."""
    return {LOCK_NAME, PROCESSES, RUNNING}.intersection(names)
