from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.saved_approvals import SavedApproval, SavedApprovals, SavedApprovalsError
from tenuto.protocol.entry import ApprovalEntry

ONE = SavedApproval(tool="bash", pattern="make test", directory="/p")
TWO = SavedApproval(tool="edit", pattern="/p/src/**", directory="/p")
ELSEWHERE = SavedApproval(tool="bash", pattern="make test", directory="/q")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "home" / "approvals.toml"


def test_answers_hold_in_their_directory_and_nowhere_else(file):
    answers = SavedApprovals(file)
    assert answers.all() == ()
    for answer in (ONE, TWO, ELSEWHERE, ONE):
        answers.add(answer)
    assert answers.all() == (ONE, TWO, ELSEWHERE)
    assert answers.of(Path("/p")) == (
        ApprovalEntry(tool="bash", pattern="make test", scope="project"),
        ApprovalEntry(tool="edit", pattern="/p/src/**", scope="project"),
    )
    assert answers.of(Path("/p/src")) == answers.of(Path("/")) == ()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["approvals.toml"]


def test_what_another_process_writes_is_seen(file):
    mine, other = SavedApprovals(file), SavedApprovals(file)
    mine.add(ONE)
    other.add(TWO)
    assert mine.all() == other.all() == (ONE, TWO)
    assert other.remove(ONE)
    assert mine.all() == (TWO,)
    assert not mine.remove(ONE)


def test_comments_of_the_user_stay(file):
    answers = SavedApprovals(file)
    answers.add(ONE)
    file.write_text(
        file.read_text() + "\n# only on weekdays\n[[allow]]\ntool = 'bash'  # mine\npattern = 'date'\n"
        "directory = '/p'\n"
    )
    answers.add(TWO)
    assert answers.remove(ONE)
    assert "# mine" in file.read_text()
    assert [answer.pattern for answer in answers.all()] == ["date", "/p/src/**"]


@pytest.mark.parametrize("text", ["allow = 3", "[[allow]]\ntool = 'bash'\n", "[[allow", "allow = [1]", "\xff"])
def test_a_broken_file_allows_nothing_and_is_not_overwritten(file, text):
    file.parent.mkdir()
    file.write_bytes(text.encode("latin-1"))
    answers = SavedApprovals(file)
    assert answers.all() == ()
    assert str(file) in answers.problem
    with pytest.raises(SavedApprovalsError, match="cannot be read"):
        answers.add(ONE)
    assert file.read_bytes() == text.encode("latin-1")
    file.write_text("")
    assert answers.all() == () and not answers.problem


def test_s23_a_file_that_others_can_write_allows_nothing(file):
    answers = SavedApprovals(file)
    answers.add(ONE)
    file.chmod(0o666)
    assert SavedApprovals(file).all() == ()
    with pytest.raises(SavedApprovalsError, match="can be written by others"):
        SavedApprovals(file).add(TWO)


def test_a_home_that_cannot_be_written_is_said(tmp_path):
    (tmp_path / "home").write_text("a file")
    with pytest.raises(SavedApprovalsError):
        SavedApprovals(tmp_path / "home" / "approvals.toml").add(ONE)


@given(patterns=st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4, unique=True))
def test_every_pattern_comes_back_as_it_was(tmp_path_factory, patterns):
    file = tmp_path_factory.mktemp("home") / "approvals.toml"
    answers = SavedApprovals(file)
    for pattern in patterns:
        answers.add(SavedApproval(tool="bash", pattern=pattern, directory="/p"))
    assert [answer.pattern for answer in SavedApprovals(file).all()] == patterns
    tomllib.loads(file.read_text() if patterns else "")
    for answer in reversed(answers.all()):
        assert answers.remove(answer)
    assert SavedApprovals(file).all() == ()
