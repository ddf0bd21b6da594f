from __future__ import annotations

from tenuto.config.instructions import MAX_CHARS, read_instructions


def test_the_general_comes_first_and_the_nearest_last(tmp_path):
    home, root = tmp_path / "home", tmp_path / "repo"
    inner = root / "a" / "b"
    inner.mkdir(parents=True)
    home.mkdir()
    (root / ".git").mkdir()
    (tmp_path / "AGENTS.md").write_text("outside of the repository")
    (home / "AGENTS.md").write_text("global")
    (root / "AGENTS.md").write_text("root")
    (root / "a" / "CLAUDE.md").write_text("middle")
    (inner / "AGENTS.md").write_text("near")
    assert [file.text for file in read_instructions(home, inner)] == ["global", "root", "middle", "near"]


def test_the_same_text_under_both_names_is_given_once(tmp_path):
    (tmp_path / "AGENTS.md").write_text("rules")
    (tmp_path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert len(read_instructions(tmp_path / "none", tmp_path)) == 1


def test_an_unreadable_or_empty_file_is_left_out(tmp_path):
    (tmp_path / "AGENTS.md").mkdir()
    (tmp_path / "CLAUDE.md").write_text("  \n")
    assert read_instructions(tmp_path / "none", tmp_path) == []


def test_a_giant_file_is_cut_and_says_so(tmp_path):
    (tmp_path / "AGENTS.md").write_text("x" * (MAX_CHARS + 5))
    (file,) = read_instructions(tmp_path / "none", tmp_path)
    assert file.truncated
    assert str(MAX_CHARS + 5) in file.text
