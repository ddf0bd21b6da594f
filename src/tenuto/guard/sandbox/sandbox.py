"""The sandbox of one session: from its wishes and places to how each command is started."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from tenuto.guard.sandbox.policy import (
    Places,
    Policy,
    command_environment,
    git_directories,
    make_policy,
    proxy_environment,
)

if TYPE_CHECKING:
    from tenuto.guard.sandbox.machine import Kind, Machine
    from tenuto.guard.sandbox.network.namespace import SessionNetwork
    from tenuto.guard.sandbox.network.proxy import DomainProxy


_REPORT_BYTES = 100_000
_numbers = itertools.count()


class Confined(Struct, frozen=True):
    """How a command is started: the words before it, its environment, what the launcher holds it by.

    `descriptors` are passed on, and so are `namespaces`, which the launcher enters; both are closed once it runs.
    `report` is a file with the places whose modes, times and the like were not changed; empty: nothing writes one.
    """

    kind: Kind
    words: tuple[str, ...]
    environ: Mapping[str, str]
    policy: Policy
    confinement: bytes = b""
    descriptors: tuple[int, ...] = ()
    namespaces: tuple[int, ...] = ()
    report: str = ""

    def unchanged(self) -> list[str]:
        """Return the places outside that the command wanted to change and could not, as far as they are noted."""
        if not self.report:
            return []
        try:
            held = os.open(self.report, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return []
        with os.fdopen(held, "rb") as file:
            return [line.decode("utf-8", "replace") for line in (file.read(_REPORT_BYTES) or b"").splitlines()]

    def close(self) -> None:
        """Close what was passed on."""
        for descriptor in (*self.descriptors, *self.namespaces):
            os.close(descriptor)


class Sandbox:
    """Lazy: what the machine has is tried, and the private folder made, when the first command comes.

    `wanted` is false where the user has switched it off.
    """

    def __init__(self, places: Callable[[str], Places], *, wish: str = "auto", wanted: bool = True) -> None:
        self._places = places
        self._wish = wish
        self.wanted = wanted
        self._private = ""
        self._network: SessionNetwork | None = None
        self._proxy: DomainProxy | None = None
        self._has_no_network = False

    @property
    def machine(self) -> Machine:
        """What this machine has; tried at the first call, which takes some 20 ms."""
        from tenuto.guard.sandbox.machine import find_machine

        return find_machine(self._wish)

    @property
    def holds(self) -> bool:
        """Whether commands run in it."""
        return self.wanted and bool(self.machine.kind)

    @property
    def replaces_asking(self) -> bool:
        """Whether mode `auto` may run what it does not know: in a sandbox, or because the user wants none."""
        return not self.wanted or bool(self.machine.kind)

    def confine(self, cwd: Path, environ: Mapping[str, str], *, strict: bool, outputs: Path | None = None) -> Confined:
        """Return how a command in `cwd` is started; `strict` is one that only reads. Raises `OSError`.

        `outputs` are those of the session that it is for, where that is a sub-agent's: the sandbox is its parent's.
        """
        places = self._places(self._make_private())
        if outputs is not None:
            places = replace(places, outputs=(*places.outputs, os.path.realpath(outputs)))
        policy = make_policy(places, os.path.realpath(cwd), environ, strict=strict)
        network = self._join_network(policy) if policy.loopback else None
        if network is None:
            policy = replace(policy, loopback=False, domains=())
        match self.machine.kind:
            case "bubblewrap":
                return _in_bubblewrap(policy, environ, self.machine.detail, network)
            case "landlock":
                return _in_landlock(policy, environ, self.machine)
            case "seatbelt":
                return _in_seatbelt(policy, environ)
            case "":
                raise OSError("there is no sandbox on this machine")

    @property
    def refusals(self) -> int:
        """How many requests of commands were refused, because what they name is not in the list of domains."""
        return self._proxy.refusals if self._proxy is not None else 0

    def refused_since(self, count: int) -> list[str]:
        """Return what was refused after the first `count` of them, in words."""
        return self._proxy.refused_since(count) if self._proxy is not None else []

    def _join_network(self, policy: Policy) -> SessionNetwork | None:
        """Return the network that the commands of the session share, `None` where the machine does not let them."""
        if self.machine.kind != "bubblewrap":
            return None
        if self._network is None and not self._has_no_network:
            from tenuto.guard.sandbox.network.namespace import open_network

            try:
                self._network = open_network(self.machine.detail, listens=bool(policy.domains))
            except OSError:
                self._has_no_network = True  # each command has one of its own; `tenuto doctor` says why
        if self._network is not None and self._network.listener is not None and self._proxy is None:
            from tenuto.guard.sandbox.network.domains import read_domains
            from tenuto.guard.sandbox.network.proxy import DomainProxy

            self._proxy = DomainProxy(read_domains(policy.domains), self._network.listener)
        return self._network

    def protected(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the folders, and the git directories, whose protected names are put back after a command."""
        places = self._places(self._private)
        return (places.workspace, *places.added), tuple(git_directories(places.workspace))

    def _make_private(self) -> str:
        if not self._private or not os.path.isdir(self._private):
            import tempfile

            self._private = os.path.realpath(tempfile.mkdtemp(prefix="tenuto-"))
        return self._private

    def close(self) -> None:
        """Let go of the network and remove the private folder; others are made when they are needed again."""
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None
        if self._network is not None:
            self._network.close()
            self._network = None
        if self._private:
            import shutil

            shutil.rmtree(self._private, ignore_errors=True)
            self._private = ""


