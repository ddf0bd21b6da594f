"""What lies beside the log: full tool outputs by name; images, and files as they were before a change, by hash."""

from __future__ import annotations

from pathlib import Path

from tenuto.private_files import make_directory, write_new
from tenuto.protocol.part import ImagePart
from tenuto.session.running import RunningCommands

OUTPUTS = "outputs"
BLOBS = "blobs"
RUNNING = "running"
"""Calls and commands of the user that have no entry yet."""
PROCESSES = "processes"
"""What runs on the machine for this session."""
_NAME_LENGTH = 80
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
_HEX = frozenset("0123456789abcdef")


class Store:
    """Files of one session. Nothing is created before something is stored."""

    def __init__(self, directory: Path) -> None:
        self.outputs = directory / OUTPUTS
        self.blobs = directory / BLOBS
        self.running = RunningCommands(directory / RUNNING)
        self.processes = directory / PROCESSES

    @property
    def has_files(self) -> bool:
        """Whether anything is stored. A folder that cannot be read counts as full."""
        try:
            return any(path.is_dir() and next(path.iterdir(), None) is not None for path in (self.outputs, self.blobs))
        except OSError:
            return True

    def save_output(self, name: str, data: bytes | str) -> Path:
        """Write a tool's full output under a name that is made safe and unique; return its path. Raises `OSError`."""
        if isinstance(data, str):
            data = data.encode("utf-8", "replace")
        make_directory(self.outputs)
        base = Path(_safe_name(name))
        for number in range(1, 1_000_000):
            path = self.outputs / (base if number == 1 else f"{base.stem}-{number}{base.suffix}")
            try:
                write_new(path, data)
            except FileExistsError:
                continue
            return path
        raise FileExistsError(name)

    def save_image(self, data: bytes, media_type: str, *, name: str = "", width: int = 0, height: int = 0) -> ImagePart:
        """Write an image under its hash, once, and return the part that stands for it. Raises `OSError`."""
        digest = self.save_bytes(data)
        return ImagePart(sha256=digest, media_type=media_type, size=len(data), name=name, width=width, height=height)

    def save_bytes(self, data: bytes) -> str:
        """Write bytes under their hash, once, and return it. Raises `OSError`."""
        import hashlib

        digest = hashlib.sha256(data).hexdigest()
        path = self.blobs / digest
        if not (path.is_file() and path.stat().st_size == len(data)):
            make_directory(self.blobs)
            path.unlink(missing_ok=True)
            write_new(path, data)
        return digest

    def load_bytes(self, sha256: str) -> bytes:
        """Return the bytes behind a hash. Raises `FileNotFoundError` when they are not here (or the hash is none)."""
        if not sha256 or not set(sha256) <= _HEX:
            raise FileNotFoundError(sha256)
        return (self.blobs / sha256).read_bytes()

    def copy_blobs(self, other: Store) -> tuple[str, ...]:
        """Give another session the same images, as second names of the same files where possible; return their names.

        Raises `OSError`.
        """
        if not self.blobs.is_dir():
            return ()
        make_directory(other.blobs)
        names: list[str] = []
        for source in self.blobs.iterdir():
            names.append(source.name)
            try:
                (other.blobs / source.name).hardlink_to(source)
            except OSError:
                write_new(other.blobs / source.name, source.read_bytes())
        return tuple(names)


def _safe_name(name: str) -> str:
    safe = "".join(character if character in _SAFE else "-" for character in name).strip(".-")
    return safe[-_NAME_LENGTH:].lstrip(".-") or "output"
