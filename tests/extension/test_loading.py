"""Where extensions are found, and what is said of those that cannot be used."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tenuto.config.settings import ExtensionSettings
from tenuto.config.sources import load_settings
from tenuto.extension.finding import LoadingError, find_extensions, import_file, list_files, setup_of

SETUP = "def setup(tenuto):\n    return {!r}\n"


def write(path: Path, text: str = SETUP.format("")) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Put a package with entry points where an installation would."""

    def install(points: str, **modules: str) -> None:
        site = tmp_path / "site"
        info = site / "made_up-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[tenuto.extensions]\n{points}\n")
        for name, text in modules.items():
            (site / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(site)

    return install


def names(found) -> list[str]:
    return [source.name for source in found.sources]


def test_files_and_packages_are_found_by_name_and_nothing_runs(tmp_path):
    folder = tmp_path / "extensions"
    write(folder / "zeta.py", "raise SystemExit")
    write(folder / "alpha" / "__init__.py", "raise SystemExit")
    for other in ("_private.py", ".hidden.py", "notes.txt", "__pycache__/x.py", "empty/readme.md"):
        write(folder / other)
    assert [path.name for path in list_files(folder)] == ["alpha", "zeta.py"]
    assert names(find_extensions(tmp_path, ExtensionSettings())) == ["alpha", "zeta"]


def test_a_missing_folder_is_no_problem(tmp_path):
    found = find_extensions(tmp_path, ExtensionSettings())
    assert (found.sources, found.problems) == ((), ())


def test_paths_of_the_settings_are_seen_from_home(tmp_path):
    write(tmp_path / "one.py")
    write(tmp_path / "many" / "two.py")
    write(tmp_path / "many" / "three" / "__init__.py")
    found = find_extensions(tmp_path, ExtensionSettings(paths=("one.py", str(tmp_path / "many"), "gone.py")))
    assert names(found) == ["one", "three", "two"]
    assert len(found.problems) == 1
    assert "gone.py" in found.problems[0]


def test_disabled_ones_and_second_ones_of_a_name_are_left_out(tmp_path):
    write(tmp_path / "extensions" / "one.py")
    write(tmp_path / "extensions" / "two.py")
    write(tmp_path / "other" / "two.py")
    found = find_extensions(tmp_path, ExtensionSettings(paths=("other",), disabled=("one",)))
    assert names(found) == ["two"]
    assert found.sources[0].place == str(tmp_path / "extensions" / "two.py")
    assert len(found.problems) == 1
    assert str(tmp_path / "other" / "two.py") in found.problems[0]


def test_the_same_path_named_twice_is_no_problem(tmp_path):
    write(tmp_path / "extensions" / "one.py")
    found = find_extensions(tmp_path, ExtensionSettings(paths=("extensions/one.py", "extensions")))
    assert names(found) == ["one"]
    assert found.problems == ()


def test_installed_packages_come_first(tmp_path, installed):
    installed(
        "b_module = made_up_module\na_function = made_up_function:begin",
        made_up_module=SETUP.format("module"),
        made_up_function="def begin(tenuto):\n    return 'function'\n",
    )
    write(tmp_path / "extensions" / "aaa.py", SETUP.format("file"))
    found = find_extensions(tmp_path, ExtensionSettings())
    assert names(found) == ["a_function", "b_module", "aaa"]
    assert [source.load()(None) for source in found.sources] == ["function", "module", "file"]


def test_a_package_can_import_its_own_modules_and_has_working_dataclasses(tmp_path):
    package = tmp_path / "notes.v2"
    write(package / "__init__.py", "from .inner import VALUE\nfrom . import inner\ndef setup(tenuto): return VALUE\n")
    write(
        package / "inner.py",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    n: int\n"
        "VALUE = A(3).n\n",
    )
    assert setup_of(import_file(package, "notes.v2"))(None) == 3


def test_two_files_of_the_same_name_are_two_modules(tmp_path):
    modules = [import_file(write(tmp_path / place / "same.py", f"place = {place!r}"), "same") for place in ("a", "b")]
    assert [module.place for module in modules] == ["a", "b"]


def test_a_file_that_fails_leaves_no_half_module(tmp_path):
    before = set(sys.modules)
    with pytest.raises(ZeroDivisionError):
        import_file(write(tmp_path / "bad.py", "1 / 0"), "bad")
    assert set(sys.modules) == before


def test_a_module_without_setup_is_named(tmp_path):
    with pytest.raises(LoadingError, match="setup"):
        setup_of(import_file(write(tmp_path / "idle.py", "value = 1"), "idle"))


def test_lists_can_be_set_by_variables_and_never_by_a_project(tmp_path):
    variables = {"TENUTO_EXTENSIONS__PATHS": '["a.py", "b"]', "TENUTO_EXTENSIONS__HOOK_TIMEOUT": "7"}
    write(tmp_path / ".tenuto" / "settings.toml", '[extensions]\npaths = ["evil.py"]\n')
    settings, problems = load_settings(tmp_path / "home", tmp_path, variables)
    assert settings.extensions == ExtensionSettings(paths=("a.py", "b"), hook_timeout=7)
    assert len(problems) == 1
    assert "extensions.paths is ignored" in problems[0]
    settings, problems = load_settings(tmp_path / "home", None, {"TENUTO_EXTENSIONS__PATHS": "[broken"})
    assert settings.extensions == ExtensionSettings()
    assert "extensions.paths" in problems[0]
