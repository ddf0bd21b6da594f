"""A Harbor task in a batch: the folders of a data set as tasks, and one trial of one by the program `harbor`."""

from __future__ import annotations

import contextlib
import hashlib
import re
import shlex
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from tenuto.config.consent import digest_of
from tenuto.engine.child import Ended, run_child
from tenuto.exit_codes import OK
from tenuto.frontend.batch.results import Attempt, Outcome
from tenuto.frontend.batch.tasks import ID, TasksError
from tenuto.private_files import make_new_directory, write_new
from tenuto.text.writable import to_json

AGENT = "tenuto.frontend.harbor:TenutoAgent"
PROGRAM = "harbor"
TASK_FILE, INSTRUCTION = "task.toml", "instruction.md"
"""What makes a folder a task of Harbor's, and what its agent is asked."""
RESULT = "result.json"
"""What Harbor says of a trial, in its folder."""
OUTCOMES_BY_ERROR: dict[str, Outcome] = {
    "ApiUsageLimitError": "limit_reached",
    "AgentTimeoutError": "limit_reached",
    "OutputTokenExceededError": "cut_off",
    "AgentSafetyRefusalError": "declined",
}
"""By Harbor's names. Any other error is a failure, of the container or the provider, say."""


class Trial(Struct, frozen=True):
    """One task of a data set. `prompt` is the first line of its instruction; paths are absolute."""

    id: str
    folder: str
    prompt: str
    content: str
    """The digest of its files."""
    model: str = ""
    config: str = ""
    """A file with Harbor's own settings of a trial; paths in it are seen from its folder."""
    settings: str = ""
    """The digest of that file."""

    cwd = ""
    """Trials share no directory."""

    @property
    def digest(self) -> str:
        """What tells this task, with all that it says, from every other."""
        return digest_of(to_json(self))[:16]


class TrialJob(Struct, frozen=True):
    """One try at a task of Harbor's. `places` is where folders of trials are made."""

    trial: Trial
    places: str
    token: str
    max_turns: int | None = None
    max_cost: float | None = None
    timeout: float | None = None
    """Seconds for the agent."""

    @property
    def folder(self) -> Path:
        """What Harbor writes of this try alone."""
        return Path(self.places, f"{self.trial.id}__{self.token}")

    async def run(self, environ: Mapping[str, str]) -> Attempt:
        """Have Harbor make the environment, run the agent and the verifier in it, and take it away."""
        begun = time.monotonic()
        scratch = Path(self.places, f".{self.folder.name}")
        try:
            self._remove_leftovers()
            make_new_directory(scratch)
            ours = scratch / "trial.json"
            write_new(ours, to_json(self._config()))
            configs = [word for file in (self.trial.config, str(ours)) if file for word in ("-c", file)]
            line = f"exec {shlex.join([PROGRAM, 'trial', 'start', *configs])}"
            cwd = Path(self.trial.config).parent if self.trial.config else Path(self.trial.folder)
            ended = await run_child(line, cwd, environ, scratch, None)
        except OSError as error:
            return Attempt("setup_failed", str(error), seconds=time.monotonic() - begun)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
        return msgspec.structs.replace(read_trial(self.folder, ended), seconds=time.monotonic() - begun)

    def clean(self, environ: Mapping[str, str]) -> None:
        """Remove what a lost try has left."""
        del environ
        shutil.rmtree(self.folder, ignore_errors=True)

    def _remove_leftovers(self) -> None:
        """Remove what tries at this task have left that a kill ended: Harbor's result is the last that it writes."""
        ours = re.compile(rf"\.?{re.escape(self.trial.id)}__[0-9a-f]{{8}}")
        for place in Path(self.places).glob("*"):
            if ours.fullmatch(place.name) and not (place / RESULT).exists():
                shutil.rmtree(place, ignore_errors=True)

    def _config(self) -> dict[str, Any]:
        """Return what Harbor is to do beside what the user's file says."""
        limits = {"max_turns": self.max_turns, "max_cost": self.max_cost}
        agent: dict[str, Any] = {
            "import_path": AGENT,
            "skip_model_parsing": True,  # names of models and keys are Tenuto's own
            "kwargs": {name: value for name, value in limits.items() if value},
        }
        agent |= {"model_name": self.trial.model} if self.trial.model else {}
        agent |= {"override_timeout_sec": self.timeout} if self.timeout else {}
        place = {"trial_name": self.folder.name, "trials_dir": self.places}
        return {**place, "task": {"path": self.trial.folder}, "agent": agent}


