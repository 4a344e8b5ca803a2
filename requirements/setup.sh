#!/usr/bin/env bash
# Makes .venv from the lock of this machine's TFX line, with the project itself in editable mode, .venv/targets with the tools that
# judge models for microcontrollers and Ethos-U, and .venv/device with what a device has; does nothing when they are up to date.
#   TFX_EDGE_LINE=1.16|1.21   instead of the line that fits the machine's glibc
#   TFX_EDGE_PYTHON=...       instead of the first fitting Python on PATH, under pyenv's root or uv's
#   CC=... CXX=...            the compilers, by default gcc and g++
# What stops it is told in one line that starts with "set-up:".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
unset VIRTUAL_ENV PYTHONPATH PYTHONHOME
venv=.venv stamp=.venv/up-to-date

fail() {
  printf 'set-up: %s\n' "$*" >&2
  exit 1
}

# ml-metadata and TFDV of the 1.21 line have wheels for glibc 2.39 and newer alone.
fitting_line() {
  local glibc
  glibc=$(getconf GNU_LIBC_VERSION 2>/dev/null | cut -d ' ' -f 2) || true
  [ -n "$glibc" ] && [ "$(uname -m)" = x86_64 ] || fail "TFX has wheels for Linux on x86-64 with glibc alone, this is $(uname -sm); use such a machine"
  if printf '%s\n' 2.39 "$glibc" | sort -CV; then echo 1.21; else echo 1.16; fi
}

# The same digest means up to date. The folder's path counts, because the scripts in an environment hold it.
digest() { { pwd; cat requirements/setup.sh "$@"; } | sha256sum | cut -d ' ' -f 1; }
venv_is_up_to_date() { [ -x $venv/bin/python ] && [ "$(cat $stamp 2>/dev/null)" = "$wanted" ]; }
side_is_up_to_date() { [ "$(cat ".venv/$1/up-to-date" 2>/dev/null)" = "$(digest "requirements/$1.txt")" ]; }
up_to_date() { venv_is_up_to_date && side_is_up_to_date targets && side_is_up_to_date device; }

# Every Python that may do, most wanted first.
candidates() {
  local version folder pyenv folders
  # `pyenv root` follows HOME, but pyenv's own folder is where its versions lie when HOME is another.
  pyenv=$(readlink -f "$(type -P pyenv)") || true
  folders=("${PYENV_ROOT:-${HOME:-}/.pyenv}/versions" "${pyenv%/*/*}/versions" "${UV_PYTHON_INSTALL_DIR:-${XDG_DATA_HOME:-${HOME:-}/.local/share}/uv/python}")
  for version in "${versions[@]}"; do
    type -aP "python$version" || true
    for folder in "${folders[@]}"; do
      printf '%s\n' "$folder"/{,cpython-}"$version".*/bin/python
    done
  done
  type -aP python3 python || true
}

