"""What the length of a session costs: the same things done in sessions of 20 to 1 000 000 entries (R-069).

`python -m scripts.bench_lib.lengths DIRECTORY` does them in one session and prints its figures as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from scripts.bench_lib.measures import PATIENCE, Figures, Lab, Measure, first_token, watch_start
from scripts.bench_lib.process import FailedRunError, family, high_water, run
from scripts.bench_lib.program import ROOT, Program

if TYPE_CHECKING:
    from tenuto.session.session import Session

LENGTHS = {"empty": (20, 2_000), "1MB": (1_000, 1_000_000), "100MB": (100_000, 100_000_000), "1GB": (1_000_000, 10**9)}
"""Entries and bytes, about."""
RARE = r"^result 31:"


def opening(label: str) -> Callable[[Lab, Program], Figures]:
    """From exec to the end of a session's transcript on screen, and the memory of all that."""

    def measure(lab: Lab, program: Program) -> Figures:
        directory = session_of(lab, label)
        with lab.open(program, f"--resume {directory.name}") as terminal:
            figures = watch_start(terminal)
            end = f"Answer {LENGTHS[label][0]}".encode()
            shown = first_token(terminal, end) or terminal.wait_for(end, PATIENCE)
            if shown is None:
                raise FailedRunError("the end of the transcript did not come on screen")
            memory = sum(high_water(pid) for pid in family(terminal.pid))
            return figures | {"transcript ms": shown * 1000, "memory MB": memory}

    return measure


def inside(label: str) -> Callable[[Lab, Program], Figures]:
    """Opening, viewing, appending, going through everything, recalling: in a process that does nothing else."""

    def measure(lab: Lab, program: Program) -> Figures:
        words = [str(ROOT / ".venv/bin/python"), "-m", "scripts.bench_lib.lengths", str(session_of(lab, label))]
        done = run(words, lab.environ(program) | {"PYTHONPATH": f"{ROOT}/src:{ROOT}"}, ROOT)
        return json.loads(done.output)

    return measure


def session_of(lab: Lab, label: str) -> Path:
    """Return the folder of the session of that length; it is written when it is asked for first."""
    from tests.session.long import write_session

    if label not in lab.sessions:
        entries, size = LENGTHS[label]
        home = Path(lab.surroundings.environ()["TENUTO_HOME"])
        lab.sessions[label] = write_session(home, lab.surroundings.project, entries, size, "openai-chat/test")
    return lab.sessions[label]


def main(directory: Path) -> None:
    """Do everything once and print the figures; the session is left as it was."""
    from tenuto.session.search.index import SEARCH_NAME
    from tenuto.session.session import Session
    from tenuto.tool.search.record import Question, recall
    from tenuto.tool.search.search import Stop

    figures: Figures = {}

    def timed(name: str, action: Callable[[], object]) -> None:
        started = time.perf_counter()
        action()
        figures[f"{name} ms"] = (time.perf_counter() - started) * 1000

    started = time.perf_counter()
    session = Session.open(directory, read_only=True)
    figures["open ms"] = (time.perf_counter() - started) * 1000
    timed("view", session.get_llm_history)
    figures["memory MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    timed("to the top", lambda: sum(1 for _ in reversed(session.path())))
    rare = Question(query=RARE, regex=True)

    def ask(question: Question) -> str:
        return recall(question, session.path(), session.store.outputs, Stop())

    def index() -> None:
        done, whole = 0, 1
        while done < whole:
            done, whole = session.grow_search()

    (directory / SEARCH_NAME).unlink(missing_ok=True)
    timed("recall by the log", lambda: ask(rare))
    timed("index", index)
    found = directory / SEARCH_NAME
    figures["index MB"] = found.stat().st_size / 1024**2 if found.exists() else 0.0
    timed("recall", lambda: ask(rare))
    timed("recall first", lambda: ask(Question(query="result", limit=1)))
    timed("recall nothing", lambda: ask(Question(query="zebra unicorn")))
    timed("recall apart", lambda: ask(Question(query="please lost")))
    timed("Ctrl+F nothing", lambda: look_through(session))
    found.unlink(missing_ok=True)
    figures["memory after MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write(json.dumps(figures))


def look_through(session: Session) -> None:
    """Look for a word that is nowhere as Ctrl+F does: question by question, until nothing is left."""
    from types import SimpleNamespace
    from typing import cast

    from tenuto.core.state.live import LiveSession
    from tenuto.core.transcript import find_earlier
    from tenuto.protocol.operation import FindEarlierOperation

    live = cast("LiveSession", SimpleNamespace(id=session.id, session=session))
    before = session.highest_seq + 1
    while before:
        question = FindEarlierOperation(session_id=session.id, query="hippopotamus", before=before, newest=True)
        before = find_earlier(live, question).before


LENGTH_MEASURES = tuple(
    measure
    for label in LENGTHS
    for measure in (
        Measure(f"open-{label}", "interactive", opening(label), 0.5, for_peers=False, named_only=True),
        Measure(f"within-{label}", "interactive", inside(label), 0.5, for_peers=False, named_only=True),
    )
)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
