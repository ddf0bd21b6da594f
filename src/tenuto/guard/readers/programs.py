"""Programs that only read, each with its grammar. What is not in a grammar asks: this is data, and the guard's heart.

Left out on purpose: whatever writes (`sort -o`, `tree -o`), runs something (`rg --pre`, `diff -l`), takes names
of files from a file, follows links out of a directory (`grep -R`, `ls -L`), reads devices, or waits (`tail -f`).
"""

from __future__ import annotations

import re

from tenuto.guard.readers.options import Argument, Grammar
from tenuto.guard.readers.places import Asks
from tenuto.guard.readers.scripts import is_plain_awk, is_plain_format, is_plain_jq, is_plain_sed

_GREP = Grammar(
    "-abcEFGhHiIlLnoPqrsTUvVwxyzZ -NUM -A# -B# -C# -m# -e: -f@ --regexp=: --file=@ --include=: "
    "--exclude=: --exclude-dir=: --color[= --colour[= --line-number --ignore-case --no-ignore-case "
    "--count --files-with-matches --files-without-match --only-matching --with-filename "
    "--no-filename --no-messages --quiet --silent --recursive --word-regexp --line-regexp "
    "--invert-match --extended-regexp --fixed-strings --perl-regexp --basic-regexp --max-count=# "
    "--after-context=# --before-context=# --context=# --text --null --null-data --byte-offset "
    "--initial-tab --line-buffered --binary-files=: --label=:",
    operands="pattern",
    patterns=("-e", "-f", "--regexp", "--file"),
)
_SUMS = Grammar("-btz --binary --text --tag --zero")

