"""Where settings come from: files and environment variables.

Read in this order, later wins: the defaults of `config/settings.py`, `$TENUTO_HOME/settings.toml`,
`.tenuto/settings.toml` of the project (as far as `config/trust.py` lets it), the user's profile that `TENUTO_PROFILE`
names (`--profile` sets it), environment variables. A broken file or a wrong value never stops the agent: that value
keeps its default and a problem line says what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from tenuto.config.project import RefusedFileError, find_upwards, project_root, read_text
from tenuto.config.settings import Settings
from tenuto.text.bounding import shorten

if TYPE_CHECKING:
    from tenuto.config.consent import Project, TrustItem

PROFILE = "TENUTO_PROFILE"
PROJECT_FILE = Path(".tenuto") / "settings.toml"
TOP_LEVEL_VARIABLES = {"TENUTO_MODEL": "model", "TENUTO_MODE": "mode", "TENUTO_MAX_OUTPUT_TOKENS": "max_output_tokens"}
"""The keys that are in no section."""


def home_directory(environ: Mapping[str, str]) -> Path:
    """Return `$TENUTO_HOME`, or `~/.tenuto`."""
    configured = environ.get("TENUTO_HOME", "")
    return Path(configured).expanduser() if configured else Path.home() / ".tenuto"


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """One place that settings come from: a file, or the environment. `values` are those that hold, as they stand there.

    `problems` has a line for each that does not; `text` is the file's. A profile stands `within` a table of it.
    """

    name: str
    values: dict[str, Any]
    problems: tuple[str, ...] = ()
    text: str = ""
    is_project: bool = False
    within: tuple[str, ...] = ()


class Made(msgspec.Struct, frozen=True):
    """A setting that somebody made. `line` counts from 1; `overruled`: a later source sets it too."""

    key: tuple[str, ...]
    value: object
    source: str
    line: int | None = None
    overruled: bool = False

    @property
    def place(self) -> str:
        """File and line, or the name of another source."""
        return f"{self.source}:{self.line}" if self.line else self.source


ENVIRONMENT = "environment"
GIVEN = "the given settings"


def load_settings(
    home: Path, project: Path | None, environ: Mapping[str, str], given: Mapping[str, Any] | None = None
) -> tuple[Settings, list[str]]:
    """Return the settings and a line for every problem found on the way. Never raises for bad content.

    `project` is the working directory, somewhere in the project. What is `given` wins over all of them.
    """
    sources = [*read_sources(home, project, environ), *([given_source(given)] if given else [])]
    return settings_of(sources), [problem for source in sources for problem in source.problems]


def settings_of(sources: Sequence[Source]) -> Settings:
    """Return what these sources make together, the later one wins."""
    merged: dict[str, Any] = {}
    for source in sources:
        _merge(merged, source.values)
    # Most people have set nothing: looking at the types of all settings, to convert some, would cost 2 ms.
    return msgspec.convert(merged, Settings, strict=False) if merged else Settings()


def made_settings(sources: Sequence[Source]) -> list[Made]:
    """Return each setting that is made, with its place, the weakest source first."""
    found: list[Made] = []
    held: set[tuple[str, ...]] = set()
    from tenuto.config.lines import find_lines  # it reads TOML, and few users have settings

    for source in reversed(sources):
        leaves = list(_leaves(source.values, ()))
        lines = find_lines(source.text) if leaves else {}
        found[:0] = [
            Made(key, value, source.name, lines.get((*source.within, *key)), key in held) for key, value in leaves
        ]
        held.update(key for key, _ in leaves)
    return found


def _leaves(values: Mapping[str, Any], before: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in values.items():
        if isinstance(value, dict) and (value or not before):  # of a section nothing may be left
            yield from _leaves(cast("dict[str, Any]", value), (*before, key))
        else:
            yield (*before, key), value


def read_sources(home: Path, project: Path | None, environ: Mapping[str, str]) -> list[Source]:
    """Return the places of settings that there are, the weakest first."""
    own = _read_file(home / "settings.toml")
    profile = _read_profile(own, environ.get(PROFILE, ""))
    sources = [own]
    if project is not None and (file := find_upwards(project, home, PROJECT_FILE)) is not None:
        mode = profile.values.get("mode", own.values.get("mode", Settings().mode))
        sources.append(_read_project_file(file, own.name, mode, (project, home)))
    if profile.values or profile.problems:
        sources.append(profile)
    problems: list[str] = []
    values = _accept(_from_environment(environ, problems), ENVIRONMENT, problems)
    return [*sources, Source(name=ENVIRONMENT, values=values, problems=tuple(problems))]


def given_source(values: Mapping[str, Any]) -> Source:
    """Return settings that a program gives as nested values, as the strongest source."""
    problems: list[str] = []
    accepted = _accept(dict(values), GIVEN, problems)
    return Source(name=GIVEN, values=accepted, problems=tuple(problems))


def _read_file(file: Path) -> Source:
    problems: list[str] = []
    text, values = _read_toml(file, (), problems)
    values = _accept(values, str(file), problems, text)
    return Source(name=str(file), values=values, problems=tuple(problems), text=text)


def _read_profile(own: Source, name: str) -> Source:
    """Return what the user's `own` file has under a profile's name; nothing for an empty one."""
    within = ("profiles", name)
    if not name:
        return Source(name=own.name, values={}, within=within)
    profiles = own.values.get("profiles", {})
    if name not in profiles:
        return Source(name=own.name, values={}, problems=(explain_profile(own.name, name, profiles),), within=within)
    return Source(name=own.name, values=profiles[name], text=own.text, within=within)


def explain_profile(file: str, name: str, profiles: Iterable[str]) -> str:
    """Return a line on a profile that there is not."""
    from tenuto.text.matching import did_you_mean

    near = did_you_mean(name, profiles) or (f"; there are {', '.join(profiles)}" if list(profiles) else "")
    return f"there is no profile “{shorten(name, 60)}” in {file}{near}"


def missing_profile(home: Path, name: str) -> str:
    """Return a line on a profile that the user's file does not have, empty where it has it."""
    own = _read_file(home / "settings.toml")
    profiles = own.values.get("profiles", {})
    return "" if name in profiles else explain_profile(own.name, name, profiles)


