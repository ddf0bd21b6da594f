"""Building, trying and describing the distributions. Run by `scripts/package`."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import select
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
PATIENCE = 60
MAX_MEGABYTES = 60
NEEDED = ("tenuto/cli/main.py", "tenuto/py.typed", "licenses/LICENSE")
UNWANTED = ("tests/", "scripts/", ".venv", ".git/")


def main(words: list[str]) -> int:
    """Run what `scripts/package` was asked for; returns the exit code."""
    match words:
        case []:
            return build() or weigh() or try_everywhere()
        case ["build"]:
            return build()
        case ["extras"]:
            return try_extras()
        case ["sbom"]:
            return describe_parts()
        case _:
            print("usage: scripts/package [build | extras | sbom]", file=sys.stderr)
            return 2


def build() -> int:
    """Build both into an empty dist/ and look into them."""
    shutil.rmtree(DIST, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", DIST, ROOT], check=True, stdout=subprocess.DEVNULL)
    [wheel], [archive] = DIST.glob("*.whl"), DIST.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
    with tarfile.open(archive) as opened:
        sources = opened.getnames()
    faults = [f"{wheel.name} lacks {need}" for need in NEEDED if not any(name.endswith(need) for name in names)]
    faults += [f"{wheel.name} has {name}" for name in names for part in UNWANTED if name.startswith(part)]
    faults += [
        f"{archive.name} lacks {need}"
        for need in ("pyproject.toml", "LICENSE", "README.md")
        if not any(name.endswith("/" + need) for name in sources)
    ]
    for fault in faults:
        print(f"package: {fault}")
    print(
        f"package: {wheel.name} {wheel.stat().st_size // 1000} kB, {archive.name} {archive.stat().st_size // 1000} kB"
    )
    return 1 if faults else 0


def weigh() -> int:
    """Say how much an installation without extras downloads."""
    [wheel] = DIST.glob("*.whl")
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        fetch = [venv / "bin" / "python", "-m", "pip", "download", "-q", "-d", Path(folder) / "all", wheel]
        subprocess.run(fetch, check=True, stderr=subprocess.DEVNULL)
        sizes = [file.stat().st_size for file in (Path(folder) / "all").iterdir()]
    size = sum(sizes) / 1e6
    print(f"package: {len(sizes)} files of {size:.0f} MB are downloaded, at most {MAX_MEGABYTES} may be")
    return int(size > MAX_MEGABYTES)


def try_everywhere() -> int:
    """Install the wheel into a fresh environment of each Python and start it there."""
    found = subprocess.run([ROOT / "scripts" / "matrix", "--list"], capture_output=True, text=True, check=True).stdout
    pythons = [line.split(" ", 1) for line in found.splitlines() if line[:1].isdigit()]
    [wheel] = DIST.glob("*.whl")
    bad = 0
    tools = [name for name in INSTALLERS if shutil.which(name)]
    for name in INSTALLERS:
        if name not in tools:
            print(f"package: {name} is not here: installing with it is not tried")
    for version, python in pythons:
        with tempfile.TemporaryDirectory() as folder:
            said = _try_one(python, wheel, Path(folder))
        print(f"package: {version}: {said or 'installed, ran without a screen, and on one'}")
        bad += bool(said)
        for name in tools:
            with tempfile.TemporaryDirectory() as folder:
                said = _try_installer(name, python, wheel, Path(folder))
            print(f"package: {version}: {name}: {said or 'installed, and ran'}")
            bad += bool(said)
    return 1 if bad or not pythons else 0


INSTALLERS: dict[str, list[str]] = {
    "uv": ["uv", "tool", "install", "-q", "--python", "PYTHON", "WHEEL"],
    "uvx": ["uvx", "-q", "--python", "PYTHON", "--from", "WHEEL", "tenuto", "--version"],
    "pipx": ["pipx", "install", "-q", "--python", "PYTHON", "WHEEL"],
}
"""How users install a program with each; `uvx` runs it right away."""


def _try_installer(name: str, python: str, wheel: Path, place: Path) -> str:
    """Return what went wrong, empty where nothing did; nothing is left outside of `place` but the installer's cache."""
    programs = place / "bin"
    own = {"UV_TOOL_DIR": place / "tools", "UV_TOOL_BIN_DIR": programs, "UV_PYTHON_DOWNLOADS": "never"}
    own |= {"PIPX_HOME": place / "pipx", "PIPX_BIN_DIR": programs, "PIPX_MAN_DIR": place / "man"}
    environ = os.environ | {key: str(value) for key, value in own.items()}
    words = [{"PYTHON": python, "WHEEL": str(wheel)}.get(word, word) for word in INSTALLERS[name]]
    steps = [words] if name == "uvx" else [words, [str(programs / "tenuto"), "--version"]]
    for step in steps:
        done = subprocess.run(step, capture_output=True, text=True, env=environ, check=False)
        if done.returncode:
            return f"{' '.join(step[:3])}: exit {done.returncode}: {done.stderr.strip()[-300:]}"
    return "" if done.stdout.startswith("tenuto ") else f"it said {done.stdout!r}"


