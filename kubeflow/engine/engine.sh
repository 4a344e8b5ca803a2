#!/usr/bin/env bash
# A Docker-compatible engine where there is none, on Debian and Ubuntu as root; one that answers already is left as it is.
#   engine.sh up     sets it up and prints the lines that a shell needs: eval "$(kubeflow/engine/engine.sh up)"
#   engine.sh down   ends the service that `up` started
# TFX_EDGE_ENGINE_HOME   folder of its socket and configuration, by default /var/tmp/tfx-edge-engine
# What stops it is told in one line that starts with "engine:".
set -euo pipefail
home=${TFX_EDGE_ENGINE_HOME:-/var/tmp/tfx-edge-engine}
socket=$home/engine.sock
base=docker.io/library/debian:trixie-slim

fail() {
  printf 'engine: %s\n' "$*" >&2
  exit 1
}

# Whether something answers Docker's API at an address, or at docker's default.
answers() {
  local path=${1#unix://}
  [ "$path" != "$1" ] || return 1
  curl --silent --fail --max-time 5 --unix-socket "$path" http://engine/_ping >/dev/null 2>&1
}

install_packages() {
  command -v apt-get >/dev/null || fail "no podman here and no apt-get to install it; start an engine and set DOCKER_HOST"
  [ "$(id -u)" = 0 ] || fail "podman isn't set up and needs root to be; run this as root, or start an engine and set DOCKER_HOST"
  apt-get update -qq >"$home/apt.log" 2>&1 || fail "apt-get update failed, see $home/apt.log; is the package mirror reachable?"
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
    podman buildah runc debootstrap fuse-overlayfs ca-certificates curl >>"$home/apt.log" 2>&1 || fail "apt-get couldn't install podman, see $home/apt.log"
}

# The limits are those that a container gets without asking the kernel for more; the host's network, since a bridge needs rights
# that a machine in a sandbox lacks.
configure() {
  cat >"$home/containers.conf" <<CONF
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=30000:30000"]
netns = "host"
[engine]
runtime = "runc"
CONF
  export CONTAINERS_CONF=$home/containers.conf
}

# The machine's own Debian mirror, if it has one.
mirror() {
  find /etc/apt -name '*.sources' -o -name '*.list' | xargs --no-run-if-empty \
    sed -nE 's/^(URIs: *|deb +(\[[^]]*\] +)?)(https?:[^ ]*\/debian)\/?( .*)?$/\3/p' | head -n 1
}

# Debian 13 from a registry, or from Debian's packages, with what this machine trusts and resolves names by.
make_base() {
  podman image exists "$base" && return
  timeout 120 podman pull --quiet "$base" >/dev/null 2>&1 && return
  local from root
  from=$(mirror)
  root=$(mktemp -d "$home/base.XXXXXX")
  debootstrap --variant=minbase --include=ca-certificates trixie "$root" "${from:-http://deb.debian.org/debian}" >"$home/debootstrap.log" 2>&1 ||
    fail "no registry gives $base and debootstrap failed, see $home/debootstrap.log"
  rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,man,locale}/*
  for file in /etc/hosts /etc/resolv.conf /etc/ssl/certs/ca-certificates.crt; do [ ! -e "$file" ] || cp -L "$file" "$root$file"; done
  tar -C "$root" -c . | podman import --quiet - "$base" >/dev/null
  rm -rf "$root"
}

serve() {
  answers "unix://$socket" && return
  rm -f "$socket"
  nohup podman system service --time=0 "unix://$socket" >"$home/service.log" 2>&1 9>&- &
  echo $! >"$home/service.pid"
  for _ in $(seq 100); do
    answers "unix://$socket" && return
    sleep 0.1
  done
  fail "podman's service didn't answer within 10 s, see $home/service.log"
}

case ${1:-} in
  up)
    if answers "${DOCKER_HOST:-unix:///var/run/docker.sock}"; then exit 0; fi
    mkdir -p "$home"
    for tool in podman buildah runc debootstrap curl; do
      command -v $tool >/dev/null || { install_packages && break; }
    done
    configure
    exec 9>"$home/lock"
    flock 9
    make_base
    serve
    printf 'export DOCKER_HOST=unix://%s CONTAINERS_CONF=%s\n' "$socket" "$CONTAINERS_CONF"
    ;;
  down)
    [ ! -e "$home/service.pid" ] || kill "$(cat "$home/service.pid")" 2>/dev/null || true
    rm -f "$home/service.pid" "$socket"
    ;;
  *)
    sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
