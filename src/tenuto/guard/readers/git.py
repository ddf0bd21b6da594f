"""Commands of git that only look, each with its grammar."""

from __future__ import annotations

import re

import msgspec

from tenuto.guard.readers.options import Argument, Found, Grammar, read_options, sort_operands
from tenuto.guard.readers.places import Asks

_REFUSED = r"%G|signature"
"""Placeholders that make git check signatures, with a program."""
_DIFF = (
    "-psuabwzRDWc -M~ -U# -S: -G: -l# -C~ -B~ --patch --no-patch --unified=# --raw --patch-with-raw "
    "--indent-heuristic --minimal --patience --histogram --diff-algorithm=: --stat[= "
    "--compact-summary --numstat --shortstat --dirstat[= --summary --name-only --name-status "
    "--color[= --no-color --color-moved[= --word-diff[= --color-words[= --word-diff-regex=: "
    "--no-renames --find-renames[= --find-copies[= --find-copies-harder --break-rewrites[= "
    "--irreversible-delete --diff-filter=: --pickaxe-all --pickaxe-regex --relative[= --no-relative "
    "--text --ignore-cr-at-eol --ignore-space-at-eol --ignore-space-change --ignore-all-space "
    "--ignore-blank-lines --inter-hunk-context=# --function-context --exit-code --quiet "
    "--no-ext-diff --no-textconv --ignore-submodules[= --src-prefix=: --dst-prefix=: --no-prefix "
    "--full-index --abbrev[= --ita-visible-in-index --check --binary --cc "
    "--combined-all-paths "
)
_LOG = (
    "-n# -NUM -g -i -E -F -P -L: --max-count=# --skip=# --since=: --after=: --until=: --before=: "
    "--author=: --committer=: --grep=: --grep-reflog=: --all-match --invert-grep "
    "--regexp-ignore-case --extended-regexp --fixed-strings --perl-regexp --merges --no-merges "
    "--min-parents=# --max-parents=# --first-parent --not --all --branches[= --tags[= --remotes[= "
    "--glob=: --exclude=: --reflog --walk-reflogs --merge --boundary --cherry-pick --left-only "
    "--right-only --cherry --cherry-mark --left-right --simplify-by-decoration --full-history "
    "--dense --sparse --simplify-merges --ancestry-path[= --date-order --author-date-order "
    "--topo-order --reverse --graph --oneline --pretty[= --format=: --abbrev-commit "
    "--no-abbrev-commit --encoding=: --no-notes --date=: --parents --children --decorate[= "
    "--no-decorate --decorate-refs=: --decorate-refs-exclude=: --source --follow --log-size "
    "--use-mailmap --no-use-mailmap --mailmap --show-pulls --relative-date --expand-tabs[= "
    "--no-expand-tabs -m --no-diff-merges --root -t "
)
_LIST = (
    "--sort=: --format=: --contains[= --no-contains[= --merged[= --no-merged[= --points-at=: "
    "--column[= --color[= -i --ignore-case --no-color "
)

_LISTS = frozenset({"--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at"})
"""With these, operands of `branch` and `tag` are patterns."""
_HAVE_SUBCOMMANDS = frozenset({"remote", "reflog", "stash", "worktree"})
"""An option in front of the subcommand can make it an operand of another one."""


class GitReader(msgspec.Struct, frozen=True):
    """A command of git. `looks_at_files` says that it compares the work tree, and so runs what is configured for that.

    `shapes` are the operands that it takes where they are words of git's own (`list`), as expressions.
    """

    grammar: Grammar
    looks_at_files: bool = True
    shape: str = ""
    lists_with: frozenset[str] = frozenset()


def _history(options: str, **others: object) -> GitReader:
    return GitReader(Grammar(options, refuses=_REFUSED), looks_at_files=False, **others)  # pyright: ignore[reportArgumentType]


