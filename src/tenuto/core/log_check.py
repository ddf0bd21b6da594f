"""The log's own check, with which every compaction begins (seed 001: the session file is repaired first).

Reading a session repairs what a crash left: damaged lines are skipped, a lost header is written, open calls get their
results. On a session that is open nothing can be damaged but what this process has not written yet, or not in full:
a call without a result, and lines that the disk refused.
"""

from __future__ import annotations

from tenuto.core.live import LiveSession


def check_log(live: LiveSession) -> None:
    """Give every open call a result, and try again to write what is not on disk; the user is told of what is not."""
    live.session.close_open_calls()
    live.session.retry_save()
    live.watch_saving()
