"""The sandbox of a session, how it holds a command of the model, and what is said of that afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from tenuto.guard.sandbox.policy import Places
from tenuto.guard.sandbox.putting_back import Snapshot, name_changes, put_back, remember
from tenuto.guard.sandbox.sandbox import Sandbox

if TYPE_CHECKING:
    from tenuto.config.settings import SandboxSettings
    from tenuto.guard.sandbox.sandbox import Confined
    from tenuto.tool.run.context import ToolContext


def make_sandbox(
    wishes: SandboxSettings,
    cwd: Path,
    home: Path,
    outputs: Path | None = None,
    *,
    wanted: bool,
    added: Callable[[], tuple[str, ...]] = tuple,
) -> Sandbox:
    """Return the sandbox. Tries nothing yet.

    `outputs` is where full results lie, which the model may read; `added` returns more directories to work in.
    """
    workspace, own_home = os.path.realpath(cwd), os.path.realpath(home)

    def places(private: str) -> Places:
        return Places(
            workspace=workspace,
            private=private,
            own_home=own_home,
            outputs=(os.path.realpath(outputs),) if outputs is not None else (),
            added=added(),
            writable=wishes.writable,
            hidden=wishes.hidden,
            readable=wishes.readable,
            network=wishes.network,
            domains=wishes.domains,
        )

    return Sandbox(places, wish=wishes.kind, wanted=wanted)


_BLOCKED = (
    "[The sandbox may have blocked this: {what}. If it has to be done, call bash again with outside = the reason: "
    "the user is asked.]"
)
_UNCHANGED = (
    "[The sandbox blocked this: {what}. If it has to be done, call bash again with outside = the reason: the user is "
    "asked.]"
)
_REFUSED = (
    "[The sandbox blocked this: {what}. The user can add it to sandbox.domains in their own settings, for the next "
    "start. If it has to be done now, call bash again with outside = the reason: the user is asked.]"
)
KEPT_ASIDE = "taken-back"
"""The folder beside the outputs in which lies what was taken back."""


class HeldCommand(Struct):
    """One command of the model: how the sandbox holds it, `None` outside of it, and what was protected before it.

    `refusals` is how often the proxy had refused something before it.
    """

    context: ToolContext
    confined: Confined | None = None
    before: Snapshot | None = None
    refusals: int = 0

    def report(self, output: str, exit_code: int | None) -> list[str]:
        """Put back what was done to protected files, and return what the model has to know, a line each."""
        said = [f"[{line}]" for line in self._put_back()]
        refused = self._refused()
        unchanged = self.confined.unchanged() if self.confined is not None else []
        if self.confined is None or not (exit_code or refused or unchanged):
            return said
        from tenuto.guard.sandbox.hints import explain_failure

        weakness = self.context.sandbox.machine.weakness if self.context.sandbox is not None else ""
        what = explain_failure(output if exit_code else "", self.confined.policy, refused, unchanged, weakness)
        blocked = _REFUSED if refused else _UNCHANGED if unchanged else _BLOCKED
        return [*said, *([blocked.format(what=what)] if what else ())]

    def remarks(self) -> list[str]:
        """Return what the proxy refused a background job, and what it did to protected files: the user may have."""
        if self.confined is None or self.before is None:
            return []
        refused = self._refused()
        blocked = [f"blocked by the sandbox: network: {', '.join(refused)}"] if refused else []
        if unchanged := self.confined.unchanged():
            from tenuto.guard.sandbox.hints import explain_failure

            blocked.append(f"blocked by the sandbox: {explain_failure('', self.confined.policy, (), unchanged)}")
        return [*blocked, *name_changes(self.before, *_protected(self.context))]

    def _refused(self) -> list[str]:
        """Return what was refused meanwhile, in words; of commands that run side by side nobody knows whose it was."""
        sandbox = self.context.sandbox
        if self.confined is None or sandbox is None or not self.confined.policy.domains:
            return []
        return sandbox.refused_since(self.refusals)

    def _put_back(self) -> list[str]:
        if self.confined is None or self.before is None:
            return []
        aside = self.context.outputs / KEPT_ASIDE
        # Bubblewrap keeps what there was from being changed: whatever changed all the same, the user has changed.
        return put_back(self.before, *_protected(self.context), aside, changed=self.confined.kind != "bubblewrap")


def hold_command(context: ToolContext, *, outside: bool = False) -> HeldCommand:
    """Return how the command of a call is held: not at all where the user let it run outside, or there is no sandbox.

    What only reads gets the strictest policy. Raises `OSError`.
    """
    from tenuto.guard.approval import reads_only

    sandbox = context.sandbox
    if outside or sandbox is None or not sandbox.holds:
        return HeldCommand(context)
    subject = context.subject
    strict = subject is not None and reads_only(subject)
    confined = sandbox.confine(context.cwd, context.environ, strict=strict, outputs=context.outputs)
    before = None if strict else remember(*_protected(context))
    return HeldCommand(context, confined, before, sandbox.refusals)


def _protected(context: ToolContext) -> tuple[tuple[str, ...], tuple[str, ...]]:
    sandbox = context.sandbox
    return sandbox.protected() if sandbox is not None else ((), ())