_READERS: dict[str, GitReader] = {
    "status": GitReader(
        Grammar(
            "-sbvz -u~ --short --branch --show-stash --porcelain[= --long --verbose --untracked-files[= --ignored[= "
            "--ignore-submodules[= --column[= --no-column --ahead-behind --no-ahead-behind --renames --no-renames "
            "--find-renames[= --null"
        )
    ),
    "log": GitReader(Grammar(_DIFF + _LOG, refuses=_REFUSED)),
    "whatchanged": GitReader(Grammar(_DIFF + _LOG, refuses=_REFUSED)),
    "show": GitReader(Grammar(_DIFF + _LOG, refuses=_REFUSED)),
    "diff": GitReader(Grammar(_DIFF + "-NUM --cached --staged --merge-base --base --ours --theirs", refuses=_REFUSED)),
    "diff-tree": GitReader(Grammar(_DIFF + "-r -t -m --root --no-commit-id --pretty[= --format=:", refuses=_REFUSED)),
    "diff-index": GitReader(Grammar(_DIFF + "-m --cached", refuses=_REFUSED)),
    "diff-files": GitReader(Grammar(_DIFF, refuses=_REFUSED)),
    "blame": GitReader(
        Grammar(
            "-lteswcbfnp -M~ -L: -C~ --root --show-stats --porcelain --line-porcelain --incremental --date=: "
            "--abbrev=# --score-debug --show-name --show-number --show-email --since=: --reverse "
            "--first-parent"
        )
    ),
    "grep": GitReader(
        Grammar(
            "-aIiwvhHEGPFnlLczopWq -NUM -A# -B# -C# -m# -e: --cached --untracked --text --ignore-case "
            "--word-regexp --invert-match --full-name --extended-regexp --basic-regexp --perl-regexp "
            "--fixed-strings --line-number --column --files-with-matches --name-only --files-without-match "
            "--null --only-matching --count --color[= --no-color --break --heading --show-function "
            "--context=# --after-context=# --before-context=# --function-context --max-depth=# --and --or "
            "--not --all-match --quiet --exclude-standard --max-count=#",
            operands="pattern",
            patterns=("-e",),
        )
    ),
    "ls-files": GitReader(
        Grammar(
            "-cdmoisukvtfz -x: --cached --deleted --modified --others --ignored --stage --unmerged --killed "
            "--directory --no-empty-directory --eol --exclude=: --exclude-standard --error-unmatch "
            "--full-name --abbrev[= --debug --deduplicate --format=:"
        )
    ),
    "describe": GitReader(
        Grammar(
            "--all --tags --contains --abbrev=# --candidates=# --exact-match --long --match=: --exclude=: --always "
            "--first-parent --dirty[="
        )
    ),
    "check-ignore": GitReader(Grammar("-qvnz --quiet --verbose --non-matching --no-index")),
    "check-attr": GitReader(Grammar("-az --all --cached")),
    "rev-parse": _history(
        "-q --quiet --verify --short[= --symbolic --symbolic-full-name --abbrev-ref[= --all --branches[= "
        "--tags[= --remotes[= --show-toplevel --show-prefix --show-cdup --git-dir --absolute-git-dir "
        "--git-common-dir --is-inside-work-tree --is-inside-git-dir --is-bare-repository "
        "--is-shallow-repository --show-superproject-working-tree --show-object-format --not --revs-only "
        "--no-revs --flags --no-flags --path-format=:"
    ),
    "rev-list": _history(
        _LOG + "--count --objects --timestamp --header --disk-usage --no-commit-header --abbrev=# --in-commit-order"
    ),
    "shortlog": _history(_LOG.replace("-n# ", "-n ") + "-s -e -w~ --summary --numbered --email --group=: --committer"),
    "ls-tree": _history(
        "-drtlz --long --name-only --name-status --object-only --full-name --full-tree --abbrev[= --format=:"
    ),
    "cat-file": _history("-tpse --batch-check[= --allow-unknown-type --use-mailmap"),
    "merge-base": _history("-a --all --octopus --is-ancestor --independent --fork-point"),
    "name-rev": _history("--tags --refs=: --exclude=: --all --name-only --always --no-undefined"),
    "for-each-ref": _history("--count=# --shell --perl --python --tcl --exclude=: " + _LIST),
    "show-ref": _history("-dqs --head --heads --tags --dereference --hash[= --verify --abbrev[= --quiet"),
    "show-branch": _history("-ar --all --remotes --current --topo-order --list --sha1-name --no-name"),
    "cherry": _history("-v --abbrev[="),
    "count-objects": _history("-vH --verbose --human-readable"),
    "version": _history("--build-options"),
    "branch": _history(
        "-arvq --all --remotes --list --verbose --show-current --abbrev=# --no-abbrev " + _LIST,
        lists_with=_LISTS,
    ),
    "tag": _history(
        "-n~ -l --list " + _LIST,
        lists_with=_LISTS | {"-l"},
    ),
    "remote": _history("-v --verbose --all --push", shape=r"|get-url \S+"),
    "stash": GitReader(Grammar(_DIFF + _LOG, refuses=_REFUSED), shape=r"list"),
    "worktree": _history("-vz --verbose --porcelain", shape=r"list"),
    "reflog": _history(_LOG, shape=r"|show|show \S+|HEAD"),
    "symbolic-ref": _history("-q --quiet --short", shape=r"\S+"),
    "config": _history(
        "-lz --list --get --get-all --get-regexp --get-urlmatch --show-origin --show-scope --name-only "
        "--local --global --system --worktree --null --type=: --bool --int --bool-or-int --path "
        "--includes --no-includes --default=:"
    ),
}
_ALONE = ("--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects", "--no-lazy-fetch")
_READS_KEY = frozenset({"--get", "--get-all", "--get-regexp", "--get-urlmatch"})
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9-]*\.\S+")


