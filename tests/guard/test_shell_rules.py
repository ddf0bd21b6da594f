"""Which lines a rule like `pytest *` covers (R-083, R-084, T-36), and that nothing else ever runs under it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies

from tenuto.guard.examine import examine_line
from tenuto.guard.readers.places import Place
from tenuto.guard.shell.rules import covers
from tests.examples import many_examples

COVERED: list[tuple[str, str]] = [
    ("pytest *", "pytest"),
    ("pytest *", "pytest -q tests"),
    ("pytest *", "pytest -q 'tests/a b.py' -k \"x and y\""),
    ("pytest *", "pytest -q $FILES"),
    ("pytest *", "pytest tests/*.py"),
    ("pytest *", "pytest -q 2>&1 | tail -20"),
    ("pytest *", "pytest -q >/dev/null 2>&1; echo $?"),
    ("pytest *", "cd sub && pytest -q"),
    ("pytest *", "ls && pytest && git status"),
    ("pytest *", "for f in a b; do pytest $f; done"),
    ("pytest *", "if pytest -q; then echo good; fi"),
    ("pytest *", "(pytest -q)"),
    ("pytest *", "case $x in a) pytest -q;; *) ls;; esac"),
    ("pytest *", "[[ -f f ]] && pytest -q"),
    ("pytest *", "find . -name f | xargs grep -l x && pytest"),
    ("pytest *", "bash -c 'pytest -q; ls'"),
    ("pytest *", 'pytest -k "$(cat f)"'),
    ("pytest -q tests", "pytest -q tests"),
    ("pytest -q *", "pytest -q tests"),
    ("git commit *", "git commit -m 'a; b'"),
    ("git commit *", "git commit -m \"$(cat <<'EOF'\nIt's (done)\nEOF\n)\""),
    ("npm run *", "npm run build"),
    ("python -m pytest *", "python -m pytest -q"),
    ("python manage.py *", "python manage.py migrate"),
    ("python -u manage.py *", "python -u manage.py migrate"),
    ("npx eslint *", "npx eslint ."),
    ("uv run pytest *", "uv run pytest -q"),
    ("./test.sh *", "./test.sh all"),
    ("make *", "make test"),
    ("find *", "find / -name x"),
    ("find . -delete", "find . -delete"),
    ("sudo ls /root", "sudo ls /root"),
    ("*", "anything; at all > x"),
]
NOT_COVERED: list[tuple[str, str]] = [
    *(
        ("git status", f"git status{rest}")
        for rest in ("; x", " && x", " || x", " | x", " |& x", " & x", "\nx", " -x y")
    ),
    *(
        ("git status *", f"git status{rest}")
        for rest in (" $(x)", " `x`", " <(x)", " >(x)", ' "$(x)"', " > file", " >> f")
    ),
    *(
        ("git status *", line)
        for line in ("A=b git status", "PATH=. git status", "git -c core.pager=x status", "x; git status")
    ),
    *(
        ("git *", line)
        for line in ("git -c alias.x='!sh' x", "git --exec-path=. x", "git --config-env=a=b x", "git rebase -x sh HEAD")
    ),
    *(
        ("git *", line)
        for line in ("git log --ext-diff", "git grep -O x", "git fetch --upload-pack=x", "git rebase --exec=x")
    ),
    *(
        ("find *", f"find . {rest}")
        for rest in ("-exec rm {} +", "-execdir x", "-ok x", "-okdir x", "-delete", "-fprint x", "-fls x")
    ),
    *(("find *", f"find / {rest}") for rest in ("-name x $(y)", "$x", "-fprintf a b", "-fprint0 x")),
    *(
        (f"{name} *", f"{name} -c x")
        for name in ("python", "python3", "python3.12", "bash", "sh", "zsh", "dash", "perl", "fish")
    ),
    *((f"{name} *", f"{name} x") for name in ("node", "ruby", "php", "lua", "deno", "python")),
    ("python -W ignore *", "python -W ignore -c x"),
    ("python *", "python -m http.server"),
    ("python *", "python < x"),
    ("python *", "cat x | python"),
    ("awk *", "awk 'BEGIN{system(\"x\")}'"),
    ("python *", "python -"),
    ("python *", "python - <<'EOF'\nx\nEOF"),
    ("python $x *", "python $x"),
    *(
        (f"{name} *", f"{name} rm x")
        for name in ("sudo", "env", "xargs", "timeout 5", "nohup", "nice", "time", "doas", "ssh h")
    ),
    *(
        (f"{name} *", f"{name} ls")
        for name in ("command", "exec", "eval", "builtin", "source", ".", "trap", "alias x=y;")
    ),
    ("npx *", "npx evil"),
    ("npx -y *", "npx -y evil"),
    ("uv run *", "uv run evil"),
    ("uv run python *", "uv run python -c x"),
    ("tar *", "tar --to-command=sh -xf x"),
    ("rsync *", "rsync -e sh a b"),
    ("sed *", "sed -i s/a/b/ f"),
    ("pytest *", "pytest; rm x"),
    ("pytest *", "rm x; pytest"),
    ("pytest *", "pytest | tee x"),
    ("pytest *", "pytest > x"),
    ("pytest *", "{ pytest; } > x"),
    ("pytest *", "for i in 1; do pytest; done > x"),
    ("pytest *", "$x pytest"),
    ("pytest *", "pyt?st"),
    ("pytest *", "{pytest,x}"),
    ("pytest *", "pytest() { rm x; }; pytest"),
    ("pytest *", "alias pytest=rm; pytest x"),
    ("pytest *", "function pytest { rm x; }"),
    ("pytest *", "for PATH in .; do pytest; done"),
    ("pytest *", "PATH=.; pytest"),
    ("pytest *", "cd /tmp && pytest"),
    ("pytest *", "export PATH=.; pytest"),
    ("pytest *", "pytest ${x@P}"),
    ("pytest *", "bash -c 'pytest; rm x'"),
    ("pytest *", "case x in x) pytest;; *) rm x;; esac"),
    ("pytest *", "case $(rm x) in x) pytest;; esac"),
    ("pytest *", "case x in x) pytest;; esac > x"),
    ("pytest *", "[[ a[$(rm x)] -eq 1 ]] && pytest"),
    ("[[ *", "[[ 'a[$(rm x)]' -eq 1 ]]"),
    ("find *", "find . -name f -exec rm {} +"),
    ("xargs *", "find . | xargs rm"),
    ("pytest *", 'bash -c "pytest $(rm x)"'),
    ("pytest *", "pytest <<EOF\n$(rm x)\nEOF"),
    ("pytest *", "pytest <<< $(rm x)"),
    ("pytest *", "pytest 'unbalanced"),
    ("pytest *", "pytestx"),
    ("pytest *", "./pytest"),
    ("pytest *", "pytest\u00a0x; rm"),
    ("pytest -q tests", "pytest -q tests x"),
    ("pytest -q tests", "pytest -q"),
    ("pytest -q", "pytest -q > x"),
    ("", "pytest"),
    ("'unbalanced", "pytest"),
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    root = os.path.realpath(tmp_path_factory.mktemp("rules"))
    for name in ("sub", "tests"):
        Path(root, name).mkdir()
    Path(root, "f").write_text("x\n")
    return Place(root=root, cwd=root, environ={"PATH": "/usr/bin:/bin", "HOME": "/nowhere"})


@pytest.mark.parametrize(("pattern", "line"), COVERED)
def test_t36_what_a_rule_covers(pattern: str, line: str, place: Place) -> None:
    assert covers([pattern], examine_line(line, place).commands)


@pytest.mark.parametrize(("pattern", "line"), NOT_COVERED)
def test_r083_r084_t36_what_no_rule_covers(pattern: str, line: str, place: Place) -> None:
    assert not covers([pattern], examine_line(line, place).commands)


def test_several_rules_cover_a_line_together(place: Place) -> None:
    commands = examine_line("pytest -q && git commit -m x", place).commands
    assert covers(["pytest *", "git commit *"], commands)
    assert not covers(["pytest *"], commands)
    assert not covers([], commands)


@pytest.fixture(scope="module")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs that write their names down: one that a rule names, and one that none does."""
    folder = tmp_path_factory.mktemp("stubs")
    for name in ("fine", "evil"):
        stub = folder / name
        stub.write_text(f'#!/bin/bash\necho {name} >> "{folder}/log"\n')
        stub.chmod(0o700)
    return folder