def read_trials(folder: Path, model: str, config: Path | None) -> list[Trial]:
    """Return the tasks of a data set's folder by name: itself, or each folder in it that has a `task.toml`.

    Raises `TasksError` and `OSError`.
    """
    places = [folder] if (folder / TASK_FILE).is_file() else sorted(folder.iterdir())
    settings = digest_of(_read_settings(config)) if config else ""
    made = [
        Trial(
            id=place.name,
            folder=str(place),
            prompt=_first_line(place / INSTRUCTION),
            content=_digest(place),
            model=model,
            config=str(config or ""),
            settings=settings,
        )
        for place in places
        if (place / TASK_FILE).is_file()
    ]
    if not made:
        raise TasksError(f"{folder} has no tasks of Harbor's: no folder in it has a {TASK_FILE}")
    bad = [trial.id for trial in made if not ID.fullmatch(trial.id)]
    if bad:
        raise TasksError("\n".join(f"{name}: a name has letters, digits and any of . _ -" for name in bad))
    return made


def _read_settings(config: Path) -> bytes:
    """Return a file of Harbor's settings, which is JSON or YAML. Raises `TasksError` and `OSError`."""
    import yaml

    data = config.read_bytes()
    try:
        settings = yaml.safe_load(data)  # JSON is YAML
    except (yaml.YAMLError, UnicodeError, ValueError) as error:
        raise TasksError(f"{config} is neither JSON nor YAML: {' '.join(str(error).split())}") from None
    if not isinstance(settings, dict):
        raise TasksError(f"{config} has no settings by name; harbor trial schema says which there are")
    return data


def read_trial(folder: Path, ended: Ended) -> Attempt:
    """Return what came of a trial by what Harbor has left in its folder, and how the program ended."""
    try:
        result: dict[str, Any] = msgspec.json.decode((folder / RESULT).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError, UnicodeError):
        how = f"{PROGRAM} ended with {ended.code}" if ended.code != OK else f"{PROGRAM} left no result"
        return Attempt("crashed", f"{how}: {ended.last_line}" if ended.last_line else how, trial=str(folder))
    reward = _reward(result)
    outcome, error = _judge(result, reward)
    return Attempt(outcome, error, _answer(folder, result), trial=str(folder), reward=reward)


def _judge(result: Mapping[str, Any], reward: float | None) -> tuple[Outcome, str]:
    fault: dict[str, Any] = result.get("exception_info") or {}
    if fault:
        name = str(fault.get("exception_type", ""))
        said = str(fault.get("exception_message", "")).strip().split("\n")[-1]
        return OUTCOMES_BY_ERROR.get(name, "failed"), f"{name}: {said}"
    if reward is None:
        return "failed", "the verifier gave no reward"
    return ("done", "") if reward >= 1 else ("check_failed", f"the reward is {reward:g}")


def _reward(result: Mapping[str, Any]) -> float | None:
    """Return the reward; of several the one by that name, or else their mean."""
    verified: dict[str, Any] = result.get("verifier_result") or {}
    rewards: dict[str, float] = verified.get("rewards") or {}
    if not rewards:
        return None
    return float(rewards["reward"] if "reward" in rewards else sum(rewards.values()) / len(rewards))


def _answer(folder: Path, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the result of the headless run where it came to one, with tokens and cost as Harbor has them."""
    answer: dict[str, Any] = {}
    with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeError, ValueError):
        last = (folder / "agent" / "tenuto.jsonl").read_bytes().strip().rpartition(b"\n")[2]
        answer = msgspec.json.decode(last, type=dict[str, Any])
    counted: dict[str, Any] = result.get("agent_result") or {}
    if answer.get("type") == "result" or not counted:
        return answer if answer.get("type") == "result" else {}
    cached = counted.get("n_cache_tokens") or 0
    usage = {
        "input_tokens": (counted.get("n_input_tokens") or 0) - cached,
        "cache_read_input_tokens": cached,
        "output_tokens": counted.get("n_output_tokens") or 0,
    }
    return {"usage": usage, "total_cost_usd": counted.get("cost_usd")}


def _first_line(file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    return next((line.strip() for line in re.split(r"\r?\n", text) if line.strip()), "")


def _digest(folder: Path) -> str:
    """Return the digest of all files in a folder, with their names."""
    digest = hashlib.sha256()
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{file.relative_to(folder)}\0{file.stat().st_size}\0".encode("utf-8", "surrogateescape"))
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