class GitRead(msgspec.Struct):
    """A command of git that only looks. `directories` are those of `-C`, `paths` what it reads."""

    directories: list[Argument]
    looks_at_files: bool
    paths: list[Argument]


def read_git(arguments: list[Argument], cwd: str) -> GitRead:
    """Return what a command of git looks at. Raises `Asks`. Only without `-C` is `cwd` where it works."""
    rest = list(arguments)
    directories: list[Argument] = []
    while rest and (rest[0].only in _ALONE or (rest[0].only == "-C" and len(rest) > 1)):
        if rest.pop(0).only == "-C":
            directories.append(rest.pop(0))
    if [argument.only for argument in rest] in (["--version"], ["-v"]):
        return GitRead([], looks_at_files=False, paths=[])
    name = rest.pop(0).only if rest else None
    reader = _READERS.get(name or "")
    if reader is None:
        raise Asks(f"runs git {name or ''}".rstrip())
    found = read_options(reader.grammar, rest, cwd)
    if name in _HAVE_SUBCOMMANDS and found.operands and rest[0].may_be_option:
        raise Asks(f"changes something with git {name}")
    _check_form(name or "", reader, found)
    sort_operands(reader.grammar, found)
    return GitRead(directories, reader.looks_at_files, found.paths)


def _check_form(name: str, reader: GitReader, found: Found) -> None:
    """Raises `Asks` where the operands make a command change something."""
    words = " ".join(operand.only or "\n" for operand in found.operands)
    if reader.shape and not re.fullmatch(reader.shape, words):
        raise Asks(f"changes something with git {name}")
    if name in ("branch", "tag") and found.operands and not reader.lists_with & set(found.options):
        raise Asks(f"changes something with git {name}")
    if name == "config":
        count = len(found.operands)
        is_reading = bool(_READS_KEY & set(found.options)) and count in (1, 2)
        is_listing = bool({"-l", "--list"} & set(found.options))
        is_plain = not is_listing and count == 1 and bool(_KEY.fullmatch(words))
        if not (is_reading or (is_listing and not count) or is_plain):
            raise Asks("changes the configuration of git")
        if re.search("token|password|secret|header", words, re.IGNORECASE):
            raise Asks("reads a secret of git's configuration")
