#!/bin/sh
# Installs missing programs of the end-to-end tests (on Debian, as root). Elsewhere it reports what
# cannot be tested; with CI=true it fails if anything is missing.
set -u

PEERS=$(dirname "$0")/peer/peers.txt

present() { # command on the PATH, or file pattern
    case $1 in /*) for file in $1; do [ -e "$file" ] && return; done ;; *) command -v "$1" ;; esac
} >/dev/null 2>&1

missing() { # print "name packages" of each missing peer
    grep -v '^#' "$PEERS" | while read -r name there packages; do
        present "$there" || printf '%s %s\n' "$name" "$packages"
    done
}

packages() { # print the packages of missing peers, separated by spaces
    missing | cut -d' ' -f2 | tr ',\n' '  '
}

[ -z "$(missing)" ] && exit 0

install() { # install all packages, or none
    # Slim images exclude /usr/share/doc, which the tests mirror.
    apt-get -qq -y -o DPkg::Lock::Timeout=600 --no-install-recommends \
        -o DPkg::Options::='--path-include=/usr/share/doc/*' install "$@" >/dev/null
}

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "peers: installing $(packages)"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq -o DPkg::Lock::Timeout=600 update >/dev/null
    # shellcheck disable=SC2046  # one word a package is meant
    install $(packages) || for package in $(packages); do install "$package"; done
fi

[ -z "$(missing)" ] && exit 0

echo "peers: missing, so the end-to-end tests that need them cannot run:"
missing | sed 's/ .*//; s/^/  /'
echo "  to run them: apt-get install $(packages)"
if [ "${CI:-}" = true ]; then
    echo "  where CI=true, that fails the tests"
    exit 1
fi
exit 0
