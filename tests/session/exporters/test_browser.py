"""The page in a real browser: it lives, and what is hostile in it does not."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tenuto.protocol.entry import BranchEntry, HeaderEntry
from tenuto.protocol.message import AssistantMessage, ToolResultMessage, UserMessage
from tenuto.session.exporters.html import write_page
from tests.session.exporters.reading import ELEMENTS
from tests.session.exporters.samples import call, everything, number, source_of, text
from tests.session.exporters.test_html import HOSTILE


def browse(file: Path, tmp_path: Path, fragment: str = "") -> str:
    """The document as a browser has it after its scripts have run."""
    browser = next(
        (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None
    )
    if browser is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    # In a session of its own: the browser is several processes, and all of them have to end.
    process = subprocess.Popen(
        [browser, *flags, "--virtual-time-budget=3000", "--dump-dom", f"{file.as_uri()}{fragment}"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ, start_new_session=True,
    )  # fmt: skip
    try:
        shown, problems = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == 0 and "<html" in shown, problems[-2_000:]
    return shown


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


@contextmanager
def network() -> Iterator[tuple[str, list[str]]]:
    """An address on this machine, and what was asked for there."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/x", asked
        finally:
            server.shutdown()


MARK = "document.documentElement.setAttribute('data-hacked','1')"


def test_the_page_lives_in_a_browser_and_what_is_hostile_does_not(tmp_path: Path) -> None:
    with network() as (address, asked):
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
        content = "".join(
            write_page(source_of(number([*entries, *everything("x" + attacks[0], "x" + attacks[1])][:200])))
        )
        page.write_text(content, encoding="utf-8")
        shown = browse(page, tmp_path, "#e3")
    assert asked == [], "the page asked somebody for something"
    assert "data-hacked" not in opening_tag(shown)
    assert 'class="bar"' in shown, "the page's own script has run"
    assert re.search(r'<details class="tool[^>]*id="e3"[^>]*open', shown), "a fold opens for who goes there"
    tags = tags_of(shown)
    assert [tag for tag, _ in tags].count("script") == 1
    assert not [name for _, names in tags for name in names if name.startswith("on") or name == "style"]
    assert {tag for tag, _ in tags} <= ELEMENTS | {"input", "output", "button"}


def test_the_policy_stops_what_somebody_put_into_the_file(tmp_path: Path) -> None:
    content = "".join(write_page(source_of(number(everything()))))
    with network() as (address, asked):
        added = f"<script>{MARK}</script><img src={address}><link rel=stylesheet href={address}></main>"
        page = tmp_path / "changed.html"
        page.write_text(content.replace("</main>", added), encoding="utf-8")
        assert "data-hacked" not in opening_tag(browse(page, tmp_path))
        assert asked == []
        page.write_text(without_policy(content).replace("</main>", added), encoding="utf-8")
        assert "data-hacked" in opening_tag(browse(page, tmp_path)), "without the policy it runs: the test can see it"
        assert asked


def without_policy(content: str) -> str:
    return re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", content)


def test_without_scripts_the_page_is_whole(tmp_path: Path) -> None:
    content = "".join(write_page(source_of(number(everything()))))
    page = tmp_path / "plain.html"
    page.write_text(re.sub(r"(?s)<script>.*?</script>", "", content), encoding="utf-8")
    shown = browse(page, tmp_path)
    assert 'class="bar"' not in shown
    for tag in ("article", "details", "nav", "table"):
        assert shown.count(f"<{tag}") == content.count(f"<{tag}")


DRIVER = """
const type = (words) => { const input = document.querySelector(".bar input"); input.value = words;
  input.dispatchEvent(new Event("input")); return input; };
const press = (input, key) => input.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
setTimeout(() => press(type("NEEDLE in"), "Enter"), 100);
setTimeout(() => document.querySelectorAll(".bar button")[1].click(), 200);
setTimeout(() => { location.hash = "#e4"; }, 300);
"""


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
    page.write_text(without_policy(content).replace("</body>", f"<script>{DRIVER}</script></body>"), encoding="utf-8")
    shown = browse(page, tmp_path)
    assert re.search(r'<article class="block assistant found" id="e2">', shown)
    assert re.search(r'<details class="tool done" id="e3" open="">', shown), "what was found is unfolded"
    assert 'data-theme="' in opening_tag(shown)
    assert re.search(r'<details class="branch" id="b1" open="">', shown), "the tree leads into the branch"
    assert re.search(r'<a href="#e4" class="here">', shown)
