"""`tenuto sessions export` as a script sees it, and the page in a real browser."""

from __future__ import annotations

import os
import re
import select
import shutil
import socket
import stat
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tenuto.protocol.entry import BranchEntry, HeaderEntry
from tenuto.protocol.message import AssistantMessage, ToolResultMessage, UserMessage
from tenuto.session.exporters.html.page import write_page
from tenuto.session.session import Session
from tests.session.build import answer, log_of, result, user
from tests.session.exporters.reading import ELEMENTS, check_page
from tests.session.exporters.samples import call, everything, number, source_of, text
from tests.session.exporters.test_html import HOSTILE

TENUTO = [sys.executable, "-m", "tenuto", "sessions", "export"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "home"


@pytest.fixture
def session(home: Path, tmp_path: Path):
    made = Session.create(home, tmp_path / "work", durability="none")
    made.append(user("mend the roof"))
    made.append(answer("I look.", ("c1",)))
    made.append(result("c1", "a long way down"))
    yield made
    made.close()


@pytest.fixture
def export(home: Path, tmp_path: Path):
    def run(*arguments: str, **options) -> subprocess.CompletedProcess[bytes]:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(home)}
        options = {"cwd": tmp_path / "work", **options}
        return subprocess.run(
            [*TENUTO, *arguments],
            check=False,
            capture_output=True,
            env=environ,
            timeout=60,
            stdin=subprocess.DEVNULL,
            **options,
        )

    return run


def test_a_session_is_exported_by_the_beginning_of_its_id_while_it_is_open(session, export, tmp_path: Path) -> None:
    done = export(session.id[:6])
    assert (done.returncode, done.stderr) == (0, b"")
    (made,) = (tmp_path / "work").iterdir()
    assert made.name.startswith("mend-the-roof-") and made.suffix == ".html"
    assert made.name in done.stdout.decode()
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert "a long way down" in check_page(made.read_text(encoding="utf-8")).by_id("transcript").text


def test_format_and_output(session, export, tmp_path: Path) -> None:
    assert export(session.id, "--format", "md", "--output", "notes").returncode == 0
    assert "> mend the roof" in (tmp_path / "work" / "notes.md").read_text(encoding="utf-8")
    assert export(session.id, "--output", "x.jsonl", "--active-path").returncode == 0
    assert (tmp_path / "work" / "x.jsonl").read_bytes() == log_of(session).read_bytes()


def test_to_standard_output(session, export) -> None:
    done = export(session.id, "--format", "jsonl", "--output", "-")
    assert (done.returncode, done.stdout) == (0, log_of(session).read_bytes())
    assert export(session.id, "--output", "-").stdout.startswith(b"<!DOCTYPE html>")


def test_an_existing_file_is_kept(session, export, tmp_path: Path) -> None:
    target = tmp_path / "work" / "mine.html"
    target.write_text("mine")
    done = export(session.id, "--output", "mine.html")
    assert done.returncode == 2
    assert b"exists already" in done.stderr and done.stderr.count(b"\n") == 1
    assert target.read_text() == "mine"
    assert export(session.id, "--output", "mine.html", "--force").returncode == 0
    assert target.read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ((), "ID"),
        (("nothing-like-it",), "there is no session nothing-like-it"),
        (("",), "there is no session"),
        (("../../etc",), "there is no session"),
        (("ID", "--format", "pdf"), "pdf"),
        (("ID", "--output", "x.pdf"), ".pdf does not tell the format"),
        (("ID", "--active-path"), "only jsonl"),
        (("ID", "--wrong"), "--wrong"),
        (("ID", "second"), "second"),
    ],
)
def test_bad_input_gives_one_clear_line_and_exit_2(session, export, tmp_path: Path, arguments, part: str) -> None:
    done = export(*[session.id if word == "ID" else word for word in arguments])
    assert (done.returncode, done.stdout) == (2, b"")
    assert part in done.stderr.decode() and done.stderr.count(b"\n") == 1
    assert list((tmp_path / "work").iterdir()) == []


def test_a_beginning_that_fits_several_sessions_names_them(session, export, home: Path) -> None:
    twin = session.directory.with_name(session.id[:4] + "-twin")
    shutil.copytree(session.directory, twin)
    done = export(session.id[:4])
    assert done.returncode == 2
    assert b"fits 2 sessions" in done.stderr


def test_a_target_that_cannot_be_written_is_a_failure(session, export) -> None:
    done = export(session.id, "--output", "missing/x.html")
    assert done.returncode == 1
    assert b"No such file or directory" in done.stderr and done.stderr.count(b"\n") == 1


def test_a_damaged_log_is_exported_and_the_damage_told(session, export, tmp_path: Path) -> None:
    session.close()
    with log_of(session).open("ab") as file:
        file.write(b'\0\0\0{"seq":\n{"type":"user","seq":9,"parts":[{"type":"text","text":"after the damage"}]}\n')
    assert export(session.id, "--output", "x.html").returncode == 0
    page = check_page((tmp_path / "work" / "x.html").read_text(encoding="utf-8"))
    assert "could not be read" in page.all("details", "aside")[0].text
    assert "after the damage" in page.by_id("transcript").text


# --- in a real browser ---


def browse(file: Path, tmp_path: Path, fragment: str = "", *options: str) -> str:
    """The document as a browser has it after its scripts have run."""
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if browser is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    words = [
        browser,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        *options,
    ]
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run(
        [*words, "--virtual-time-budget=3000", "--dump-dom", f"{file.as_uri()}{fragment}"],
        capture_output=True, text=True, timeout=120, check=False, env=environ,
    )  # fmt: skip
    assert done.returncode == 0 and "<html" in done.stdout, done.stderr[-2_000:]
    return done.stdout


