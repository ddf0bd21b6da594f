"""Skills in a session: the list that the model gets with the system prompt, loading one, and telling what is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tenuto.config.imports import as_attribute
from tenuto.config.skills import MAX_FILES, Skill, files_of
from tenuto.core.errors import UsageError
from tenuto.core.state.live import LiveSession, SessionServices
from tenuto.core.state.skill_notes import fitting_skills, room_for_skills
from tenuto.core.state.terms import lend, terms_of
from tenuto.protocol.entry import SkillEntry
from tenuto.text.estimate import estimate_text
from tenuto.text.matching import did_you_mean
from tenuto.text.writable import keep_within
from tenuto.tool.run.context import Loading, ToolError

LISTED_TOKENS = 100
"""Estimated tokens of one skill in the list."""
_LIST_SHARE = 20
"""Of the window, at most this part is spent on the list."""
HEAD = """\
# Skills
Instructions for kinds of work, written by the user or for this project. When a request fits one of these, load it \
with the skill tool before you begin, and follow it; what the user says holds above it."""
_FOLDER_VARIABLES = ("${CLAUDE_SKILL_DIR}", "${SKILL_DIR}")


def list_skills(skills: Sequence[Skill], window: int) -> tuple[str, list[str]]:
    """Return the list for the system prompt, empty without skills, and the names that had no room in it."""
    room = window // _LIST_SHARE
    lines: list[str] = []
    left_out: list[str] = []
    for skill in sorted(skills, key=lambda one: one.name):
        line = _listed(skill)
        tokens = estimate_text(line)
        if tokens <= room:
            lines.append(line)
            room -= tokens
        else:
            left_out.append(skill.name)
    return "\n".join([HEAD, *lines]) if lines else "", left_out


def _listed(skill: Skill) -> str:
    """Return one line of the list, shortened to what it may have."""
    description = " ".join(keep_within(skill.description, "harness-note").split())
    line = f"- {skill.name}: {description}"
    while estimate_text(line) > LISTED_TOKENS:
        description = description[: len(description) * 9 // 10 - 1].rstrip()
        line = f"- {skill.name}: {description}…"
    return line


def skills_part(services: SessionServices, window: int) -> str:
    """Return the list as it is now; the user is told what is wrong with skills, each thing once."""
    found = services.skills()
    for problem in found.lines():
        services.notify_once(problem, problem, "warning")
    text, left_out = list_skills(found.listed, window)
    if left_out:
        services.notify_once(
            "skills left out",
            f"{len(left_out)} of {len(found.listed)} skills have no room in the list for this model's window and are "
            f"not told to it; /NAME loads them all the same: {', '.join(left_out[:5])}",
            "warning",
        )
    return text


def skill_text(skill: Skill) -> str:
    """Return what the model is told of a loaded skill, word for word, with where its files are."""
    body = skill.body
    for variable in _FOLDER_VARIABLES:
        body = body.replace(variable, skill.folder)
    folder = as_attribute(skill.folder)
    files = files_of(skill)
    named = f": {', '.join(as_attribute(name) for name in files[:MAX_FILES])}" if files else ""
    more = f" and {len(files) - MAX_FILES:,} more" if files[MAX_FILES:] else ""
    return (
        f"The skill {skill.name} is loaded and holds until the work that it is for is done. Its folder is {folder}"
        f"{named}{more}. Relative paths in it are seen from that folder; read its files and run its scripts from "
        f'there.\n<skill name="{as_attribute(skill.name)}">\n{keep_within(body, "skill", "loaded-skills")}\n</skill>'
    )


def load_skill(live: LiveSession, skill: Skill) -> None:
    """Load a skill: from the next request on it stands in the view. Raises `UsageError` where it has no room."""
    entry = _entry_of(live, skill)
    if not _is_loaded(live, entry):
        live.session.append(entry)
        _tell_budget(live)


def unload_skill(live: LiveSession, name: str) -> bool:
    """Let a loaded skill hold no longer, and the next compaction leave it out; `False` where none of it is loaded."""
    loaded = next((entry for entry in live.session.state.skills if entry.name == name), None)
    if loaded is None:
        return False
    live.session.append(SkillEntry(name=name, unloads=loaded.seq))
    return True


def describe_loaded(live: LiveSession) -> str:
    """Return what loaded skills take of their room, and which have none; empty where none is loaded."""
    loaded, window = live.session.state.skills, live.budget().window
    if not loaded:
        return ""
    tokens = sum(estimate_text(entry.text) for entry in loaded)
    fitting = fitting_skills(loaded, window)
    left = [entry.name for entry in loaded if entry not in fitting]
    said = f"loaded skills have about {tokens:,} of {room_for_skills(window):,} tokens"
    return f"{said}; no room for {', '.join(left)}" if left else said


def _tell_budget(live: LiveSession) -> None:
    """Say it where a skill that was loaded leaves others without room."""
    fitting = fitting_skills(live.session.state.skills, live.budget().window)
    if len(fitting) < len(live.session.state.skills):
        said = describe_loaded(live)
        live.notify(f"{said[0].upper()}{said[1:]}: /skills unload NAME makes some", "warning", keep=True)


def _entry_of(live: LiveSession, skill: Skill) -> SkillEntry:
    """Return what is stored of a skill. Raises `UsageError` where it is larger than what the model can be told."""
    text = skill_text(skill)
    tokens, room = estimate_text(text), room_for_skills(live.budget().window)
    if tokens > room:
        raise UsageError(
            f"the skill {skill.name} has about {tokens:,} tokens and loaded skills may have {room:,} in this model's "
            f"window; read {skill.path} in parts instead"
        )
    return SkillEntry(name=skill.name, text=text, folder=skill.folder)


def _is_loaded(live: LiveSession, entry: SkillEntry) -> bool:
    present = fitting_skills(live.session.state.skills, live.budget().window)
    return any((one.name, one.text) == (entry.name, entry.text) for one in present)


def load_for_model(live: LiveSession, name: str) -> Loading:
    """Return what a call of the tool comes to. Raises `ToolError` where there is no such skill for the model."""
    skills = live.skills()
    skill = skills.find(name)
    if skill is None or skill.is_hidden:
        names = [one.name for one in skills.listed]
        hint = did_you_mean(name, names) or (f"; there are {', '.join(names)}" if names else "")
        raise ToolError(f"There is no skill {name}{hint}")
    try:
        entry = _entry_of(live, skill)
    except UsageError as error:
        raise ToolError(str(error)) from error
    if _is_loaded(live, entry):
        return Loading(f"The skill {skill.name} is loaded already; its text stands above.", _nothing)
    text = f"Loaded the skill {skill.name} from {skill.folder}; its text follows in a note."
    return Loading(text, partial(_load_in_turn, live, skill, entry))


def _load_in_turn(live: LiveSession, skill: Skill, entry: SkillEntry) -> None:
    """The model loads a skill: what it allows holds for the rest of the turn. A sub-agent's turn is not the user's."""
    live.session.append(entry)
    _tell_budget(live)
    terms = terms_of(live, skill) if live.kind is None else None
    if terms is not None:
        lend(live, terms)


def _nothing() -> None:
    """It is there already."""


def tell_skills(live: LiveSession) -> None:
    """Put into the history what the model has yet to be told of loaded skills."""
    for note in live.reminders.skills.due(live.session, live.budget().window):
        live.session.append(note)
