"""A setting that the screen keeps: in the user's own file, which stays theirs."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from tenuto.config.settings_writer import SettingNotKept, keep_setting

OWN = """# mine
model = "offline/tenuto"   # the cheap one

[ui]
# at night
theme = 'dark'  # or light
reduce_motion = true

[tools]
bash_timeout = 5.0
"""


def test_everything_else_stays_as_the_user_wrote_it(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    file.write_text(OWN)
    assert keep_setting(tmp_path, "ui", "theme", "light") == file
    assert file.read_text() == OWN.replace("'dark'", '"light"')


@pytest.mark.parametrize(
    "before", ["", "model = 'x'\n", "ui.inline = true\n", "ui = { inline = true }\n", "[ui]\n", "# only a remark"]
)
def test_the_value_is_read_back_whatever_was_there(tmp_path: Path, before: str) -> None:
    (tmp_path / "settings.toml").write_text(before)
    keep_setting(tmp_path, "ui", "theme", 'my "own"')
    values = tomllib.loads((tmp_path / "settings.toml").read_text())
    assert values == {**tomllib.loads(before), "ui": {**tomllib.loads(before).get("ui", {}), "theme": 'my "own"'}}
    assert before.strip() in (tmp_path / "settings.toml").read_text() or "ui" in before


def test_a_home_that_is_not_there_is_made_for_the_user_alone(tmp_path: Path) -> None:
    home = tmp_path / "a" / "home"
    keep_setting(home, "ui", "theme", "light")
    assert (home / "settings.toml").read_text() == '[ui]\ntheme = "light"\n'
    assert (home / "settings.toml").stat().st_mode & 0o777 == 0o600
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_link_stays_a_link_and_the_mode_stays(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "tenuto.toml"
    real.write_text("")
    real.chmod(0o644)
    (tmp_path / "settings.toml").symlink_to(real)
    keep_setting(tmp_path, "ui", "theme", "light")
    assert (tmp_path / "settings.toml").is_symlink()
    assert "light" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o644
    assert sorted(one.name for one in real.parent.iterdir()) == ["tenuto.toml"]


@pytest.mark.parametrize("before", ["[ui", "ui = 3", b"\xff\xfe"])
def test_a_file_that_is_broken_is_left_alone(tmp_path: Path, before: str | bytes) -> None:
    file = tmp_path / "settings.toml"
    data = before if isinstance(before, bytes) else before.encode()
    file.write_bytes(data)
    with pytest.raises(SettingNotKept, match=str(file)):
        keep_setting(tmp_path, "ui", "theme", "light")
    assert file.read_bytes() == data
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_home_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(SettingNotKept, match="cannot be written"):
        keep_setting(tmp_path, "ui", "theme", "light")
    tmp_path.chmod(0o700)


def test_a_folder_in_the_place_of_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").mkdir()
    with pytest.raises(SettingNotKept, match="cannot be written"):
        keep_setting(tmp_path, "ui", "theme", "light")
