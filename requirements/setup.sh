#!/usr/bin/env bash
# Makes .venv from the lock of this machine's TFX line; does nothing when it is up to date.
# TFX_EDGE_LINE=1.16 or 1.21 chooses the line, TFX_EDGE_PYTHON a Python.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
venv=.venv stamp=.venv/up-to-date

fail() {
  echo "set-up: $*" >&2
  exit 1
}

line() {
  local glibc
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | awk '{print $2}')
  [ -n "$glibc" ] || fail "this machine has no glibc; TFX's wheels need Linux with glibc 2.28 or newer"
  # ml-metadata and TFDV of the 1.21 line are built for glibc 2.39
  if [ "$(printf '%s\n' 2.39 "$glibc" | sort -V | head -n 1)" = 2.39 ]; then echo 1.21; else echo 1.16; fi
}

# Pythons that may fit, the ones named by version first: PATH, pyenv's root, those that uv manages.
candidates() {
  local version root
  local -a roots=("${PYENV_ROOT:-$HOME/.pyenv}")
  if command -v pyenv >/dev/null; then roots+=("$(dirname "$(dirname "$(readlink -f "$(command -v pyenv)")")")"); fi
  for version in "$@"; do
    echo "python$version"
    for root in "${roots[@]}"; do printf '%s\n' "$root/versions/$version."*/bin/python; done
    printf '%s\n' "${UV_PYTHON_INSTALL_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/uv/python}/cpython-$version."*/bin/python3
  done
  echo python3
}

# The first candidate that runs and has one of the versions; a pyenv shim may exist and not run.
find_python() {
  local candidate found
  while read -r candidate; do
    command -v "$candidate" >/dev/null || continue
    found=$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)' 2>/dev/null) || continue
    case " $* " in *" ${found%% *} "*)
      echo "${found#* }"
      return
      ;;
    esac
  done < <(if [ -n "${TFX_EDGE_PYTHON:-}" ]; then echo "$TFX_EDGE_PYTHON"; else candidates "$@"; fi)
}

line=${TFX_EDGE_LINE:-$(line)}
case $line in
  1.16) versions=(3.10) ;;
  1.21) versions=(3.13 3.12 3.11) ;;
  *) fail "TFX_EDGE_LINE is $line; expected 1.16 or 1.21" ;;
esac
lock=requirements/tfx-$line.txt
wanted=$(cat "$lock" pyproject.toml setup.py requirements/setup.sh | sha256sum | cut -d ' ' -f 1)
if [ -x "$venv/bin/python" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then exit 0; fi

python=$(find_python "${versions[@]}")
[ -n "$python" ] || fail "no Python ${versions[*]} found for TFX $line on PATH, in pyenv or uv; install one (apt-get install python3, or pyenv install ${versions[0]})"
"$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python has no venv module; install it (apt-get install python3-venv)"
command -v c++ >/dev/null || command -v g++ >/dev/null || fail "no C++ compiler, which pyfarmhash needs; install one (apt-get install g++)"
"$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' ||
  fail "$python has no headers (Python.h), which pyfarmhash needs; install them (apt-get install python3-dev)"

echo "set-up: TFX $line, $("$python" -V) in $venv"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
run() { "$@" >"$log" 2>&1 || fail "$1 ${2##*/} failed: $(grep -v '^\s*$' "$log" | tail -n 3 | tr -s '\n ' ' ')"; }
rm -f "$stamp"
if ! [ -x "$venv/bin/python" ] || [ "$("$venv/bin/python" -V 2>&1)" != "$("$python" -V)" ]; then run "$python" -m venv --clear "$venv"; fi
if ! [ -x "$venv/bin/uv" ]; then
  grep -A 400 '^uv==' "$lock" | awk 'NR > 1 && /^[a-z]/ {exit} {print}' >"$venv/uv.txt" # uv's own entry of the lock, with its hashes
  run "$venv/bin/python" -m pip install --quiet --require-hashes --no-deps -r "$venv/uv.txt"
fi
run "$venv/bin/uv" pip sync --python "$venv/bin/python" --require-hashes "$lock"
run "$venv/bin/uv" pip install --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
echo "$wanted" >"$stamp"
