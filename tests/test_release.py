"""What a release is made from: one version everywhere, notes from the changelog, packages that name real files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.version import __version__

ROOT = Path(__file__).parents[1]
PACKAGING = ROOT / "packaging"


def test_the_version_is_the_same_everywhere():
    feature = json.loads((PACKAGING / "devcontainer" / "src" / "tenuto" / "devcontainer-feature.json").read_text())
    formula = (PACKAGING / "homebrew" / "tenuto.rb").read_text()
    assert feature["version"] == __version__
    assert f"/tenuto-{__version__}.tar.gz" in formula


def test_the_notes_are_the_section_of_the_changelog():
    """Of what is not released yet; right after a release that is nothing, and the section of the version is there."""
    whole = (ROOT / "CHANGELOG.md").read_text()
    waiting, *released = whole.split("## Unreleased", 1)[1].split("\n## ")
    sections = [([], waiting), *([([__version__], released[0])] if released else [])]
    for words, section in sections:
        done = subprocess.run(
            [ROOT / "scripts" / "release", "notes", *words], capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == section.partition("\n")[2].strip()
    assert waiting.strip() or released


@pytest.mark.parametrize("words", [[], ["9"], ["0.2"], ["v0.2.0"], ["notes", "9.9.9"], ["0.2.0", "more"]])
def test_what_is_no_version_releases_nothing(words):
    done = subprocess.run([ROOT / "scripts" / "release", *words], capture_output=True, text=True, check=False)
    assert done.returncode and done.stderr
    assert f'"{__version__}"' in (ROOT / "src" / "tenuto" / "version.py").read_text()


def test_what_the_image_copies_is_there():
    text = (PACKAGING / "Dockerfile").read_text()
    for line in re.findall(r"^COPY (?!--)(.*)$", text, re.MULTILINE):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() for source in sources), line


@pytest.mark.parametrize("script", sorted(PACKAGING.rglob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_bash(script):
    subprocess.run(["bash", "-n", script], check=True)


def test_windows_is_told_at_once():
    """The program says what to do there, before it imports what Windows has not."""
    code = "import sys; sys.platform = 'win32'; sys.argv = ['tenuto']; from tenuto.cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "WSL" in done.stderr and "Traceback" not in done.stderr
