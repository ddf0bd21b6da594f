"""What a command may write, read and reach, as data. Looks at the disk, changes nothing, knows no backend."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from tenuto.guard.protected import GIT_PROTECTED, SECRET_FOLDERS, protected_entries
from tenuto.guard.subject import is_inside

SECRET_PLACES = (
    *SECRET_FOLDERS,
    *(".netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".config/git/credentials", ".config/glab-cli"),
    *(".config/hub", ".config/op", ".config/rclone", ".config/containers/auth.json", ".vault-token"),
    *(".local/share/keyrings", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials"),
    *(".terraform.d/credentials.tfrc.json", ".terraformrc", ".huggingface/token", ".cache/huggingface/token"),
    *(".codex/auth.json", ".claude/.credentials.json", ".claude.json", ".mozilla"),
    *(".config/google-chrome", ".config/chromium", ".bash_history", ".zsh_history", ".python_history"),
)
"""Below the home: keys, tokens, and what other programs remember. None of it can be read by a command."""
SYSTEM_SECRETS = ("/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d")
SOCKET_VARIABLES = (
    *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"),
    *("DOCKER_HOST", "CONTAINER_HOST", "XDG_RUNTIME_DIR", "WAYLAND_DISPLAY", "DISPLAY", "XAUTHORITY", "TMUX", "STY"),
    *("GNOME_KEYRING_CONTROL", "VSCODE_IPC_HOOK_CLI", "NVIM", "I3SOCK", "SWAYSOCK"),
)
"""Variables that lead to programs outside; commands in the sandbox do not have them."""
CACHE_VARIABLES = {
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "GOCACHE": "go-build",
    "CCACHE_DIR": "ccache",
}
"""Caches without which a program does not work at all: in the private folder, where the user has not set them."""
_MODULES_LOOKED_AT = 200
_LINK_CHARS = 4_096


OWN_PROGRAMS = ("skills", "plugins")
"""In Tenuto's own home: the user's skills and plugins, whose scripts commands run."""


class Policy(Struct, frozen=True, kw_only=True):
    """All paths are real paths. What stands deeper in the tree wins over what stands above it.

    `protected` is read-only inside `writable`; `between` are the folders from a writable one down to a protected one,
    which must not be renamed away. `hidden` cannot be read, but for `shown` in it. `private` is a folder that this
    session alone has, for temporary files and caches. `kept` are folders whose protected names are compared
    afterwards (`putting_back`): nothing keeps a name from being made that is not there. Without `network` a command may
    have the session's own `loopback`, with a proxy in it to `domains`; else a network with nothing in it.
    """

    cwd: str
    home: str
    private: str
    writable: tuple[str, ...] = ()
    protected: tuple[str, ...] = ()
    between: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()
    network: bool = False
    loopback: bool = False
    domains: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class Places(Struct, frozen=True, kw_only=True):
    """Where the session works: what a policy is made of, beside the settings."""

    workspace: str
    private: str
    own_home: str
    """`$TENUTO_HOME`."""
    outputs: tuple[str, ...] = ()
    """Folders of full outputs of tools, which the model is pointed to."""
    added: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    network: bool = False
    domains: tuple[str, ...] = ()


def make_policy(places: Places, cwd: str, environ: Mapping[str, str], *, strict: bool = False) -> Policy:
    """Return the policy of one command. A `strict` one, for what only reads, writes nothing and has no network."""
    home = os.path.realpath(environ.get("HOME") or pwd_home())
    roots: Sequence[str] = () if strict else _unique((places.workspace, *places.added, *_real(places.writable, home)))
    git: list[str] = [] if strict else git_directories(places.workspace)
    readable = _real(places.readable, home)
    hidden = tuple(one for one in _hidden(places, home) if one not in readable)
    found = [path for root in roots for path in _protected_below(root)] + _protected_in_git(git)
    protected = _unique(path for path in found if path not in hidden)  # a workspace may be the home
    shown = _unique((*places.outputs, *(f"{places.own_home}/{name}" for name in OWN_PROGRAMS), *readable))
    return Policy(
        cwd=cwd,
        home=home,
        private=places.private,
        writable=_unique((*roots, *git)),
        protected=protected,
        between=_unique(_between(protected, (*roots, *git))),
        hidden=hidden,
        shown=tuple(one for one in shown if os.path.exists(one)),
        sockets=tuple(_open_sockets(places)),
        network=places.network and not strict,
        loopback=not places.network and not strict,
        domains=() if places.network or strict else places.domains,
        kept=tuple(roots),
    )


def pwd_home() -> str:
    """Return the home of the user that runs this, whatever the environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return "/nonexistent"


def command_environment(environ: Mapping[str, str], temporary: str, caches: str) -> dict[str, str]:
    """Return the environment of a command in the sandbox: its temporary folder, its caches, no way to sockets."""
    kept = {name: value for name, value in environ.items() if name not in SOCKET_VARIABLES}
    kept |= {name: f"{caches}/{folder}" for name, folder in CACHE_VARIABLES.items() if name not in environ}
    kept |= {"TMPDIR": temporary, "TMP": temporary, "TEMP": temporary}
    return kept


