"""The one way in which the program itself runs git: looking at a work tree, without running anything of it (R-086).

A repository's configuration can name programs for almost every command, from includes, other directories and
submodules as well. So git itself is asked for the configuration that holds (which runs nothing), each key of the
repository has to be one that is known to run nothing, and what a user's own configuration would run is switched off.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

CONFIG_SECONDS = 5.0
_OF_THE_REPOSITORY = frozenset({"local", "worktree"})
FIXED = (
    *("--no-pager", "--no-optional-locks"),
    *("-c", "safe.bareRepository=explicit", "-c", "protocol.allow=never"),
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat", "-c", "core.askPass="),
    *("-c", "core.alternateRefsCommand=", "-c", "diff.external=", "-c", "submodule.recurse=false"),
    *("-c", "status.submoduleSummary=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"),
)
"""Options of every command."""
_MAY_BE_TRUSTED = frozenset({"core.fsmonitor", "diff.external", "core.alternaterefscommand"})
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
_KEPT_VARIABLES = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
"""Of git's variables only those that say where the user's own configuration is."""
_READ_AT_ONCE = ("HEAD", "config", "config.worktree", "commondir", "index")
_HARMLESS_SECTIONS = frozenset(
    {
        *("advice", "author", "branch", "color", "commit", "committer", "fetch", "gc", "gui", "init", "lfs"),
        *("maintenance", "pull", "push", "rebase", "rerere", "tag", "user"),
    }
)
"""Nothing in these is run, or read as a path, by a command that only looks."""
_HARMLESS_KEYS = frozenset(
    {
        *(
            f"core.{key}"
            for key in (
                *("abbrev", "autocrlf", "bare", "bigfilethreshold", "checkstat", "commentchar", "commitgraph"),
                *("compression", "deltabasecachelimit", "eol", "filemode", "fscache", "hidedotfiles", "ignorecase"),
                *(
                    "ignorestat",
                    "logallrefupdates",
                    "longpaths",
                    "loosecompression",
                    "multipackindex",
                    "packedgitlimit",
                ),
                *("packedgitwindowsize", "precomposeunicode", "preloadindex", "protecthfs", "protectntfs", "quotepath"),
                *("repositoryformatversion", "safecrlf", "sharedrepository", "sparsecheckout", "sparsecheckoutcone"),
                *("splitindex", "symlinks", "trustctime", "untrackedcache", "whitespace", "worktree"),
            )
        ),
        *(
            f"extensions.{key}"
            for key in ("compatobjectformat", "noop", "objectformat", "preciousobjects", "refstorage", "worktreeconfig")
        ),
        *(
            f"diff.{key}"
            for key in (
                *("algorithm", "colormoved", "colormovedws", "context", "indentheuristic", "interhunkcontext"),
                *("mnemonicprefix", "noprefix", "renamelimit", "renames", "statgraphwidth", "suppressblankempty"),
                "wserrorhighlight",
            )
        ),
        *("http.postbuffer", "index.threads", "index.version", "feature.manyfiles", "pack.threads"),
        *("merge.conflictstyle", "merge.ff", "merge.renamelimit", "merge.renames", "log.date"),
        *(f"remote.*.{key}" for key in ("fetch", "gh-resolved", "mirror", "prune", "push", "pushurl", "tagopt", "url")),
        *("remote.pushdefault", "submodule.active", "submodule.*.active", "submodule.*.url"),
        *(
            f"status.{key}"
            for key in (
                "aheadbehind",
                "branch",
                "relativepaths",
                "renamelimit",
                "renames",
                "short",
                "showuntrackedfiles",
            )
        ),
    }
)
"""`core.worktree` is overruled by the one that is given; a remote is never asked (`GIT_ALLOW_PROTOCOL`)."""


class TrustedSettings:
    """The settings of repositories that the user trusts to run something, by work tree and `setting_digest`.

    Whoever reads the user's decisions says so here, before git is asked for anything; by itself nothing is trusted.
    """

    def __init__(self) -> None:
        self._digests: dict[str, frozenset[str]] = {}

    def learn(self, root: Path, digests: Iterable[str]) -> None:
        """Trust these settings of the work tree at `root`, and no others any more."""
        self._digests[os.path.realpath(root)] = frozenset(digests)

    def covers(self, root: Path, key: str, value: str) -> bool:
        """Say whether the user trusts a setting of the work tree at `root`, with this value."""
        return setting_digest(key, value) in self._digests.get(os.path.realpath(root), ())


TRUSTED = TrustedSettings()


def setting_digest(key: str, value: str) -> str:
    """Return what tells a setting of git, with its value, from every other."""
    import hashlib  # 2 ms; few repositories have such a setting

    return hashlib.sha256(f"{key}\0{value}".encode("utf-8", "surrogatepass")).hexdigest()


class GitRefusedError(Exception):
    """Git is not run; the message says why."""


class GitFailedError(Exception):
    """Git could not be run, or took too long; the message says how."""


class Git:
    """Git for one work tree, whose configuration has been looked at. `root` is its top."""

    def __init__(self, root: Path, directory: Path, environ: Mapping[str, str]) -> None:
        self.root = root
        self._environ = clean_environment(environ)
        self._program = find_program(environ, root)
        self._options = [*FIXED, f"--git-dir={directory}", f"--work-tree={root}"]

    def look_at_configuration(self, seconds: float = CONFIG_SECONDS) -> None:
        """Raises `GitRefusedError` where git could run something of the repository's, `GitFailedError`."""
        entries = self.list_settings(seconds)
        trusted: set[str] = set()
        for key, value in _risky(entries):
            if not TRUSTED.covers(self.root, key, value):
                raise GitRefusedError(f"the repository's git configuration sets {key}")
            trusted.add(key)
        if not _is_ours(self.root) and not _is_declared_safe(self.root, entries):
            raise GitRefusedError("the repository belongs to another user")
        self._options = [*_not_overruling(self._options, trusted), *without_filters(entries, trusted)]

    def list_settings(self, seconds: float = CONFIG_SECONDS) -> list[tuple[str, str, str]]:
        """Return scope, key and value of each setting that holds. Raises `GitFailedError`."""
        ran = self.run(self.root, "config", "--list", "-z", "--show-scope", "--includes", seconds=seconds)
        if ran.returncode != 0:
            raise GitFailedError("git cannot read the repository's configuration")
        return list(read_entries(ran.stdout))

    def run(self, cwd: Path, *words: str, seconds: float) -> subprocess.CompletedProcess[bytes]:
        """Run git with these words in a directory of the work tree. Raises `GitFailedError`."""
        try:
            return subprocess.run(
                [self._program, *self._options, *words],
                cwd=cwd,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise GitFailedError(f"git took more than {seconds:g} s") from None
        except (OSError, ValueError) as error:
            raise GitFailedError(f"git could not be run: {error}") from error


def find_program(environ: Mapping[str, str], root: Path) -> str:
    """Return the first git of the PATH that is not the work tree's own (S16)."""
    inside = f"{os.path.realpath(root)}{os.sep}"
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        program = os.path.join(folder, "git")  # noqa: PTH118 - asked for at every look
        is_own = not os.path.isabs(folder) or f"{os.path.realpath(folder)}{os.sep}".startswith(inside)  # noqa: PTH117
        if not is_own and not os.path.realpath(program).startswith(inside) and os.access(program, os.X_OK):
            return program
    return os.path.join(os.sep, "usr", "bin", "git")  # noqa: PTH118 - there is none; running it says so


def git_version(environ: Mapping[str, str], seconds: float = CONFIG_SECONDS) -> str:
    """Return which git there is, as `2.39.5`; empty where there is none. It looks at no repository for that."""
    try:
        ran = subprocess.run(
            ["git", "--version"],
            cwd="/",
            env=clean_environment(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return ""
    return ran.stdout.decode("utf-8", "replace").strip().removeprefix("git version ") if ran.returncode == 0 else ""


def open_git(cwd: Path, environ: Mapping[str, str] | None = None, *, seconds: float = CONFIG_SECONDS) -> Git | None:
    """Return git for the work tree that `cwd` lies in, `None` where it lies in none; takes at most `seconds`.

    Only a `.git` counts: files that look like a bare repository are files. Raises `GitRefusedError` and
    `GitFailedError`.
    """
    git = _find_git(cwd, os.environ if environ is None else environ)
    if git is not None:
        git.look_at_configuration(seconds)
    return git


def risky_settings(cwd: Path, environ: Mapping[str, str]) -> tuple[Path, list[tuple[str, str]]] | None:
    """Return the work tree that `cwd` lies in, and the settings for whose sake git is not run there; `None`: no tree.

    Runs nothing of the repository's. Raises `GitRefusedError` and `GitFailedError`.
    """
    git = _find_git(cwd, environ)
    return (git.root, list(dict.fromkeys(_risky(git.list_settings())))) if git is not None else None


def _find_git(cwd: Path, environ: Mapping[str, str]) -> Git | None:
    root = next((place for place in (cwd, *cwd.parents) if os.path.lexists(place / ".git")), None)
    if root is None:
        return None
    directory = root / ".git"
    if stat.S_IFMT(_mode(directory)) not in (stat.S_IFDIR, stat.S_IFREG):
        raise GitRefusedError(f"{directory} is no directory")
    for name in _READ_AT_ONCE:
        if stat.S_IFMT(_mode(directory / name)) not in (stat.S_IFREG, 0):
            raise GitRefusedError(f"{directory / name} is not a regular file")
    return Git(root, directory, environ)


def _risky(entries: Iterable[tuple[str, str, str]]) -> Iterator[tuple[str, str]]:
    """Yield key and value of each setting of the repository's that could run something."""
    for scope, key, value in entries:
        if scope in _OF_THE_REPOSITORY and not is_harmless(key):
            yield key, value


def is_harmless(key: str) -> bool:
    """Whether a key of a repository's configuration makes nothing run that only looks at it."""
    section, _, rest = key.partition(".")
    subsection, _, name = rest.rpartition(".")
    form = f"{section}.*.{name}" if subsection else f"{section}.{name}"
    return section in _HARMLESS_SECTIONS or form in _HARMLESS_KEYS


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except OSError:
        return 0


def clean_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return an environment for git in which nothing says what to run or where to look."""
    kept = {
        name: value
        for name, value in environ.items()
        if name in _KEPT_VARIABLES or not name.startswith(("GIT_", "SSH_ASKPASS", "LC_"))
    }
    return {**kept, **_ENVIRONMENT}


def read_entries(listed: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield scope, key and value of each setting."""
    fields = listed.decode("utf-8", "replace").split("\0")
    for scope, item in zip(fields[::2], fields[1::2], strict=False):
        key, _, value = item.partition("\n")
        yield scope, key, value


def _not_overruling(options: Sequence[str], trusted: Collection[str]) -> list[str]:
    """Return the options without those that switch off what the user trusts; hooks and protocols stay off."""
    kept: list[str] = []
    for option in options:
        key = option.partition("=")[0].lower()
        if kept[-1:] == ["-c"] and key in trusted and key in _MAY_BE_TRUSTED:
            kept.pop()
        else:
            kept.append(option)
    return kept


def without_filters(entries: Iterable[tuple[str, str, str]], trusted: Collection[str]) -> list[str]:
    """Return the options that switch off filters: all but those of the repository that are trusted, every part."""
    keys = [key for _, key, _ in entries if key.startswith("filter.")]
    wanted = {key.rpartition(".")[0] for key in keys if key in trusted}
    names = {key.rpartition(".")[0] for key in keys} - wanted
    if strange := next((name for name in names if "=" in name), ""):
        raise GitRefusedError(f"your git configuration has a filter with the name {strange}")
    options: list[str] = []
    for name in sorted(names):
        for setting in ("clean=", "smudge=", "process=", "required=false"):
            options += ["-c", f"{name}.{setting}"]
    return options


def _is_ours(root: Path) -> bool:
    own = getattr(os, "geteuid", None)
    try:
        return own is None or all(place.lstat().st_uid == own() for place in (root, root / ".git"))
    except OSError:
        return False


def _is_declared_safe(root: Path, entries: Sequence[tuple[str, str, str]]) -> bool:
    """Whether the user's own `safe.directory` names the work tree; an empty one takes back those before it."""
    safe = False
    for scope, key, value in entries:
        if scope in ("system", "global") and key == "safe.directory":
            place = value.removesuffix("/*")
            inside = value.endswith("/*") and str(root).startswith(f"{place}/")
            safe = bool(value) and (safe or inside or value in ("*", str(root)))
    return safe


_LONGEST_CONFIGURATION = 200_000
_SECTION = re.compile(r'\s*\[([A-Za-z0-9-]+)(?:[ \t]+"([^"\\\n]*)")?\]\s*')
_SETTING = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*?))?\s*")
_NOTE = re.compile(r"\s*(?:[#;].*)?")
_HOOK_OF_READERS = "post-index-change"
_OWN_FILES = ("HEAD", "index", "config.worktree")
_COMMON_FILES = ("config", "packed-refs")
_COMMON_DIRECTORIES = ("objects", "refs", "hooks", "info", "logs")
_GITLINK = b"\x00\x00\xe0\x00"
"""The mode of a gitlink as it stands in an index. The same bytes may stand there by accident."""
_MOST_SUBMODULES = 50
_MOST_ENTRIES = 200_000
_PLACING_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


def is_plainly_harmless(root: Path) -> bool:
    """Whether the repository's own files say that nothing of its configuration runs; git is not asked for that."""
    try:
        repository = _Repository(root)
        texts = (_small_text(repository.common / "config"), _small_text(repository.own / "config.worktree"))
        return not repository.problem and all(is_harmless(key) for text in texts for key, _ in _settings(text))
    except (OSError, ValueError):
        return False


def reading_concern(cwd: Path, environ: Mapping[str, str], *, looks_at_files: bool) -> str:
    """Return why a git command that reads, started in `cwd` by a shell, could run a program or read elsewhere.

    Empty where it could not. Told from the files alone, as the shell's git takes none of our options; what is not
    plain is a reason. `looks_at_files` says that the command compares the work tree, and so enters submodules.
    """
    if any(environ.get(name) for name in _PLACING_VARIABLES):
        return "variables say where git works"
    for place in (cwd, *cwd.parents):
        if os.path.lexists(place / ".git"):
            try:
                return _Repository(place).concern(looks_at_files=looks_at_files)
            except (OSError, ValueError) as error:
                return f"the git repository cannot be looked at ({error})"
        if all(os.path.lexists(place / name) for name in ("HEAD", "objects", "refs")):
            return f"{place} looks like a git repository and would be taken for one"
    return ""


class _Repository:
    """The files of a repository. `own` is the directory of this work tree, `common` the one that all of them share."""

    def __init__(self, root: Path, modules: Path | None = None) -> None:
        """Take the repository at `root`; of a submodule, `modules` is where those of its work tree lie."""
        self.root = root
        self.own = self.common = root / ".git"
        self.problem = ""
        self._may_place_files = False
        kind = stat.S_IFMT(self.own.lstat().st_mode)
        if kind == stat.S_IFREG and modules is not None:
            self._follow_into(modules)
        elif kind == stat.S_IFREG:
            self._follow()
        elif kind != stat.S_IFDIR or os.path.lexists(self.own / "commondir"):
            self.problem = "git takes its configuration from elsewhere here"

    def _follow(self) -> None:
        """A work tree of its own, which both sides have to name: made by `git worktree add`."""
        link = self.root / ".git"
        match = re.fullmatch(r"gitdir: (/[^\n]+)\n?", _small_text(link))
        own = Path(match[1]) if match else None
        if own is None or own.parent.name != "worktrees" or os.path.realpath(own) != str(own):
            self.problem = "git takes its configuration from elsewhere here"
            return
        back, common = _small_text(own / "gitdir").rstrip("\n"), _small_text(own / "commondir").rstrip("\n")
        self.own, self.common = own, own.parent.parent
        if os.path.realpath(back) != os.path.realpath(link) or common != "../..":
            self.problem = "git takes its configuration from elsewhere here"

    def _follow_into(self, modules: Path) -> None:
        """A submodule, whose own files lie among those of the work tree around it, and name it as their work tree."""
        match = re.fullmatch(r"gitdir: ([^\n]+)\n?", _small_text(self.root / ".git"))
        own = Path(os.path.normpath(self.root / match[1])) if match else modules
        inside = own != modules and own.is_relative_to(modules)
        if not inside or os.path.realpath(own) != str(own) or os.path.lexists(own / "commondir"):
            self.problem = "git takes the configuration from elsewhere"
            return
        self.own = self.common = own
        self._may_place_files = True

    def concern(self, *, looks_at_files: bool, depth: int = 0) -> str:
        if self.problem:
            return self.problem
        files = [*(self.own / name for name in _OWN_FILES), *(self.common / name for name in _COMMON_FILES)]
        for path, wanted in [
            *((file, stat.S_IFREG) for file in files),
            *((self.common / name, stat.S_IFDIR) for name in _COMMON_DIRECTORIES),
        ]:
            if _kind(path) not in (wanted, 0):
                return f"{path} is a link, or not what git expects there"
        hooks = self.common / "hooks"
        for name in ("config", "config.worktree"):
            for key, value in _settings(_small_text((self.common if name == "config" else self.own) / name)):
                if key == "core.hookspath":
                    hooks = self.root / Path(value.strip('"')).expanduser()
                elif key == "core.worktree" and self._may_place_files:
                    if os.path.realpath(self.own / value.strip('"')) != os.path.realpath(self.root):
                        return "its files are taken from elsewhere"
                elif key == "core.worktree" or not (is_harmless(key) or TRUSTED.covers(self.root, key, value)):
                    return f"the repository's git configuration sets {key}"
        if os.path.lexists(hooks / _HOOK_OF_READERS):
            return f"the repository has a {_HOOK_OF_READERS} hook"
        return self._submodules(depth) if looks_at_files else ""

    def _submodules(self, depth: int) -> str:
        if any(self.own.glob("sharedindex.*")):
            return "the repository's index is in several files"
        if _kind(self.root / ".gitmodules") not in (stat.S_IFREG, 0):
            return f"{self.root / '.gitmodules'} is no file"
        index = self.own / "index"
        if not os.path.lexists(index):
            return ""
        facts = index.lstat()
        paths = _gitlinks(str(index), facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        if len(paths) > _MOST_SUBMODULES or (paths and depth > 2):
            return "the repository has very many submodules"
        for path in paths:
            concern = self._submodule(path, depth)
            if concern:
                return f"in its submodule {path} {concern}"
        return ""

    def _submodule(self, path: str, depth: int) -> str:
        """Git enters what the index names as another repository, and obeys the configuration that it finds there."""
        place = self.root / path
        if os.path.realpath(place) != os.path.normpath(place):
            return "the directory is behind a link"
        if not os.path.lexists(place / ".git"):
            return ""
        return _Repository(place, self.common / "modules").concern(looks_at_files=True, depth=depth + 1)


@lru_cache(maxsize=64)
def _gitlinks(index: str, *facts: int) -> tuple[str, ...]:
    """Return the paths at which an index names other repositories; `facts` tell one state of the file from another.

    Raises `ValueError` for an index that is not plainly written.
    """
    data = Path(index).read_bytes()
    if _GITLINK not in data:
        return ()
    version, count = int.from_bytes(data[4:8]), int.from_bytes(data[8:12])
    if data[:4] != b"DIRC" or version not in (2, 3) or count > _MOST_ENTRIES:
        raise ValueError("its index is not plainly written")
    found: list[str] = []
    at = 12
    for _ in range(count):
        flags = int.from_bytes(data[at + 60 : at + 62])
        start = at + (64 if flags & 0x4000 else 62)
        end = data.index(b"\0", start)
        if flags & 0xFFF != min(end - start, 0xFFF):
            raise ValueError("its index is not plainly written")
        if data[at + 24 : at + 28] == _GITLINK:
            found.append(_plain_path(data[start:end]))
        at += (end - at + 8) // 8 * 8
    return tuple(dict.fromkeys(found))


def _plain_path(name: bytes) -> str:
    path = name.decode()
    if not path or any(part in ("", ".", "..") or part.lower() == ".git" for part in path.split("/")):
        raise ValueError("its index names a path that leads elsewhere")
    return path


def _kind(path: Path) -> int:
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except FileNotFoundError:
        return 0


def _small_text(file: Path) -> str:
    """Return what stands in a file, nothing where there is none. Raises `ValueError` where it is no text, or long."""
    if _kind(file) == 0:
        return ""
    if _kind(file) != stat.S_IFREG or file.lstat().st_size > _LONGEST_CONFIGURATION:
        raise ValueError(f"{file} is no small file")
    return file.read_bytes().decode()


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield keys and values of a configuration that is plainly written: a line for each section and each setting.

    Raises `ValueError` for everything else, on which git and we might not agree.
    """
    section = ""
    for line in text.split("\n"):
        if _NOTE.fullmatch(line):
            continue
        if match := _SECTION.fullmatch(line):
            section = match[1].lower() + (f".{match[2]}" if match[2] is not None else "")
        elif (match := _SETTING.fullmatch(line)) and section and not line.endswith("\\"):
            yield f"{section}.{match[1].lower()}", match[2] or ""
        else:
            raise ValueError("its configuration is not plainly written")