GRAMMARS: dict[str, Grammar] = {
    "ls": Grammar(
        "-aAbBcCdfFgGhiklmnNopqQrRsStuUvxXZ1 -I: -w# -T# --all --almost-all --author --color[= "
        "--classify[= --directory --escape --file-type --format=: --full-time --group-directories-first "
        "--hide=: --human-readable --hyperlink[= --ignore=: --ignore-backups --indicator-style=: --inode "
        "--kibibytes --literal --no-group --numeric-uid-gid --quote-name --quoting-style=: --recursive "
        "--reverse --si --size --sort=: --time=: --time-style=: --zero"
    ),
    "cat": Grammar(
        "-AbeEnstTuv --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs --show-nonprinting"
    ),
    "head": Grammar("-qvz -NUM -n# -c# --lines=# --bytes=# --quiet --silent --verbose --zero-terminated"),
    "tail": Grammar("-qvz -NUM -n# -c# --lines=# --bytes=# --quiet --silent --verbose --zero-terminated"),
    "wc": Grammar("-clmwL --bytes --chars --lines --words --max-line-length --total=:"),
    "stat": Grammar("-ftx -c: --format=: --printf=: --file-system --terse"),
    "du": Grammar(
        "-0abchklmsSx -d# -t# --all --apparent-size --bytes --total --human-readable --max-depth=# --separate-dirs "
        "--summarize --one-file-system --exclude=: --time[= --time-style=: --si --null --inodes --threshold=#"
    ),
    "df": Grammar(
        "-ahHiklmPT -t: -x: --all --human-readable --si --inodes --local --portability --print-type --type=: --total"
    ),
    "id": Grammar("-agGnruz --group --groups --name --real --user --zero", operands="texts"),
    "groups": Grammar("", operands="texts"),
    "whoami": Grammar("", operands="none"),
    "logname": Grammar("", operands="none"),
    "nproc": Grammar("--all --ignore=#", operands="none"),
    "arch": Grammar("", operands="none"),
    "uname": Grammar("-aimnoprsv --all --kernel-name --machine --operating-system --kernel-release", operands="none"),
    "hostname": Grammar("-dfiIs --short --fqdn --long --domain --ip-address --all-ip-addresses", operands="none"),
    "which": Grammar("-as --all", operands="texts"),
    "basename": Grammar("-az -s: --multiple --suffix=: --zero", operands="texts"),
    "dirname": Grammar("-z --zero", operands="texts"),
    "realpath": Grammar(
        "-ezmsqLP --canonicalize-existing --canonicalize-missing --logical --physical --quiet --strip --no-symlinks "
        "--zero --relative-to=@ --relative-base=@"
    ),
    "readlink": Grammar(
        "-femnqsvz --canonicalize --canonicalize-existing --canonicalize-missing --no-newline --quiet "
        "--silent --verbose --zero"
    ),
    "diff": Grammar(
        "-abBcdeEinNpqrstTuwyZ -NUM -C# -U# -W# -x: -I: -F: --brief --unified[=# --context[=# "
        "--side-by-side --new-file --ignore-all-space --ignore-space-change --ignore-blank-lines "
        "--ignore-case --ignore-trailing-space --color[= --recursive --suppress-common-lines "
        "--report-identical-files --text --minimal --strip-trailing-cr --width=# --exclude=: "
        "--no-dereference --normal --ed --left-column --expand-tabs --speed-large-files --label=:",
        compares=True,
    ),
    "cmp": Grammar("-bls -n# -i: --print-bytes --verbose --quiet --silent --bytes=# --ignore-initial=:"),
    **dict.fromkeys(("md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "b2sum", "cksum"), _SUMS),
    "nl": Grammar(
        "-p -b: -d: -f: -h: -i# -l# -n: -s: -v# -w# --body-numbering=: --number-width=# --number-separator=:"
    ),
    "cut": Grammar(
        "-snz -b: -c: -d: -f: --bytes=: --characters=: --delimiter=: --fields=: --complement --only-delimited "
        "--output-delimiter=: --zero-terminated"
    ),
    "tr": Grammar("-cCdst --complement --delete --squeeze-repeats --truncate-set1", operands="texts"),
    "sort": Grammar(
        "-bcCdfghiMmnrRsuVz -k: -t: --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort "
        "--human-numeric-sort --month-sort --numeric-sort --random-sort --reverse --version-sort --check[= --key=: "
        "--field-separator=: --merge --stable --unique --zero-terminated"
    ),
    "uniq": Grammar(
        "-cdDiuz -f# -s# -w# --count --repeated --all-repeated[= --unique --ignore-case --skip-fields=# "
        "--skip-chars=# --check-chars=# --zero-terminated",
        operands="path",
        most=1,
    ),
    **dict.fromkeys(("grep", "egrep", "fgrep"), _GREP),
    "rg": Grammar(
        "-acFhHiIlnNopPqsSuUvVwx0 -A# -B# -C# -m# -M# -d# -j# -e: -g: -t: -T: -r: -E: --regexp=: "
        "--glob=: --iglob=: --type=: --type-not=: --type-list --files --files-with-matches "
        "--files-without-match --count --count-matches --ignore-case --smart-case --case-sensitive "
        "--fixed-strings --word-regexp --line-regexp --invert-match --only-matching --replace=: "
        "--line-number --no-line-number --column --no-column --heading --no-heading --with-filename "
        "--no-filename --color=: --colors=: --hidden --no-hidden --no-ignore --no-ignore-vcs "
        "--no-ignore-parent --no-ignore-dot --no-ignore-global --no-config --no-messages --max-count=# "
        "--max-depth=# --maxdepth=# --max-columns=# --max-filesize=# --after-context=# "
        "--before-context=# --context=# --context-separator=: --multiline --multiline-dotall --pcre2 "
        "--null --text --trim --sort=: --sortr=: --stats --json --quiet --passthru --vimgrep --pretty "
        "--unrestricted --crlf --encoding=: --engine=: --no-follow --no-pre --threads=# "
        "--one-file-system --glob-case-insensitive --byte-offset --debug --line-buffered --no-unicode "
        "--max-columns-preview --include-zero",
        operands="pattern",
        patterns=("-e", "--regexp", "--files", "--type-list"),
    ),
    "file": Grammar(
        "-bEhiIkNnrv0 -F: --brief --mime --mime-type --mime-encoding --keep-going --no-dereference "
        "--separator=: --no-pad --extension --raw --print0"
    ),
    "tree": Grammar(
        "-aACdDfFghiJnNpqQrsStuUvXx -L# -I: -P: --dirsfirst --filesfirst --noreport --du --prune "
        "--charset=: --si --inodes --device --filelimit=# --matchdirs --ignore-case --sort=: --timefmt=: "
        "--gitignore "
    ),
    "date": Grammar(
        "-Ru -d: -I~ -r@ --utc --universal --date=: --iso-8601[= --rfc-3339=: --rfc-email --reference=@",
        operands="format",
    ),
    "column": Grammar(
        "-tnxeJ -s: -o: -c# -N: -R: -H: -l# -d --table --separator=: --output-separator=: --table-columns=:"
    ),
    "comm": Grammar("-123z --check-order --nocheck-order --output-delimiter=: --total --zero-terminated"),
    "join": Grammar("-iz -1# -2# -j# -a# -v# -e: -o: -t: --header --ignore-case --check-order --nocheck-order"),
    "paste": Grammar("-sz -d: --serial --delimiters=: --zero-terminated"),
    "rev": Grammar(""),
    "tac": Grammar("-br -s: --before --regex --separator=:"),
    "fold": Grammar("-bs -w# --bytes --spaces --width=#"),
    "expand": Grammar("-i -t: --tabs=: --initial"),
    "fmt": Grammar("-cstu -w# --width=#"),
    "strings": Grammar("-afw -n# -t: -e: --all --bytes=# --radix=: --encoding=:"),
    "od": Grammar("-abcdfFiloOsxv -A: -t: -N# -j# -w# --address-radix=: --format=: --read-bytes=# --skip-bytes=#"),
    "hexdump": Grammar("-bcCdovx -n# -s#"),
    "seq": Grammar("-w -s: --equal-width --separator=:", operands="numbers"),
    "sed": Grammar(
        "-nrEsuz -e% --quiet --silent --regexp-extended --expression=% --separate --unbuffered "
        "--null-data --posix --sandbox",
        operands="script",
        patterns=("-e", "--expression"),
        script=is_plain_sed,
    ),
    "awk": Grammar(
        "-F: -v: --field-separator=: --assign=:", operands="script", script=is_plain_awk, refuses="ARGV|ENVIRON"
    ),
    "jq": Grammar(
        "-acCejMnrRsS --ascii-output --color-output --compact-output --exit-status --join-output --monochrome-output "
        "--null-input --raw-input --raw-output --slurp --sort-keys --tab --indent=#",
        operands="script",
        script=is_plain_jq,
    ),
}
"""Programs of the machine. Standard input is closed, or what a pipe brings."""

_VERSIONS = {
    **dict.fromkeys(
        ("python", "python2", "python3", "pip", "pip3", "perl", "php", "ruby", "make", "cmake", "gcc", "g++", "clang"),
        ("--version", "-V", "-v"),
    ),
    **dict.fromkeys(("node", "npm", "uv", "ruff", "tmux", "docker", "curl", "bash"), ("--version", "-v", "-V")),
    "java": ("-version", "--version"),
}


def asks_for_version(name: str, arguments: list[Argument]) -> bool:
    """Whether a command only asks a program how old it is."""
    if name in ("perl", "ruby", "make", "php", "gcc", "g++", "clang", "pip", "pip3", "cmake"):
        return [argument.only for argument in arguments] == ["--version"]
    return len(arguments) == 1 and arguments[0].only in _VERSIONS.get(name, ())


BUILTINS = frozenset(
    {"pwd", "echo", "printf", "true", "false", ":", "test", "[", "type", "read", "break", "continue", "exit"}
)
"""What the shell does itself, if it only reads."""


def read_builtin(name: str, arguments: list[Argument]) -> list[Argument]:
    """Return the words of a builtin that name files. Raises `Asks`."""
    match name:
        case "pwd":
            if any(argument.only not in ("-L", "-P") for argument in arguments):
                raise Asks("has words that pwd does not take")
        case "printf":
            _check_printf(arguments)
        case "test" | "[":
            return _read_test(arguments[:-1] if name == "[" else arguments)
        case "read":
            _check_read(arguments)
        case "break" | "continue" | "exit":
            if any(not re.fullmatch("[0-9]{1,3}", argument.only or "") for argument in arguments):
                raise Asks("has words that it does not take")
        case _:
            pass
    return [argument for argument in arguments if argument.is_many]


def _check_printf(arguments: list[Argument]) -> None:
    rest = arguments[1:] if arguments and arguments[0].only == "--" else arguments
    if not rest or rest[0].only is None or (rest is arguments and rest[0].may_be_option):
        raise Asks("has a format that is not known")
    if not is_plain_format(rest[0].texts[0]):
        raise Asks("has a format that does more than print")


_OWN_NAME = re.compile(r"[a-z_][a-z0-9_]*|[A-Z][A-Z0-9]?")
_OWN_WORDS = frozenset(
    {
        *(
            "BASE",
            "BRANCH",
            "COMMIT",
            "DATA",
            "DIR",
            "DIRS",
            "END",
            "FILE",
            "FILES",
            "LINE",
            "LOG",
            "NAME",
            "OUT",
            "PATTERN",
        ),
        *("PKG", "PROJECT", "REPO", "ROOT", "SRC", "START", "TARGET", "TEST", "TESTS", "VERSION"),
    }
)


def is_own_name(name: str) -> bool:
    """Whether a variable of this name means nothing to the shell.

    Those with a meaning are in capitals and longer than two characters, but for two; of those only usual words count.
    """
    is_known = bool(_OWN_NAME.fullmatch(name)) or name in _OWN_WORDS
    return is_known and name not in ("histchars", "auto_resume", "_")


def _check_read(arguments: list[Argument]) -> None:
    for argument in arguments:
        if argument.only != "-r" and not is_own_name(argument.only or ""):
            raise Asks("reads into a variable that the shell uses, or in a way that is not known")


_FILE_TESTS = frozenset(
    {
        *("-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-p", "-r", "-s", "-u", "-w", "-x", "-L"),
        *("-N", "-O", "-G", "-S"),
    }
)
_TEXT_TESTS = frozenset({"-n", "-z"})
_COMPARISONS = frozenset({"=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_NUMBER_COMPARISONS = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})
_FILE_COMPARISONS = frozenset({"-nt", "-ot", "-ef"})


def _read_test(arguments: list[Argument]) -> list[Argument]:
    """Return the files that `test` looks at. Only forms with one reading are known, and lists of them."""
    if any(argument.is_many for argument in arguments):
        raise Asks("has a pattern of files in a test")
    words = list(arguments)
    while words and words[0].only == "!":
        words.pop(0)
    for joint in ("-a", "-o"):
        places = [at for at, argument in enumerate(words) if argument.only == joint]
        if len(words) > 3 and places:
            return [*_read_test(words[: places[0]]), *_read_test(words[places[0] + 1 :])]
    match words:
        case [] | [_]:
            return []
        case [first, second]:
            if first.only in _TEXT_TESTS:
                return []
            if first.only in _FILE_TESTS:
                return [second]
        case [first, middle, last]:
            if middle.only in _COMPARISONS:
                return []
            if middle.only in _FILE_COMPARISONS:
                return [first, last]
        case _:
            pass
    raise Asks("has a test that is not known")


def read_condition(arguments: list[Argument]) -> list[Argument]:
    """Return the files that `[[ … ]]` looks at. Raises `Asks` where it may calculate: a sum can run commands."""
    files: list[Argument] = []
    part: list[Argument] = []
    for argument in [*arguments, Argument(("&&",))]:
        if argument.only not in ("&&", "||"):
            part.append(argument)
            continue
        while part and part[0].only == "!":
            part.pop(0)
        match part:
            case [first, middle, last] if middle.only in _NUMBER_COMPARISONS:
                _check_all([first, last], "[0-9]{1,9}")
            case [_, middle, _] if middle.only == "=~":
                pass
            case [_] | [_, _] | [_, _, _]:
                files += _read_test(part)
            case _:
                raise Asks("has a test that is not known")
        part = []
    return files


def _check_all(arguments: list[Argument], form: str) -> None:
    if not all(argument.texts and all(re.fullmatch(form, text) for text in argument.texts) for argument in arguments):
        raise Asks("compares what may be no number in [[ ]]")


_SLEEP = re.compile(r"[0-3](?:\.[0-9]{1,3})?s?")


def check_sleep(arguments: list[Argument]) -> None:
    """Raises `Asks` for a sleep of more than a moment."""
    if len(arguments) != 1 or not _SLEEP.fullmatch(arguments[0].only or ""):
        raise Asks("waits")