def opening_tag(shown: str) -> str:
    """The tag of the document itself, which the attacks try to mark."""
    found = re.search(r"<html[^>]*>", shown)
    assert found
    return found[0]


def tags_of(shown: str) -> list[tuple[str, list[str]]]:
    """Every element with the names of its attributes."""
    found: list[tuple[str, list[str]]] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attrs) -> None:
            found.append((tag, [name for name, _ in attrs]))

    Reader().feed(shown)
    return found


MARK = "document.documentElement.setAttribute('data-hacked','1')"


@pytest.mark.terminal
def test_the_page_lives_in_a_browser_and_what_is_hostile_does_not(tmp_path: Path) -> None:
    network = socket.create_server(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{network.getsockname()[1]}/x"
    attacks = [
        f"![x]({address}) <img src={address}> [x]({address}) <link rel=stylesheet href={address}>",
        f"<script>{MARK}</script>",
        f'<img src=x onerror="{MARK}">',
        f'"><svg onload="{MARK}"></svg><details open ontoggle="{MARK}">',
        f"</script></style></title></pre><script>{MARK}</script>",
        f"[x](javascript:{MARK})",
        f'```"><script>{MARK}</script>\nx\n```',
        *HOSTILE,
    ]
    entries = [HeaderEntry(session_id="s", cwd="/")]
    for words in attacks:
        entries += [
            UserMessage(parts=text(words)),
            AssistantMessage(parts=(*text(words), call("bash", "c", command=words)), model=words),
            ToolResultMessage(call_id="c", name="bash", parts=text(f"folded {words}")),
        ]
    page = tmp_path / "page.html"
    content = "".join(write_page(source_of(number([*entries, *everything("x" + attacks[0], "x" + attacks[1])][:200]))))
    page.write_text(content, encoding="utf-8")
    shown = browse(page, tmp_path, "#e3")
    assert "data-hacked" not in opening_tag(shown)
    assert 'class="bar"' in shown, "the page's own script has run"
    assert re.search(r'<details class="tool[^>]*id="e3"[^>]*open', shown), "a fold opens for who goes there"
    with network:
        assert select.select([network], [], [], 0)[0] == [], "the page asked somebody for something"
    tags = tags_of(shown)
    assert [tag for tag, _ in tags].count("script") == 1
    assert not [name for _, names in tags for name in names if name.startswith("on") or name == "style"]
    assert {tag for tag, _ in tags} <= ELEMENTS | {"input", "output", "button"}


@pytest.mark.terminal
def test_the_policy_stops_a_script_that_somebody_put_into_the_file(tmp_path: Path) -> None:
    content = "".join(write_page(source_of(number(everything()))))
    page = tmp_path / "changed.html"
    added = f'<script>{MARK}</script><img src=x onerror="{MARK}"><style>html {{ --x: 1 }}</style></main>'
    page.write_text(content.replace("</main>", added), encoding="utf-8")
    assert "data-hacked" not in opening_tag(browse(page, tmp_path))
    without = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", content).replace("</main>", added)
    page.write_text(without, encoding="utf-8")
    assert 'data-hacked="1"' in opening_tag(browse(page, tmp_path)), (
        "without the policy it would have run: the test can see it"
    )


@pytest.mark.terminal
def test_without_scripts_the_page_is_whole(tmp_path: Path) -> None:
    content = "".join(write_page(source_of(number(everything()))))
    page = tmp_path / "plain.html"
    page.write_text(re.sub(r"(?s)<script>.*?</script>", "", content), encoding="utf-8")
    shown = browse(page, tmp_path)
    assert 'class="bar"' not in shown
    for tag in ("article", "details", "nav", "svg"):
        assert shown.count(f"<{tag}") == content.count(f"<{tag}")


DRIVER = """
const type = (words) => { const input = document.querySelector(".bar input"); input.value = words;
  input.dispatchEvent(new Event("input")); return input; };
const press = (input, key) => input.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
setTimeout(() => press(type("NEEDLE in"), "Enter"), 100);
setTimeout(() => document.querySelectorAll(".bar button")[1].click(), 200);
setTimeout(() => { location.hash = "#e4"; }, 300);
"""


@pytest.mark.terminal
def test_search_theme_and_tree_work_with_scripts_on(tmp_path: Path) -> None:
    entries = number(
        [
            HeaderEntry(session_id="s", cwd="/"),
            UserMessage(parts=text("first")),
            AssistantMessage(parts=(*text("look"), call("bash", "c", command="ls"))),
            ToolResultMessage(call_id="c", name="bash", parts=text("a needle in the hay")),
            UserMessage(parts=text("second")),
            BranchEntry(parent=3),
            UserMessage(parts=text("third")),
        ]
    )
    content = "".join(write_page(source_of(entries)))
    page = tmp_path / "driven.html"
    # The policy would stop the driver, so this page goes without.
    content = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", content)
    page.write_text(content.replace("</body>", f"<script>{DRIVER}</script></body>"), encoding="utf-8")
    shown = browse(page, tmp_path)
    assert re.search(r'<article class="block assistant found" id="e2">', shown)
    assert re.search(r'<details class="tool done" id="e3" open="">', shown), "what was found is unfolded"
    assert 'data-theme="' in opening_tag(shown)
    assert re.search(r'<details class="branch" id="b1" open="">', shown), "the tree leads into the branch"
    assert re.search(r'<a href="#e4" class="here">', shown)
