#!/usr/bin/env bash
# Installs Tenuto into an environment of its own, and the command for all users of the container.
set -euo pipefail
version="${VERSION:-latest}"
place=/opt/tenuto

if command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        bubblewrap git python3 python3-venv ripgrep >/dev/null
fi
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Tenuto needs Python 3.11 or newer; add the feature python to your devcontainer.json" >&2
    exit 1
}
python3 -m venv "$place"
if [ "$version" = latest ]; then wanted=tenuto; else wanted="tenuto==$version"; fi
"$place/bin/pip" install --quiet --no-cache-dir "${TENUTO_WHEEL:-$wanted}"
ln -sf "$place/bin/tenuto" /usr/local/bin/tenuto
install -d -m 0700 /var/lib/tenuto
[ -z "${_REMOTE_USER:-}" ] || chown "$_REMOTE_USER" /var/lib/tenuto
tenuto --version
