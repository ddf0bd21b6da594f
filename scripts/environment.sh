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

prepare_environment() {
    local extra="${1:-}" wanted stamp python
    wanted="$extra $(cksum <"$root/pyproject.toml")"
    stamp="$venv/.installed${extra:+-$extra}"
    if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
        return
    fi
    echo "Preparing $venv (once) ..." >&2
    if command -v uv >/dev/null 2>&1; then
        [ -x "$venv/bin/python" ] || uv venv --quiet --python '>=3.11' "$venv" >&2 || fail "uv could not make $venv"
        uv pip install --quiet --compile-bytecode --python "$venv/bin/python" -e "$root${extra:+[$extra]}" >&2 ||
            fail "installing the dependencies failed; see above"
    else
        python=$(find_python) || exit 1
        [ -x "$venv/bin/python" ] || "$python" -m venv "$venv" >&2 ||
            fail "$python cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -e "$root${extra:+[$extra]}" >&2 ||
            fail "installing the dependencies failed; see above"
    fi
    printf '%s' "$wanted" >"$stamp"
}