def _in_bubblewrap(
    policy: Policy, environ: Mapping[str, str], program: str, network: SessionNetwork | None
) -> Confined:
    from tenuto.guard.sandbox.bubblewrap import CACHES, TEMPORARY, bubblewrap_words, prepare_private
    from tenuto.guard.sandbox.launching.starting import FIRST_PASSED
    from tenuto.guard.sandbox.machine import open_filter

    prepare_private(policy.private)
    filtered = open_filter()
    words = bubblewrap_words(program, policy, environ.get("PATH", ""), FIRST_PASSED if filtered >= 0 else -1)
    return Confined(
        kind="bubblewrap",
        words=tuple(words),
        environ=command_environment(environ, TEMPORARY, CACHES)
        | (proxy_environment(network.port) if network is not None and network.port else {}),
        policy=policy,
        descriptors=(filtered,) if filtered >= 0 else (),
        namespaces=network.copies() if network is not None else (),
    )


def _in_landlock(policy: Policy, environ: Mapping[str, str], machine: Machine) -> Confined:
    from tenuto.guard.sandbox.landlock import confine
    from tenuto.guard.sandbox.machine import encode_confinement

    temporary, caches = _own_temporary(policy)
    report = f"{policy.private}/unchanged-{next(_numbers)}"
    version = int(machine.detail.rpartition(" ")[2])
    return Confined(
        kind="landlock",
        words=(),
        environ=command_environment(environ, temporary, caches),
        policy=policy,
        confinement=encode_confinement(confine(policy, version, report, asks=not machine.weakness)),
        report=report,
    )


def _in_seatbelt(policy: Policy, environ: Mapping[str, str]) -> Confined:
    from tenuto.guard.sandbox.seatbelt import seatbelt_words

    temporary, caches = _own_temporary(policy)
    return Confined(
        kind="seatbelt",
        words=tuple(seatbelt_words(policy)),
        environ=command_environment(environ, temporary, caches),
        policy=policy,
    )


def _own_temporary(policy: Policy) -> tuple[str, str]:
    """Make the folder for temporary files and caches where nothing is mounted over `/tmp`."""
    temporary = f"{policy.private}/tmp"
    caches = f"{temporary}/.caches"
    Path(caches).mkdir(mode=0o700, parents=True, exist_ok=True)
    return temporary, caches