# Sets python to the first candidate of a fitting version that has its headers.
choose_python() {
  local candidate found version headers bare=
  while read -r candidate; do
    # A pyenv shim may exist and not run; an environment's Python leads to the one that it was made from.
    found=$("$candidate" -I -c '
import os, sys, sysconfig
headers = os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
print("%d.%d" % sys.version_info[:2], int(headers), os.path.realpath(sys.executable))' 2>/dev/null) || continue
    read -r version headers python <<<"$found"
    [[ " ${versions[*]} " == *" $version "* ]] || continue
    [ "$headers" = 1 ] && return
    bare=${bare:-$python}
  done < <(if [ -n "${TFX_EDGE_PYTHON:-}" ]; then echo "$TFX_EDGE_PYTHON"; else candidates; fi)
  [ -z "$bare" ] || fail "$bare lacks its headers (Python.h), which pyfarmhash needs; install them (apt-get install python3-dev)"
  fail "no Python ${versions[*]} for TFX $line: looked ${TFX_EDGE_PYTHON:+at }${TFX_EDGE_PYTHON:-on PATH, in pyenv and uv}; install one (apt-get install python3, or pyenv install ${versions[0]})"
}

# Runs a command quietly; when it fails, says what was being done, and its first and last line of error: what, and why.
attempt() {
  local doing=$1 log reason
  shift
  log=$(mktemp)
  if "$@" >"$log" 2>&1; then
    rm -f "$log"
    return
  fi
  reason=$(grep -iE '^[^[:alnum:]]*(error|cause)' "$log" | sed -n 's/^[[:space:]]*//; 1p; 1!{$p}') || reason=$(grep -v '^[[:space:]]*$' "$log" | tail -n 1) || true
  rm -f "$log"
  fail "$doing failed: $(paste -sd ' ' <<<"$reason")"
}

make_venv() {
  choose_python
  "$python" -c 'import ensurepip, venv' 2>/dev/null || fail "$python has no venv module; install it (apt-get install python3-venv)"
  for compiler in "${CC:-gcc}" "${CXX:-g++}"; do
    command -v "${compiler%% *}" >/dev/null || fail "no compiler ${compiler%% *}, which pyfarmhash needs; install one (apt-get install g++) or name yours in CC and CXX"
  done
  echo "set-up: TFX $line, $("$python" -V), in $venv (3 GB; some minutes the first time)"

  # Without its stamp an environment is half-made, with another Python it is of no use.
  if [ ! -e $stamp ] || [ "$($venv/bin/python -c 'import os, sys; print(os.path.realpath(sys.executable))' 2>/dev/null)" != "$python" ]; then
    attempt "making $venv" "$python" -m venv --clear $venv
    # uv's own entry of the lock, with its hashes.
    awk '/^[a-z0-9]/ {mine = /^uv==/} mine' "$lock" >$venv/uv.txt
    attempt "installing uv" $venv/bin/python -m pip install --disable-pip-version-check --require-hashes --no-deps --requirement $venv/uv.txt
  fi
  rm -f $stamp
  # Bytecode now: where PYTHONDONTWRITEBYTECODE is set, every start would compile TFX anew.
  attempt "installing $lock" $venv/bin/uv pip sync --require-hashes --compile-bytecode --python $venv/bin/python "$lock"
  attempt "installing tfx-edge" $venv/bin/uv pip install --no-deps --no-build-isolation --python $venv/bin/python --editable .
  echo "$wanted" >$stamp
}

# Makes .venv/NAME from requirements/NAME.txt, that of a device with a link to the project in it. Where it can't be made nothing else stops: what needs
# it says so, and this is tried again when the lock changes.
make_side() {
  local name=$1 folder=.venv/$1 without="$2 (to try again: rm -r .venv/$1):"
  rm -rf "$folder"
  (
    attempt "$without making $folder" $venv/bin/uv venv --python $venv/bin/python "$folder"
    attempt "$without installing requirements/$name.txt" $venv/bin/uv pip sync --require-hashes --only-binary :all: --compile-bytecode --python "$folder/bin/python" "requirements/$name.txt"
    [ "$name" != device ] || for packages in "$folder"/lib/python3.*/site-packages; do ln -sfn "$PWD" "$packages/tfx_edge"; done
  ) || rm -rf "$folder"
  mkdir -p "$folder"
  digest "requirements/$name.txt" >"$folder/up-to-date"
}

line=${TFX_EDGE_LINE:-$(fitting_line)}
case $line in
  1.16) versions=(3.10) ;;
  1.21) versions=(3.13 3.12 3.11) ;;
  *) fail "TFX_EDGE_LINE is $line; give it 1.16 or 1.21" ;;
esac
lock=requirements/tfx-$line.txt
wanted=$(digest "$lock" setup.py pyproject.toml)
if up_to_date; then exit 0; fi

# One set-up at a time; the next one finds the work done.
exec 9<requirements/setup.sh
if command -v flock >/dev/null; then flock 9; fi
if up_to_date; then exit 0; fi

if ! venv_is_up_to_date; then make_venv; fi
if ! side_is_up_to_date targets; then make_side targets "targets tflm and ethos-u can't be judged here"; fi
if ! side_is_up_to_date device; then make_side device "the device client can't run here"; fi
