"""Skills: folders with a `SKILL.md` (agentskills.io), what is wrong with them, and which one counts for a name.

The format wants `name` and `description`; a folder's name stands in for a missing name. What is more in the front
matter (`license`, `compatibility`, `metadata`) is read and shown. `allowed-tools`, `model` and `effort` are asked for a
turn (`core/state/terms.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path

import msgspec

from tenuto.config.front_matter import Fault, FrontMatter, read_front_matter
from tenuto.config.imports import clean_instructions
from tenuto.config.places import Layout, Origin, Place, Wanted, Where, find_files, find_named, stamp_of
from tenuto.config.programs import ProjectTrust, describe_wishes, runs_something
from tenuto.config.project import RefusedFileError, read_text
from tenuto.text.late import late

FILE = "SKILL.md"
LAYOUT = Layout(
    project=(".tenuto/skills", ".agents/skills", ".claude/skills"),
    own="skills",
    user=(".agents/skills", ".claude/skills"),
)
MAX_NAME, MAX_DESCRIPTION, MAX_COMPATIBILITY = 64, 1_024, 500
"""Characters, by the format."""
MAX_SKILLS = 200
MAX_BYTES = 200_000
"""Bytes of a `SKILL.md`."""
MAX_FILES = 40
"""So many files of a skill's folder are named to the model."""
DEPTH = 3
"""Folders of skills may stand in folders; so deep."""
_FILES_LISTED = 500
_NAME = late(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_USABLE = late(r"[\w][\w.-]*")


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """One skill. `is_hidden`: the user alone loads it; `is_background`: the model alone does.

    `metadata` are the other keys of its front matter as they are written. `allowed_tools`, `model` and `effort` are
    asked for the turn; `is_withheld`: they do not count, because the user does not trust a project's skill.
    """

    name: str
    description: str
    path: str
    folder: str
    origin: Origin
    body: str = ""
    argument_hint: str = ""
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    model: str = ""
    effort: str = ""
    is_withheld: bool = False
    metadata: dict[str, str] = {}
    is_hidden: bool = False
    is_background: bool = False
    faults: tuple[Fault, ...] = ()

    @property
    def wishes(self) -> tuple[str, ...]:
        """What it asks for its turn, in words."""
        return describe_wishes(self.allowed_tools, self.model, self.effort)


class SkillFile(msgspec.Struct, frozen=True, kw_only=True):
    """One `SKILL.md` that is there: the skill, `None` where it cannot be used; `shadowed_by` the one that counts.

    `waits`: it is a project's, has something that can be run, and the user does not trust it.
    """

    path: str
    origin: Origin
    skill: Skill | None = None
    faults: tuple[Fault, ...] = ()
    shadowed_by: str = ""
    waits: bool = False


class Skills(msgspec.Struct, frozen=True):
    """What there is: every file, and a line on each place that cannot be looked at as a whole."""

    files: tuple[SkillFile, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def usable(self) -> tuple[Skill, ...]:
        """The skills that count, one a name."""
        files = (file for file in self.files if not file.waits and not file.shadowed_by)
        return tuple(file.skill for file in files if file.skill is not None)

    @property
    def waiting(self) -> tuple[Skill, ...]:
        """Those of the project that wait for the user's trust."""
        return tuple(file.skill for file in self.files if file.skill is not None and file.waits)

    @property
    def listed(self) -> tuple[Skill, ...]:
        """Those that the model is told of."""
        return tuple(skill for skill in self.usable if not skill.is_hidden)

    def find(self, name: str) -> Skill | None:
        """Return the skill of a name; that of a plugin without the plugin's name, too, where there is one of it."""
        return find_named(self.usable, name)

    def lines(self) -> tuple[str, ...]:
        """Return a line for each file that cannot be used, and for each place."""
        bad = (file for file in self.files if file.skill is None)
        return (*self.problems, *(f"{file.path} is no skill that can be used: {_first(file)}" for file in bad))


def _first(file: SkillFile) -> str:
    fault = next((fault for fault in file.faults if fault.fatal), file.faults[0])
    return f"line {fault.line}: {fault.text}"


_WANTED = Wanted(
    kind="skills", most=MAX_SKILLS, counts=lambda path: path.name == FILE, depth=lambda _place: DEPTH, stop=FILE
)


def find_skills(where: Where) -> Skills:
    """Return all skills that are there. Files that did not change are not read again."""
    files: list[SkillFile] = []
    problems: list[str] = []
    counted: dict[str, str] = {}
    trust = ProjectTrust(where)
    for path, place in find_files(where, LAYOUT, _WANTED, problems):
        file = _read_skill(path, place, stamp_of(path))
        skill = file.skill
        if skill is not None and file.origin == "project" and not trust.covers_skill(skill.name, path, skill.wishes):
            skill = msgspec.structs.replace(skill, is_withheld=True)
            file = msgspec.structs.replace(file, skill=skill, waits=runs_something(path))
        if skill is not None and not file.waits:
            by = counted.setdefault(skill.name, file.path)
            file = msgspec.structs.replace(file, shadowed_by=by if by != file.path else "")
        files.append(file)
    return Skills(tuple(files), tuple(problems))


@lru_cache(maxsize=512)
def _read_skill(path: Path, place: Place, stamp: tuple[int, int, int]) -> SkillFile:
    """Return what stands in a file. `stamp` is another one when the file has changed."""
    del stamp
    scope = place.scope
    try:
        text = read_text(path, scope.inside, scope.apart, limit=MAX_BYTES)
    except (FileNotFoundError, RefusedFileError) as refused:
        return SkillFile(path=str(path), origin=place.origin, faults=(Fault(1, str(refused), fatal=True),))
    file = check_skill(path, place.origin, place.expand(text))
    if place.plugin is None or file.skill is None:
        return file
    return msgspec.structs.replace(file, skill=msgspec.structs.replace(file.skill, name=place.named(file.skill.name)))


def check_skill(path: Path, origin: Origin, text: str) -> SkillFile:
    """Return what a `SKILL.md` with this text is, with everything that is wrong with it by the format."""
    head = read_front_matter(text)
    faults = [*head.faults, *_faults(head, path.parent.name)]
    name = head.text("name")
    name = name if _USABLE.fullmatch(name) and len(name) <= MAX_NAME else path.parent.name
    if not _USABLE.fullmatch(name):
        faults.append(Fault(head.line("name"), f"“{name}” cannot be typed as a name", fatal=True))
    body = clean_instructions(head.body).strip()
    description = head.text("description") or next(
        (line.lstrip("# ") for line in body.splitlines() if line.strip()), ""
    )
    if not body:
        faults.append(Fault(1, "there is nothing behind the front matter", fatal=True))
    faults.sort(key=lambda fault: fault.line)
    if any(fault.fatal for fault in faults):
        return SkillFile(path=str(path), origin=origin, faults=tuple(faults))
    known = {"name", "description", "license", "compatibility", "allowed-tools", "model", "effort", "metadata"}
    metadata = head.values.get("metadata", {})
    skill = Skill(
        name=name,
        description=clean_instructions(description),
        path=str(path),
        folder=str(path.parent),
        origin=origin,
        body=body,
        argument_hint=head.text("argument-hint"),
        license=head.text("license"),
        compatibility=head.text("compatibility"),
        allowed_tools=head.words("allowed-tools"),
        model=head.text("model"),
        effort=head.text("effort").lower(),
        metadata={
            key: value
            for key, value in {**head.values, **(metadata if isinstance(metadata, dict) else {})}.items()
            if isinstance(value, str) and key not in known
        },
        is_hidden=head.is_set("disable-model-invocation"),
        is_background=head.text("user-invocable").lower() in ("false", "no", "off"),
        faults=tuple(faults),
    )
    return SkillFile(path=str(path), origin=origin, skill=skill, faults=tuple(faults))


def _faults(head: FrontMatter, folder: str) -> Iterator[Fault]:
    """Yield what the format does not allow."""
    if not head.is_there:
        yield Fault(1, "there is no front matter: it begins with a line --- and has name and description", fatal=True)
        return
    if any(fault.fatal for fault in head.faults):
        return
    name, description = head.text("name"), head.text("description")
    if not name:
        yield Fault(head.line("name"), f"name is missing; the folder's, {folder}, is taken")
    elif len(name) > MAX_NAME:
        yield Fault(head.line("name"), f"name has {len(name)} characters; at most {MAX_NAME} are allowed")
    elif not _NAME.fullmatch(name):
        yield Fault(head.line("name"), f"name “{name}” is not of small letters, digits and single hyphens")
    elif name != folder:
        yield Fault(head.line("name"), f"name “{name}” is not that of its folder, {folder}")
    if not description:
        yield Fault(head.line("description"), "description is missing; the first line of the text is taken")
    elif len(description) > MAX_DESCRIPTION:
        text = f"description has {len(description):,} characters; at most {MAX_DESCRIPTION:,} are allowed"
        yield Fault(head.line("description"), text)
    if len(head.text("compatibility")) > MAX_COMPATIBILITY:
        text = f"compatibility has over {MAX_COMPATIBILITY} characters"
        yield Fault(head.line("compatibility"), text)
    for key in ("name", "description", "license", "compatibility"):
        if not isinstance(head.values.get(key, ""), str):
            yield Fault(head.line(key), f"{key} takes a text")
    if not isinstance(head.values.get("metadata", {}), dict):
        yield Fault(head.line("metadata"), "metadata takes a table of names and texts")


def files_of(skill: Skill) -> list[str]:
    """Return the other files of a skill's folder, seen from there, scripts first."""
    found: list[str] = []
    for place, folders, names in islice(os.walk(skill.folder), _FILES_LISTED):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")) and name != "node_modules")
        found += [os.path.relpath(os.path.join(place, name), skill.folder) for name in sorted(names)]  # noqa: PTH118
        if len(found) > _FILES_LISTED:
            break
    others = [name for name in found if name != FILE and not Path(name).name.startswith(".")]
    return sorted(others, key=lambda name: (not name.startswith("scripts/"), name))