def _read_project_file(file: Path, own: str, mode: object, places: tuple[Path, Path]) -> Source:
    """Read a project's settings; they count as far as the user's `mode` and their trust let them.

    `own` is the user's file; `places` are the working directory and Tenuto's home.
    """
    problems: list[str] = []
    text, values = _read_toml(file, (project_root(file.parent.parent),), problems)
    values = _accept(values, str(file), problems, text)
    if values:
        from tenuto.config.trust import keep_allowed  # few projects have settings

        values, said = keep_allowed(values, mode, file, places)
        problems += [f"{file}: {line.format(own=own)}" for line in said]
    return Source(name=str(file), values=values, problems=tuple(problems), text=text, is_project=True)


def project_items(project: Project) -> list[TrustItem]:
    """Return the settings of a project that need the user's trust."""
    file = find_upwards(project.cwd, project.home, PROJECT_FILE)
    if file is None:
        return []
    from tenuto.config.trust import setting_items, sort_settings

    unheard: list[str] = []
    _, own = _read_toml(project.home / "settings.toml", (), unheard)
    _, values = _read_toml(file, (project_root(file.parent.parent),), unheard)
    values = _accept(values, str(file), unheard)
    found = sort_settings(values, own.get("mode", Settings().mode))
    return list(setting_items(found, file, project).values())


def _read_toml(path: Path, inside: Sequence[Path], problems: list[str]) -> tuple[str, dict[str, Any]]:
    """Return a file's text and its values; one of a project lies `inside` it."""
    text = ""
    try:
        text = read_text(path, inside)
        import tomllib  # 3 ms; most people have no settings file

        return text, tomllib.loads(text)
    except FileNotFoundError:
        return "", {}
    except (OSError, ValueError, RecursionError, RefusedFileError) as error:
        from tenuto.config.lines import describe_fault

        problems.append(f"{path} cannot be read and is ignored: {describe_fault(error, text)}")
        return "", {}


def _from_environment(environ: Mapping[str, str], problems: list[str]) -> dict[str, Any]:
    """`TENUTO_MODE=auto` sets `mode`, `TENUTO_COMPACTION__ENABLED=false` sets `compaction.enabled`."""
    values: dict[str, Any] = {}
    for name, value in environ.items():
        if name in TOP_LEVEL_VARIABLES:
            values[TOP_LEVEL_VARIABLES[name]] = value
        elif name.startswith("TENUTO_") and "__" in name:
            *sections, key = name.removeprefix("TENUTO_").lower().split("__")
            place = values
            for section in sections:
                inner = place.get(section)
                if not isinstance(inner, dict):
                    inner = place[section] = {}
                place = cast("dict[str, Any]", inner)
            place[key] = _list_or_text(value)
        elif name.startswith("TENUTO_") and name.removeprefix("TENUTO_").lower() in Settings.__struct_fields__:
            problems.append(f"environment: {name} is ignored: it names a section; its keys are {name}__KEY")
    return values


def _list_or_text(value: str) -> object:
    """Read `["a", "b"]` as TOML does; everything else is a text, and what does not fit is named later."""
    if not value.startswith("["):
        return value
    import tomllib

    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value


def _accept(values: dict[str, Any], source: str, problems: list[str], text: str = "") -> dict[str, Any]:
    """Return `values` without what does not fit, naming each in `problems`, with its line in the `text` of a file."""
    if not values:
        return values
    try:
        msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError:
        from tenuto.config.fitting import keep_fitting
        from tenuto.config.lines import find_lines

        lines = find_lines(text)

        def tell(path: tuple[str, ...], fault: str) -> None:
            place = f"{source}:{lines[path]}" if path in lines else source
            problems.append(f"{place}: {fault}")

        return keep_fitting(values, Settings, tell)
    return values


def _merge(target: dict[str, Any], values: dict[str, Any]) -> None:
    """Lay `values`, which stay as they are, over `target`, section by section."""
    for key, value in values.items():
        if isinstance(value, dict):
            present = target.get(key)
            section = cast("dict[str, Any]", present if isinstance(present, dict) else {})
            target[key] = section
            _merge(section, cast("dict[str, Any]", value))
        else:
            target[key] = value
