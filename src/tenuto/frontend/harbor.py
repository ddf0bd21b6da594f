# pyright: reportMissingImports=false, reportUntypedBaseClass=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false, reportUnknownArgumentType=false
# pyright: reportUntypedFunctionDecorator=false
"""Tenuto as an agent of Harbor, the harness of Terminal-Bench: `harbor run --agent tenuto.frontend.harbor:TenutoAgent`.

This is the one module that imports Harbor, and nobody else imports it: Harbor, which needs Python 3.12, brings itself.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import (
    AgentSafetyRefusalError,
    ApiUsageLimitError,
    BaseInstalledAgent,
    ErrorPattern,
    OutputTokenExceededError,
    with_prompt_template,
)
from harbor.agents.options import Cli, InstalledAgentOptions
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from pydantic import Field

from tenuto.exit_codes import CALLS_REFUSED, CUT_OFF, DECLINED, LIMIT_REACHED
from tenuto.model.endpoints import BUILT_IN, OTHER_VARIABLES
from tenuto.session.errors import SessionError
from tenuto.session.exporters.export import Export, ExportRequest
from tenuto.session.log.log import LOG_NAME

HOME = "tenuto"
"""The folder below the agent's logs that is Tenuto's home, so that the session comes back with the logs."""
TRAJECTORY = "trajectory.json"
"""Where Harbor looks for a trajectory, below the agent's logs."""
EVERYTHING = ("bash", "edit(/**)", "read(/**)", "fetch")
"""The container is what holds the agent; nobody answers, so what asks would be refused."""
_PATH = 'export PATH="$HOME/.local/bin:$PATH"'
_INSTRUCTION = "HARBOR_INSTRUCTION"
_ENDED = "tenuto ended with exit code"


class TenutoOptions(InstalledAgentOptions):
    """What `--agent-kwarg NAME=VALUE` sets."""

    max_turns: Annotated[int | None, Cli("--max-turns")] = Field(default=None, description="Calls of the model.")
    max_cost: Annotated[float | None, Cli("--max-cost")] = Field(default=None, description="US dollars for a task.")
    package: str = Field(
        default="",
        description="What to install instead of the newest release: a wheel on this machine, or any requirement.",
    )


class TenutoAgent(BaseInstalledAgent):
    """Installs Tenuto in a task's environment, runs it without a screen, and brings its session home as ATIF."""

    capabilities = AgentCapabilities(atif=True, reasoning_effort=True, native_web_tools=True)
    options_model = TenutoOptions
    ERROR_PATTERNS = [  # noqa: RUF012 (Harbor's own form)
        *BaseInstalledAgent.ERROR_PATTERNS,
        # Harbor takes the last that fits: what the program says of its own end goes before what it may have quoted.
        ErrorPattern(rf"{_ENDED} {CUT_OFF}\b", OutputTokenExceededError),
        ErrorPattern(rf"{_ENDED} {LIMIT_REACHED}\b", ApiUsageLimitError),
        ErrorPattern(rf"{_ENDED} {DECLINED}\b", AgentSafetyRefusalError),
    ]

    @staticmethod
    def name() -> str:
        """Return the name that results have the agent by."""
        return "tenuto"

    def get_version_command(self) -> str:
        """Return the command that says which version is installed."""
        return f"{_PATH}; tenuto --version"

    def parse_version(self, stdout: str) -> str:
        """Return the version alone."""
        return "".join(stdout.split()[-1:])

    async def install(self, environment: BaseEnvironment) -> None:
        """Install the version or package that was asked for; without either, one that is there already will do."""
        package: str = self.options.package
        if not package and not self._version and await self._has(environment, "tenuto"):
            return
        if not await self._has(environment, "uv"):
            await self.ensure_system_dependencies(environment, ("curl", "ca_certificates"))
            await self.exec_as_agent(environment, "curl -LsSf https://astral.sh/uv/install.sh | sh")
        if package.endswith(".whl"):
            wheel = Path(package)
            package = f"/installed-agent/{wheel.name}"
            await environment.upload_file(wheel, package)
        wanted = shlex.quote(package or (f"tenuto=={self._version}" if self._version else "tenuto"))
        await self.exec_as_agent(
            environment, f"{_PATH}; uv tool install --force --python '>=3.11' {wanted} && tenuto --version"
        )

    async def _has(self, environment: BaseEnvironment, program: str) -> bool:
        found = await environment.exec(f"{_PATH}; command -v {program}")
        return found.return_code == 0

    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Give the instruction to `tenuto -p`. Its own words and not its stream are what Harbor may read errors in."""
        del context
        logs = self.environment_logs_dir
        command = (
            f"{_PATH}; printf '%s' \"${_INSTRUCTION}\" | env -u {_INSTRUCTION} {self._command()} "
            f"> {logs}/tenuto.jsonl 2> {logs}/tenuto.stderr; code=$?; tail -c 4000 {logs}/tenuto.stderr >&2; "
            # Done, but something was refused, is done: whether the work is right says the verifier.
            f"[ $code = {CALLS_REFUSED} ] && code=0; "
            f'[ $code = 0 ] || echo "{_ENDED} $code" >&2; exit $code'
        )
        await self.exec_as_agent(environment, command, env=self._environment() | {_INSTRUCTION: instruction})

    def _command(self) -> str:
        words = ["tenuto", "-p", "--mode", "auto", "--no-sandbox", "--output-format", "stream-json"]
        for rule in EVERYTHING:
            words += ["--allow", rule]
        if self.model_name:
            effort = self.options.reasoning_effort
            words += ["--model", f"{self.model_name}:{effort}" if effort else self.model_name]
        return f"{shlex.join(words)} {self.build_cli_flags()}".rstrip()

    def _environment(self) -> dict[str, str]:
        """Return key and address of the model's provider, as they are here, and where the session goes.

        No other keys: what runs in the task could read them. `--agent-env` adds what else is wanted.
        """
        _, _, key, address = BUILT_IN.get((self.model_name or "").partition("/")[0], ("", "", "", ""))
        names = [name for name in (key, address, OTHER_VARIABLES.get(key, "")) if name]
        found = {name: value for name in names if (value := self._get_env(name))}
        # A provider's web search runs at the provider: no network policy of a container holds it.
        search = {"TENUTO_TOOLS__WEB_SEARCH": "false"} if self.options.disable_web_search else {}
        return {**found, **search, "TENUTO_HOME": str(self.environment_logs_dir / HOME)}

    def populate_context_post_run(self, context: AgentContext) -> None:
        """Write the session as a trajectory, after a run that was stopped too, and say what it used."""
        made = self._write_trajectory()
        if made is None:
            return
        totals = made["final_metrics"]
        context.n_input_tokens = totals["total_prompt_tokens"]
        context.n_output_tokens = totals["total_completion_tokens"]
        context.n_cache_tokens = totals["total_cached_tokens"]
        context.cost_usd = totals.get("total_cost_usd")

    def _write_trajectory(self) -> dict[str, Any] | None:
        logs = sorted((self.logs_dir / HOME / "sessions").glob(f"*/*/{LOG_NAME}"))  # sub-agents' lie deeper
        if not logs:
            self.logger.warning("tenuto left no session in %s", self.logs_dir / HOME)
            return None
        wish = ExportRequest(output=TRAJECTORY, format="atif", force=True)
        try:
            made = Export.of_directory(logs[-1].parent).write(wish, self.logs_dir)
            return json.loads(made.path.read_text(encoding="utf-8"))
        except (SessionError, OSError, ValueError) as error:
            self.logger.warning("the session of tenuto cannot be written as a trajectory: %s", error)
            return None
