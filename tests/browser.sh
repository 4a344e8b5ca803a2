#!/usr/bin/env bash
# A Chromium for the report's tests where there is none, on Debian and Ubuntu as root. Where it can't be had the tests in a browser are
# skipped, and a line that starts with "browser:" says why.
set -uo pipefail
log=${TMPDIR:-/tmp}/tfx-edge-browser.log

without() {
  printf 'browser: %s; the tests of the report in a browser are skipped\n' "$*" >&2
  exit 0
}

if command -v chromium >/dev/null && command -v chromedriver >/dev/null; then exit 0; fi
command -v apt-get >/dev/null || without "no chromium and chromedriver here, and no apt-get to install them"
[ "$(id -u)" = 0 ] || without "no chromium and chromedriver here (apt-get install chromium chromium-driver)"
echo "browser: installing chromium for the report's tests"
apt-get update -qq >"$log" 2>&1 || without "apt-get update failed, see $log"
# Without a font a page has no text to look at.
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver fonts-dejavu-core >>"$log" 2>&1 ||
  without "apt-get couldn't install chromium, see $log"
