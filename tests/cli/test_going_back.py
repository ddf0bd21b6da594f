"""`/tree` and `/rewind` without a screen: printed as text, moved by number, from one process to the next."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import tenuto
from tests.core.going_back import NOTES, script
from tests.program import TENUTO
from tests.server import ServerThread

SOURCE = str(Path(tenuto.__file__).parents[1])


def test_the_tree_is_printed_and_moved_in_by_number(tmp_path):
    (tmp_path / "work").mkdir()

    def run(prompt: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*TENUTO, "-p", prompt, "--model", "openai-chat/test", "--mode", "auto", *arguments],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path / "work",
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "TENUTO_HOME": str(tmp_path / "home"),
                "PYTHONPATH": SOURCE,
                **server.environ(),
            },
            stdin=subprocess.DEVNULL,
            timeout=60,
        )

    with ServerThread(script) as server:
        assert run("one").stdout == "You said one.\n"
        assert run("write made.txt text", "-c").stdout == "done\n"
        shown = run("/tree", "-c").stdout
        found = re.search(r"^(\d+) +│ You: write made.txt text", shown, re.MULTILINE)
        assert found, shown
        seq = found[1]
        offered = run("/rewind", "-c").stdout
        assert re.search(rf"^{seq} +write made.txt text  #{seq} · 1 file changed$", offered, re.MULTILINE), offered
        done = run(f"/rewind {seq} both", "-c")
        assert (done.returncode, done.stdout) == (0, "write made.txt text\n"), done.stderr
        assert "Continuing from before" in done.stderr and "before: made.txt" in done.stderr
        assert not (tmp_path / "work" / "made.txt").exists()
        assert run("other", "-c").stdout == "You said other.\n"
        assert b"write made.txt" not in server.requests[-1].raw
        answer = re.search(r"^(\d+) +    Model: done", run("/tree", "-c").stdout, re.MULTILINE)
        assert answer, "on a branch that was left, moved in"
        done = run(f"/tree {answer[1]} summary the ports", "-c")
        assert done.returncode == 0 and "Notes sum up the old branch" in done.stderr, done.stderr
        run("and now?", "-c")
        last = server.requests[-1].raw.decode().replace("\\n", "\n")
        assert NOTES in last and "made.txt" in last and "You said other" not in last
        failed = run("/tree 9999", "-c")
        assert "there is no entry 9999" in failed.stdout + failed.stderr
