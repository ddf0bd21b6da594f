"""Runs trials through Harbor and writes what came of each: `python -m tests.frontend.harbor.trials TRIALS RESULTS`.

Runs in the Python that has Harbor. TRIALS is a JSON list of `{task, folder, env, kwargs}`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from harbor.models.trajectories import Trajectory
from harbor.models.trial.config import AgentConfig, EnvironmentConfig, TaskConfig, TrialConfig
from harbor.trial.trial import Trial

AT_ONCE = 2


async def run(asked: dict[str, Any], turn: asyncio.Semaphore) -> dict[str, Any]:
    async with turn:
        config = TrialConfig(
            task=TaskConfig(path=Path(asked["folder"])),
            trial_name=asked["task"],
            trials_dir=Path(asked["trials"]),
            agent=AgentConfig(
                import_path="tenuto.frontend.harbor:TenutoAgent",
                model_name="anthropic/claude-opus-5-5",
                skip_model_parsing=True,  # it would need litellm, which is larger than all else together
                env=asked["env"],
                kwargs=asked["kwargs"],
            ),
            environment=EnvironmentConfig(import_path="tests.frontend.harbor.folders:Folders", delete=True),
        )
        trial = await Trial.create(config)
        result = await trial.run()
        made = json.loads(result.model_dump_json())
        path = Path(asked["trials"]) / asked["task"] / "agent" / "trajectory.json"
        if path.exists():
            Trajectory.model_validate_json(path.read_text())
            made["trajectory"] = json.loads(path.read_text())
        return made


async def main(trials: Path, results: Path) -> None:
    turn = asyncio.Semaphore(AT_ONCE)
    asked = json.loads(trials.read_text())
    made = await asyncio.gather(*(run(one, turn) for one in asked))
    results.write_text(json.dumps(dict(zip([one["task"] for one in asked], made, strict=True))))


if __name__ == "__main__":
    asyncio.run(main(*map(Path, sys.argv[1:])))
