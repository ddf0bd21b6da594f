"""Who trusts what: decisions are bound to content and to one directory, and their file survives everything (R-085)."""

from __future__ import annotations

import os
import stat
import tempfile
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.config.consent import Consent, Decision, TrustError, TrustItem, project_of
from tenuto.private_files import doubt_home


def item(name: str = "model", digest: str = "d1", kind: str = "setting") -> TrustItem:
    return TrustItem(kind=kind, name=name, does="sets it", file=".tenuto/settings.toml", digest=digest)  # type: ignore[arg-type]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    return place


def test_r085_a_decision_holds_for_this_item_with_this_content_and_for_no_other(home: Path, work: Path) -> None:
    consent, project = Consent(home), project_of(work, home)
    assert consent.verdict(project, item()) == "waiting"
    consent.decide(project, [item()], trusted=True)
    assert consent.verdict(project, item()) == "trusted"
    assert consent.verdict(project, item(digest="d2")) == "changed"
    assert consent.verdict(project, item("mode")) == "waiting"
    assert consent.verdict(project, item(kind="hook")) == "waiting"
    consent.decide(project, [item(digest="d2")], trusted=False)
    assert consent.verdict(project, item(digest="d2")) == "refused"
    assert consent.verdict(project, item()) == "changed"


def test_r085_another_directory_at_the_same_path_and_the_same_one_elsewhere_are_asked_about(
    home: Path, work: Path
) -> None:
    consent = Consent(home)
    consent.decide(project_of(work, home), [item()], trusted=True)
    moved = work.with_name("moved")
    work.rename(moved)
    assert consent.verdict(project_of(moved, home), item()) == "waiting"
    work.mkdir()
    assert consent.verdict(project_of(work, home), item()) == "changed"
    assert consent.of(project_of(work, home)) == ()
    work.rmdir()
    moved.rename(work)
    assert consent.verdict(project_of(work, home), item()) == "trusted"


def test_a_link_to_a_project_is_the_project(home: Path, work: Path) -> None:
    consent = Consent(home)
    consent.decide(project_of(work, home), [item()], trusted=True)
    link = work.with_name("link")
    link.symlink_to(work)
    assert consent.verdict(project_of(link, home), item()) == "trusted"


def test_what_has_no_digest_is_never_trusted(home: Path, work: Path) -> None:
    consent, project = Consent(home), project_of(work, home)
    consent.decide(project, [item(digest="")], trusted=True)
    assert consent.verdict(project, item(digest="")) == "waiting"


def test_r075_the_file_is_the_users_alone_and_keeps_their_comments(
    home: Path, work: Path, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(partial(os.umask, os.umask(0)))
    consent, project = Consent(home), project_of(work, home)
    consent.decide(project, [item(), item("other")], trusted=True)
    assert stat.S_IMODE(consent.file.stat().st_mode) == 0o600 and stat.S_IMODE(home.stat().st_mode) == 0o700
    text = consent.file.read_text()
    consent.file.write_text(text.replace("[[decision]]", "# mine\n[[decision]]", 1))
    consent.decide(project, [item("other")], trusted=False)
    assert consent.forget(project, [item("third").id]) == 0
    assert "# mine" in consent.file.read_text()
    assert [(one.name, one.trusted) for one in consent.all()] == [("model", True), ("other", False)]
    assert consent.forget(project) == 2
    assert consent.all() == ()
    consent.decide(project, [item()], trusted=True)
    assert consent.verdict(project, item()) == "trusted"


@pytest.mark.parametrize("text", ["[[decision]]\nproject = 1", "\0", "[", "decision = 3"])
def test_a_broken_file_trusts_nothing_and_stays(home: Path, work: Path, text: str) -> None:
    home.mkdir()
    consent, project = Consent(home), project_of(work, home)
    consent.file.write_text(text)
    consent.file.chmod(0o600)
    assert consent.verdict(project, item()) == "waiting" and "so nothing in it counts" in consent.problem
    with pytest.raises(TrustError):
        consent.decide(project, [item()], trusted=True)
    assert consent.file.read_text() == text


@pytest.mark.parametrize("mode", [0o622, 0o666, 0o620])
def test_s23_a_file_that_others_can_write_trusts_nothing(home: Path, work: Path, mode: int) -> None:
    consent, project = Consent(home), project_of(work, home)
    consent.decide(project, [item()], trusted=True)
    consent.file.chmod(mode)
    fresh = Consent(home)
    assert fresh.verdict(project, item()) == "waiting"
    assert "can be written by others, so nothing in it counts" in fresh.problem


def test_s23_a_home_that_others_can_write_is_named(home: Path) -> None:
    assert doubt_home(home) == ""
    home.mkdir(mode=0o700)
    assert doubt_home(home) == ""
    home.chmod(0o777)
    assert doubt_home(home) == f"{home} can be written by other users of this machine; chmod 700 {home} keeps it yours"
    home.chmod(0o755)
    assert doubt_home(home) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_s23_a_home_of_somebody_else_is_named(home: Path) -> None:
    home.mkdir(mode=0o700)
    os.chown(home, 1234, 1234)
    assert "belongs to another user" in doubt_home(home)


NAMES = st.text(st.characters(exclude_categories=[]), min_size=1, max_size=12)


@given(choices=st.lists(st.tuples(NAMES, st.sampled_from(["a", "b"]), st.booleans()), max_size=8))
def test_the_last_decision_about_an_item_is_the_one_that_holds(choices: list[tuple[str, str, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home, work = Path(folder, "home"), Path(folder, "work")
        work.mkdir()
        consent, project = Consent(home), project_of(work, home)
        last: dict[str, tuple[str, bool]] = {}
        for name, digest, trusted in choices:
            consent.decide(project, [item(name, digest)], trusted=trusted)
            last[item(name).id] = (name, digest, trusted)  # type: ignore[assignment]
        fresh = Consent(home)
        for name, digest, trusted in last.values():  # type: ignore[misc]
            assert fresh.verdict(project, item(name, digest)) == ("trusted" if trusted else "refused")
        assert all(isinstance(one, Decision) for one in fresh.all())
