"""Many sessions measured at once: each in a process of its own, `python -m tenuto.evaluation.jobs FOLDER`."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tenuto.core.errors import TenutoError
from tenuto.engine.child import run_child
from tenuto.engine.display import Row
from tenuto.engine.engine import Job, WorkerLostError
from tenuto.evaluation.driving import Case, Figures, describe, measure_in
from tenuto.evaluation.folders import folder_of, held, new_token, played_in, remove_abandoned, remove_folder
from tenuto.evaluation.report import HAS_NO_VIEW, Share
from tenuto.evaluation.store import Store
from tenuto.exit_codes import OK, SIGNAL
from tenuto.private_files import write_new
from tenuto.text.writable import to_json

ASKED, ANSWERED = "job.json", "figures.json"
"""What the process of a case reads, and what it leaves, in the case's folder."""


class CaseFailedError(TenutoError):
    """A session cannot be measured; the message names it and says why."""


class CaseJob(msgspec.Struct, frozen=True):
    """A session to measure. `recorded` of its case is seen from `cwd`; `settings` know a real model."""

    case: Case
    cwd: str
    token: str
    """What tells this try from every other one (`new_token`)."""
    settings: str = ""

    @property
    def folder(self) -> Path:
        """What this try alone works in."""
        return folder_of(self.token)

    async def run(self, environ: Mapping[str, str]) -> Figures:
        """Measure it in a process of its own. Raises `WorkerLostError` and `CaseFailedError`."""
        remove_abandoned()  # here too: on a cluster this is the node that they are on
        try:
            with played_in(self.token) as folder:
                write_new(folder / ASKED, to_json(self))
                line = shlex.join([sys.executable, "-P", "-m", "tenuto.evaluation.jobs", str(folder)])
                ended = await run_child(line, Path(self.cwd), environ, folder, None)
                if ended.code == OK:
                    return msgspec.json.decode((folder / ANSWERED).read_bytes(), type=Figures)
        except OSError as error:
            raise CaseFailedError(f"{describe(self.case)}: {error}") from error
        if ended.code is not None and ended.code > SIGNAL:
            raise WorkerLostError(f"its process ended with {ended.code}")
        raise CaseFailedError(f"{describe(self.case)}: {ended.last_line}")

    def clean(self, environ: Mapping[str, str]) -> None:
        """Remove the folder."""
        del environ
        remove_folder(self.folder)


class Evaluation:
    """Cases as work for a conductor. `figures` are those that were measured, now or by runs before."""

    def __init__(self, cases: Sequence[Case], store: Store | None, settings: str) -> None:
        self._store = store
        self._settings = settings
        self.cases = tuple(dict.fromkeys(cases))
        known = ((case, store.find(case)) for case in self.cases if store is not None)
        self.figures: dict[Case, Figures] = {case: figures for case, figures in known if figures is not None}
        self.left = [case for case in self.cases if case not in self.figures]

    @property
    def has_more(self) -> bool:
        """Whether there are cases to begin."""
        return bool(self.left)

    def take(self, free: int) -> Case | None:
        """Return the next case."""
        del free
        return self.left.pop(0)

    def name(self, item: Case) -> tuple[str, str]:
        """Return a case in a few words."""
        return describe(item), ""

    def job(self, item: Case, answers: Sequence[Figures]) -> Job[Figures]:
        """Return the job that measures a case."""
        del answers
        return CaseJob(item, str(Path.cwd()), new_token(), self._settings)

    def lose(self, item: Case, error: WorkerLostError) -> Figures:
        """Raise `CaseFailedError`: figures with a gap would be of something else."""
        raise CaseFailedError(f"{describe(item)}: {error}, again and again") from error

    def fault(self, item: Case, answers: Sequence[Figures]) -> str:
        """Return nothing: a case would come out the same."""
        del item, answers
        return ""

    def finish(self, item: Case, answers: Sequence[Figures]) -> Row:
        """Keep the figures. Raises `StoreError`."""
        (figures,) = answers
        self.figures[item] = figures
        if self._store is not None:
            self._store.add(figures)
        last = (sight for sight in figures.sights if sight.round == item.rounds and sight.kind not in HAS_NO_VIEW)
        return Row(
            name=describe(item),
            outcome="stuck" if figures.is_stuck else "measured",
            is_good=not figures.is_stuck,
            seconds=figures.seconds,
            about=f"{Share.count(sight.in_view for sight in last)} % in view at the end",
            record=figures,
        )

    def release(self, item: Case, answers: Sequence[Figures]) -> None:
        """Let go of nothing: cases share nothing."""


def main(folder: Path) -> None:
    """Measure the session that a folder asks for, in that folder."""
    with held(folder):
        job = msgspec.json.decode((folder / ASKED).read_bytes(), type=CaseJob)
        figures = asyncio.run(measure_in(folder, job.case, job.settings))
        write_new(folder / ANSWERED, to_json(figures))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