def proxy_environment(port: int) -> dict[str, str]:
    """Return the variables that lead programs to the proxy inside; what the session serves is reached directly."""
    address, here = f"http://127.0.0.1:{port}", "localhost,127.0.0.1,::1"
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    set_ = {form: address for name in names for form in (name, name.lower())}
    return {**set_, "NO_PROXY": here, "no_proxy": here, "NODE_USE_ENV_PROXY": "1"}


def git_directories(workspace: str) -> list[str]:
    """Return the git directories that a commit in the workspace writes to and that lie outside of it.

    A work tree's real one, if that one knows this work tree; one of a folder above. A `.git` file of a clone from
    somewhere may name any folder: only the answer of the other side makes it one of ours.
    """
    for place in (Path(workspace), *Path(workspace).parents):
        entry = place / ".git"
        if entry.is_dir() and not entry.is_symlink():
            return [] if str(place) == workspace else [str(entry)] if (entry / "HEAD").is_file() else []
        if entry.is_file():
            return _linked_directories(entry)
    return []


def _linked_directories(entry: Path) -> list[str]:
    word = _first_line(entry)
    if not word.startswith("gitdir:"):
        return []
    own = os.path.realpath(entry.parent / word.removeprefix("gitdir:").strip())
    back = _first_line(Path(own, "gitdir"))
    if not back or os.path.realpath(Path(own, back)) != os.path.realpath(entry):
        return []
    common = os.path.realpath(Path(own, _first_line(Path(own, "commondir")) or "."))
    is_ours = Path(own).parent == Path(common, "worktrees") and Path(common, "HEAD").is_file()
    return [common] if is_ours else []


def _first_line(path: Path) -> str:
    try:
        if not path.is_file():
            return ""
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline(_LINK_CHARS).strip()
    except OSError:
        return ""


def _protected_below(root: str) -> list[str]:
    """Return what is protected in a writable folder; of a git directory only what git runs."""
    found: list[str] = []
    for path in protected_entries(root):
        if os.path.basename(path).casefold() == ".git" and os.path.isdir(path) and not os.path.islink(path):
            found += _protected_in_git([path])
        elif not os.path.islink(path):
            found.append(path)
    return found


def _protected_in_git(directories: Iterable[str]) -> list[str]:
    found: list[str] = []
    for directory in directories:
        for one in (directory, *_inner_git(directory)):
            paths = (f"{one}/{name}" for name in GIT_PROTECTED)
            found += [path for path in paths if os.path.exists(path) and not os.path.islink(path)]
    return found


def _inner_git(directory: str) -> Iterator[str]:
    """Yield the git directories of submodules and work trees that are kept in this one."""
    pending = [f"{directory}/modules", f"{directory}/worktrees"]
    looked_at = 0
    while pending and looked_at < _MODULES_LOOKED_AT:
        looked_at += 1
        place = pending.pop()
        try:
            names = [entry.name for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        for name in names:
            inner = f"{place}/{name}"
            if os.path.exists(f"{inner}/HEAD"):
                yield inner
                pending.append(f"{inner}/modules")
            else:
                pending.append(inner)


def _between(protected: Iterable[str], roots: Sequence[str]) -> Iterator[str]:
    for path in protected:
        place = os.path.dirname(path)
        while any(place != root and is_inside(place, root) for root in roots):
            yield place
            place = os.path.dirname(place)


def _hidden(places: Places, home: str) -> tuple[str, ...]:
    homes = {home, os.path.realpath(pwd_home())}
    named = [f"{one}/{name}" for one in sorted(homes) for name in SECRET_PLACES]
    wanted = (places.own_home, *named, *SYSTEM_SECRETS, *_expanded(places.hidden, home))
    found = (os.path.realpath(path) for path in wanted if os.path.lexists(path))
    # A workspace that lies in a hidden place is shown: the user works there. One that is a hidden place as well.
    return tuple(path for path in _unique(found) if path not in ("/", home, places.workspace) and os.path.exists(path))


def _open_sockets(places: Places) -> Iterator[str]:
    """Yield the sockets on disk at which some program of this machine listens, outside of the workspace."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "replace").splitlines()[1:]
    except OSError:
        return
    seen: set[str] = set()
    for line in lines:
        words = line.split(maxsplit=7)
        path = words[7] if len(words) == 8 else ""
        if path.startswith("/") and path not in seen:
            seen.add(path)
            real = os.path.realpath(path)
            if not is_inside(real, places.workspace) and not is_inside(real, places.private) and os.path.exists(real):
                yield real


def _real(paths: Iterable[str], home: str) -> list[str]:
    return [os.path.realpath(path) for path in _expanded(paths, home) if os.path.exists(path)]


def _expanded(paths: Iterable[str], home: str) -> list[str]:
    return [home + path[1:] if path == "~" or path.startswith("~/") else path for path in paths]


def _unique(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))
