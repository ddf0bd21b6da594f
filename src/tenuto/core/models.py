"""The models of a run; commands of the user's that print a key are run through the door for processes, bounded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tenuto.config.settings import Settings
from tenuto.guard.secrets import Secrets
from tenuto.model.access.supply import RunCommand
from tenuto.model.registry import ModelRegistry
from tenuto.private_files import make_directory
from tenuto.protocol.model import ModelError
from tenuto.text.bounding import shorten

KEY_SECONDS = 60.0
"""Seconds for a command, which may ask its user for a finger."""
SAID_CHARS = 200
"""Characters of what a failed command said."""


def open_models(settings: Settings, home: Path, environ: Mapping[str, str]) -> ModelRegistry:
    """Return the models that these settings make, with what runs the commands that print keys."""
    return ModelRegistry(settings, home, environ, run_command=_key_runner(home, environ))


def _key_runner(home: Path, environ: Mapping[str, str]) -> RunCommand:
    """Return what runs such commands in Tenuto's home: no project's file can stand in their way there."""

    async def run(text: str, about: str) -> str:
        import tempfile

        from tenuto.core.hooks.running import run_hook

        hint = "run it in a shell to see what it says"
        try:
            make_directory(home)
            with tempfile.TemporaryDirectory(prefix="tenuto-") as records:
                place = Path(records)
                # It may print a key that is known by now, and has to: nothing is masked.
                done = await run_hook(
                    text, b"", cwd=home, environ=environ, records=place, timeout=KEY_SECONDS, secrets=Secrets()
                )
        except OSError as error:
            raise ModelError("auth", f"{about} cannot run: {error}") from error
        if done.problem:
            raise ModelError("auth", f"{about} failed: {done.problem}", hint=hint)
        if done.exit_code:
            said = shorten(" ".join(done.errors.split()), SAID_CHARS)
            raise ModelError("auth", f"{about} failed with exit code {done.exit_code}: {said or 'it said nothing'}")
        return done.output.decode("utf-8", "replace")

    return run
