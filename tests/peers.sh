#!/bin/sh
# Programs the end-to-end tests talk to: installs what is missing where it can (Debian, root),
# says what cannot be tested where it cannot, and fails under CI=true if anything is missing.
set -u

# command:package[,package...]
PEERS="nginx:nginx
php8.2:php8.2-cli,php8.2-sqlite3,php8.2-intl,php8.2-mbstring,php8.2-xml,php8.2-curl
/usr/share/mediawiki/index.php:mediawiki
wget2:wget2
sqlite3:sqlite3
systemd-analyze:systemd
mandoc:mandoc"

present() { # a command on the PATH, or a file
    case $1 in /*) [ -e "$1" ] ;; *) command -v "$1" >/dev/null 2>&1 ;; esac
}

missing() {
    for peer in $PEERS; do
        present "${peer%%:*}" || printf '%s\n' "$peer"
    done
}

packages() { # of the lines of missing, separated by spaces
    missing | cut -d: -f2 | tr ',\n' '  '
}

[ -z "$(missing)" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "peers: installing$(packages | sed 's/^/ /')"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq -o DPkg::Lock::Timeout=600 update >/dev/null
    # shellcheck disable=SC2046  # one word a package is meant
    apt-get -qq -y -o DPkg::Lock::Timeout=600 --no-install-recommends install $(packages) >/dev/null
fi

[ -z "$(missing)" ] && exit 0

echo "peers: missing, so the end-to-end tests that need them are not run:"
missing | sed 's/:.*//; s/^/  /'
echo "  to run them: apt-get install $(packages)"
[ "${CI:-}" = true ] && exit 1
exit 0
