"""Whether a lock that the system gave proves that nobody else has it: only where all who can see the file share it.

That is so on a local file system. Kinds that are not known to be local are none: what is not sure is asked about.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

_LOCAL = frozenset(
    {"apfs", "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "hfs", "jfs", "overlay", "ramfs", "reiserfs", "tmpfs"}
    | {"ufs", "xfs", "zfs"}
)
_MOUNTS = Path("/proc/self/mountinfo")
_ESCAPE = re.compile(rb"\\([0-7]{3})")
_LISTED = re.compile(rb".* on (.*) \(([^()]*)\)")
_PATIENCE = 5.0


def is_local(directory: Path) -> bool:
    """Say whether a directory is on a file system of this machine alone, as far as that can be known."""
    place = os.path.realpath(os.fsencode(directory))
    try:
        if sys.platform == "darwin":
            return "local" in _find(place, _mounts_of_darwin())
        return not _LOCAL.isdisjoint(_find(place, parse_mounts(_MOUNTS.read_bytes())))
    except OSError:
        return False


def _find(place: bytes, mounts: list[tuple[bytes, frozenset[str]]]) -> frozenset[str]:
    """Return what is known of the mount that holds a place: the deepest one, of several there the last."""
    best, found = -1, frozenset[str]()
    for point, facts in mounts:
        inside = place == point or place.startswith(point.rstrip(b"/") + b"/")
        if inside and len(point) >= best:
            best, found = len(point), facts
    return found


def parse_mounts(table: bytes) -> list[tuple[bytes, frozenset[str]]]:
    """Return mount points and kinds of file systems from the text of `/proc/self/mountinfo`."""
    mounts: list[tuple[bytes, frozenset[str]]] = []
    for line in table.split(b"\n"):
        before, separator, after = line.partition(b" - ")
        words = before.split(b" ")
        if separator and len(words) > 4:
            point = _ESCAPE.sub(lambda found: bytes([int(found[1], 8)]), words[4])
            mounts.append((point, frozenset([after.split(b" ")[0].decode("ascii", "replace")])))
    return mounts


def _mounts_of_darwin() -> list[tuple[bytes, frozenset[str]]]:
    import subprocess

    try:
        listed = subprocess.run(["/sbin/mount"], capture_output=True, check=False, timeout=_PATIENCE).stdout
    except subprocess.SubprocessError:
        return []
    return parse_listed_mounts(listed)


def parse_listed_mounts(text: bytes) -> list[tuple[bytes, frozenset[str]]]:
    """Return mount points and what stands in brackets behind them, from what `mount` prints on macOS."""
    found = [one for line in text.splitlines() if (one := _LISTED.fullmatch(line))]
    return [(one[1], frozenset(one[2].decode("ascii", "replace").split(", "))) for one in found]
