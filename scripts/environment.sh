# Sourced by the other scripts: makes `.venv` beside them on a machine that has only Python 3.11 or newer.
# Usage: prepare_environment [EXTRA]   (EXTRA: the optional dependency group to install as well)

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
venv="$root/.venv"

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" python3 python3.14 python3.13 python3.12 python3.11 python; do
        [ -n "$candidate" ] && command -v "$candidate" >/dev/null 2>&1 || continue
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    fail "Tenuto needs Python 3.11 or newer; none was found. Install it, or name it with PYTHON=/path/to/python."
}

# What is installed: the place (a virtual environment cannot be moved), the dependencies, the extra.
describe_wanted() {
    printf '%s %s %s' "$root" "$(cksum <"$root/pyproject.toml")" "$1"
}

is_prepared() {
    local extra stamp="$venv/.installed"
    [ -x "$venv/bin/python" ] && [ -r "$stamp" ] || return 1
    for extra in "$1" dev; do # the development environment has everything that a run needs
        [ "$(cat "$stamp")" = "$(describe_wanted "$extra")" ] && return
    done
    return 1
}

install_with_uv() {
    command -v uv >/dev/null 2>&1 || return 1
    { [ -x "$venv/bin/python" ] || uv venv --quiet --allow-existing --python "${PYTHON:->=3.11}" "$venv"; } >&2 &&
        uv pip install --quiet --compile-bytecode --python "$venv/bin/python" -e "$1" >&2 && return
    echo "uv could not do it; trying with pip ..." >&2
    return 1
}

install_with_pip() {
    local python
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        python=$(find_python) || exit 1
        "$python" -m venv --clear "$venv" >&2 ||
            fail "$python cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv"
    fi
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input -e "$1" >&2 ||
        fail "installing the dependencies failed; see above"
}

# Two first starts at the same time: one installs, the other waits. The system lets go of the lock by itself.
take_turn() {
    exec 9<"$root/pyproject.toml"
    if command -v flock >/dev/null 2>&1; then flock 9 || true; fi
}

prepare_environment() {
    local extra="${1:-}" what
    is_prepared "$extra" && return
    take_turn
    is_prepared "$extra" && exec 9<&- && return
    echo "Preparing $venv (once) ..." >&2
    what="$root${extra:+[$extra]}"
    install_with_uv "$what" || install_with_pip "$what"
    describe_wanted "$extra" >"$venv/.installed"
    exec 9<&-
}