DEVELOPMENT = ("dev", "docs", "test")


def try_extras() -> int:
    """Install the wheel with each extra that users choose, and start it; some are large, so nobody is asked to wait."""
    [wheel] = DIST.glob("*.whl")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    bad = 0
    for extra in sorted(set(project["optional-dependencies"]) - set(DEVELOPMENT)):
        with tempfile.TemporaryDirectory() as folder:
            venv = Path(folder) / "venv"
            said = _make_environment(sys.executable, venv, f"{wheel}[{extra}]")
            if not said:
                done = subprocess.run([venv / "bin" / "tenuto", "--version"], capture_output=True, check=False)
                said = "" if not done.returncode else f"exit {done.returncode}"
        print(f"package: [{extra}]: {said or 'installed, and ran'}")
        bad += bool(said)
    return int(bool(bad))


def _try_one(python: str, wheel: Path, place: Path) -> str:
    """Return what went wrong with one Python, empty where nothing did."""
    venv, home = place / "venv", place / "home"
    home.mkdir()
    made = _make_environment(python, venv, wheel)
    if made:
        return made
    environ = {"PATH": f"{venv / 'bin'}:/usr/bin:/bin", "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    program = str(venv / "bin" / "tenuto")
    for words, expected in ((["--version"], "tenuto "), (["-p", "list"], ""), (["doctor", "--json"], '"rows"')):
        done = subprocess.run(
            [program, *words], cwd=home, env=environ, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        # the doctor counts what a bare machine lacks as problems
        if (done.returncode and words[0] != "doctor") or expected not in done.stdout or not done.stdout.strip():
            return f"tenuto {' '.join(words)}: exit {done.returncode}: {(done.stderr or done.stdout)[-300:]}"
    return _start_screens(program, home, environ)


def _make_environment(python: str, venv: Path, wheel: Path | str) -> str:
    if uv := shutil.which("uv"):
        steps = [
            [uv, "venv", "-q", "--python", python, venv],
            [uv, "pip", "install", "-q", "--python", venv / "bin" / "python", wheel],
        ]
    else:
        steps = [
            [python, "-m", "venv", venv],
            [venv / "bin" / "python", "-m", "pip", "install", "-q", "--disable-pip-version-check", wheel],
        ]
    for step in steps:
        done = subprocess.run([str(word) for word in step], capture_output=True, text=True, check=False)
        if done.returncode:
            return f"cannot be installed: {done.stderr.strip()[-300:]}"
    return ""


def _start_screens(program: str, home: Path, environ: dict[str, str]) -> str:
    for screen in ([], ["--inline"]):
        shown, code = _in_a_terminal([program, *screen], home, environ)
        if code or b"offline" not in shown:
            return f"the screen {screen or 'full'}: exit {code}: {shown[-300:]!r}"
    return ""


def _in_a_terminal(words: list[str], cwd: Path, environ: dict[str, str]) -> tuple[bytes, int]:
    """Start it, wait for the model's name, leave it with Ctrl+C twice; return what was shown, and the exit code."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(cwd)
        os.execve(words[0], words, environ)
    shown, deadline, left = b"", time.monotonic() + PATIENCE, False
    with contextlib.suppress(OSError):
        while time.monotonic() < deadline:
            ready, _, _ = select.select([terminal], [], [], 1.0)
            if ready:
                shown += os.read(terminal, 65_536)
            elif b"offline" in shown:  # nothing more comes: it is up
                left = True
                os.write(terminal, b"\x03\x03")
    if not left or time.monotonic() >= deadline:
        os.kill(child, 9)
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


NO_PARTS = ("pip", "setuptools")
"""What an environment is made with, and no part of Tenuto."""


def describe_parts() -> int:
    """Write the bill of materials of a fresh installation, and hold it against the schema of CycloneDX."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        [wheel] = DIST.glob("*.whl") if DIST.is_dir() else [None]
        if wheel is None:
            print("package: build first: scripts/package build", file=sys.stderr)
            return 1
        fault = _make_environment(sys.executable, venv, wheel)
        if fault:
            print(f"package: {fault}", file=sys.stderr)
            return 1
        target = DIST / "sbom.cdx.json"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "cyclonedx_py",
                "environment",
                venv / "bin" / "python",
                "--pyproject",
                ROOT / "pyproject.toml",
                "--output-reproducible",
                "-o",
                target,
            ],
            check=True,
        )
    bill = json.loads(target.read_text())
    bill["metadata"]["component"]["version"] = wheel.name.split("-")[1]
    bill["components"] = [part for part in bill["components"] if part["name"] not in NO_PARTS]
    kept = {part["bom-ref"] for part in (*bill["components"], bill["metadata"]["component"])}
    bill["dependencies"] = [row for row in bill["dependencies"] if row["ref"] in kept]
    target.write_text(json.dumps(bill, indent=2) + "\n")
    fault = JsonStrictValidator(SchemaVersion.from_version(bill["specVersion"])).validate_str(target.read_text())
    print(f"package: {target.relative_to(ROOT)}: {len(bill['components'])} parts{f': {fault}' if fault else ''}")
    return int(fault is not None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
