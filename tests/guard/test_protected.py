from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.guard.protected import SECRET_FOLDERS, below, protected_entries, protected_names, secret_names
from tenuto.guard.sandbox.policy import Places, make_policy

_CHANGING = """
.git .git/config .git/hooks/pre-commit sub/.git/config .GIT/hooks/x .tenuto/settings.toml AGENTS.md claude.md
 AGENTS.override.md .bashrc .zshenv .profile .bash_profile .envrc a/b/.envrc .vscode/tasks.json
.idea/workspace.xml .github/workflows/ci.yml .github/actions/x/action.yml .gitlab-ci.yml Jenkinsfile
.pre-commit-config.yaml .husky/pre-push lefthook.yml .mcp.json .gitmodules .gitattributes .gitconfig
docs/CLAUDE.local.md .circleci/config.yml .cursorrules .devcontainer/devcontainer.json .ssh/authorized_keys
id_ed25519 server.pem private.key .netrc .npmrc .env
.env.local .aws/credentials .config/fish/config.fish .local/bin/ls SKILL.md sitecustomize.py .docker/config.json
"""
_HARMLESS = """
src/a.py README.md git .gitignore .github/dependabot.yml .github/CODEOWNERS workflows/ci.yml a.git/x AGENTS.md.bak
.env.example .env.sample docs/.vscodeignore keys.py monkey.py Makefile package.json .editorconfig .python-version
agents.py id_rsa.pub
"""
_READ_ASKS = "id_rsa .ssh/config .netrc .env .env.production .aws/config store.p12 .pgpass .git-credentials"
_READ = ".git/config AGENTS.md .envrc tests/cert.pem tests/server.key .npmrc .github/workflows/ci.yml .env.example"

CHANGING_ASKS, HARMLESS = _CHANGING.split(), _HARMLESS.split()
READING_ASKS, READING_IS_FREE = _READ_ASKS.split(), _READ.split()


@pytest.mark.parametrize("path", CHANGING_ASKS)
@pytest.mark.parametrize("root", ["", "/home/me/project/"])
def test_s9_changing_it_asks(path, root):
    assert protected_names(root + path)


@pytest.mark.parametrize("path", HARMLESS)
def test_what_only_looks_like_it_is_free(path):
    assert not protected_names(f"/home/me/project/{path}")


@pytest.mark.parametrize("path", READING_ASKS)
def test_reading_keys_asks(path):
    assert secret_names(path)


@pytest.mark.parametrize("path", READING_IS_FREE)
def test_reading_is_free_where_repositories_have_such_files(path):
    assert not secret_names(path)


def test_more_names_of_instruction_files():
    assert not protected_names("docs/RULES.md")
    assert protected_names("docs/rules.MD", also=["RULES.md"])


def test_what_lies_above_the_workspace_does_not_count():
    root = "/home/me/.claude/worktrees/x"
    assert not protected_names(below(f"{root}/src/a.py", root))
    assert protected_names(below(f"{root}/.git/config", root))
    assert below("/elsewhere/.git/x", root) == "/elsewhere/.git/x"
    assert below("/etc/x", "/") == "etc/x"


@given(st.sampled_from(CHANGING_ASKS), st.lists(st.booleans(), min_size=64, max_size=64), st.sampled_from(["", "a/b/"]))
def test_s9_no_spelling_of_case_changes_it(path, upper, before):
    spelled = "".join(letter.upper() if big else letter for letter, big in zip(path, upper, strict=False))
    spelled += path[len(spelled) :]
    names = protected_names(before + spelled)
    assert names
    assert all(each.name in spelled for each in names)


def _policy(work, home):
    own = str(home / ".tenuto")
    places = Places(workspace=str(work), private="/nowhere/private", own_home=own, outputs=(f"{own}/outputs",))
    return make_policy(places, str(work), {"HOME": str(home)})


_OF_VERSION_CONTROL = (".git", ".hg", ".svn", ".jj")
"""Of these the sandbox keeps what runs programs: a commit writes the rest."""


@pytest.mark.parametrize("path", [*CHANGING_ASKS, *HARMLESS])
def test_the_sandbox_keeps_read_only_what_approvals_ask_about(path, tmp_path):
    work = tmp_path / "work"
    file = work / path
    file.parent.mkdir(parents=True)
    file.mkdir() if path in (*_OF_VERSION_CONTROL, "git") else file.write_text("x")
    kept = _policy(work, tmp_path / "home").protected
    first, _, rest = path.partition("/")
    if first.casefold() in _OF_VERSION_CONTROL:
        assert bool(kept) is (path != ".git")
    elif first.startswith(".") or not rest:
        assert any(f"{file}/".startswith(f"{one}/") for one in kept) is bool(protected_names(path))
    else:
        assert not kept, "only what stands in the folder itself"


def test_what_other_version_control_runs_is_kept_and_a_commit_is_not_hindered(tmp_path):
    for name in (".hg/hgrc", ".hg/store/data", ".jj/repo/config.toml", ".jj/repo/store/x", ".svn/wc.db"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    assert protected_entries(str(tmp_path)) == [f"{tmp_path}/.hg/hgrc", f"{tmp_path}/.jj/repo/config.toml"]


def test_keys_stay_hidden_where_the_workspace_is_the_home(tmp_path):
    for name in SECRET_FOLDERS:
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / ".netrc").write_text("x")
    policy = _policy(tmp_path, tmp_path)
    assert {f"{tmp_path}/{name}" for name in (*SECRET_FOLDERS, ".netrc")} <= set(policy.hidden)
    assert not set(policy.hidden) & set(policy.protected)