_PARTS = strategies.sampled_from(
    [
        *("fine", "fine", "evil", "x", "-c", "'", '"', "`", "$(", ")", "(", "{", "}", ";", "&&", "||", "|", "&", "\n"),
        *(
            "$x",
            "${x@P}",
            "x=evil",
            "x='`evil`'",
            "eval",
            "exec",
            "command",
            "bash -c",
            "if",
            "then",
            "fi",
            "do",
            "done",
        ),
        *(
            "for x in",
            "while",
            "!",
            "<<E",
            "<<'E'",
            "\nE\n",
            "<(",
            ">(",
            ">",
            "/dev/null",
            "<<<",
            "\\",
            "\\\n",
            "#",
            "$'",
        ),
        *(
            "case",
            "in",
            "esac",
            "function",
            "()",
            "[",
            "]",
            "[[",
            "]]",
            "((",
            "))",
            "$((",
            "coproc",
            "time",
            "true",
            "echo",
        ),
        *(
            "\u00a0",
            "\u2028",
            "*",
            "?",
            "~",
            "{a,b}",
            "test",
            "read",
            "env",
            "xargs",
            "alias fine=evil",
            "trap evil EXIT",
        ),
    ]
)
_LINES = strategies.builds(
    "".join,
    strategies.lists(
        strategies.tuples(_PARTS, strategies.sampled_from([" ", " ", "", "\t"])).map("".join), max_size=12
    ),
)
_HOSTILE = strategies.sampled_from(
    [
        *("fine{}evil", "fine {}evil", "fine{} evil", "fine {} evil", 'fine "{}evil"', "fine '{}' evil", "evil{}fine"),
        *(
            "fine <<E{}evil\nE\n",
            "{}fine evil",
            "fine $({}evil)",
            "fine `{}evil`",
            "bash -c 'fine{}evil'",
            "{{ fine{}evil; }}",
        ),
        *(
            "if fine{}then evil; fi",
            "for x in a{}do evil; done",
            "fine ${{x{}evil}}",
            "[ x {} ] && evil",
            "x{}evil fine",
        ),
    ]
).flatmap(lambda form: _PARTS.map(form.format))


@many_examples()
@hypothesis.given(strategies.one_of(_LINES, _HOSTILE))
def test_r083_no_prefix_rule_ever_allows_a_line_with_a_command_outside_it(place: Place, stubs: Path, line: str) -> None:
    if not covers(["fine *"], examine_line(line, place).commands):
        return
    log = stubs / "log"
    log.unlink(missing_ok=True)
    environ = {"PATH": f"{stubs}:/usr/bin:/bin"}
    subprocess.run(
        ["bash", "-c", line],
        cwd=place.cwd,
        env=environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert not log.exists() or "evil" not in log.read_text()
