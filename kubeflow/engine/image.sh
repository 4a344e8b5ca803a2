#!/usr/bin/env bash
# Builds the image and judges it: image.sh [NAME], by default localhost/tfx-edge:dev. Prints seconds and size; fails where it is
# over 3.5 GB, holds a compiler or a tool to work on the project, or doesn't start as an unknown user with its root read-only.
# PIP_INDEX_URL (the package index) and SSL_CERT_FILE (certificates to trust while building) serve the build where they are set.
# BUILDAH_LAYERS=false keeps no layers between the steps: a quarter less work where nothing is built twice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
name=${1:-localhost/tfx-edge:dev}
limit=3500000000
version=$(sed -nE 's/^__version__ = "(.*)"$/\1/p' __init__.py)
revision=$(git describe --always --exclude '*' --abbrev=40 --dirty 2>/dev/null || echo unknown)
options=(--build-arg "VERSION=$version" --build-arg "REVISION=$revision")
[ -z "${PIP_INDEX_URL:-}" ] || options+=(--build-arg "INDEX=$PIP_INDEX_URL")
[ -z "${SSL_CERT_FILE:-}" ] || options+=(--secret "id=ca,src=$SSL_CERT_FILE")

fail() {
  printf 'image: %s\n' "$*" >&2
  exit 1
}

started=$SECONDS
# buildah's chroot isolation builds where a container can't be nested; docker and podman build the same file.
export BUILDAH_LAYERS=${BUILDAH_LAYERS:-true}
if command -v buildah >/dev/null; then
  build=(buildah bud --isolation chroot --network host) run=podman
else
  build=(docker build) run=docker
fi
log=$(mktemp)
"${build[@]}" -f kubeflow/Dockerfile "${options[@]}" -t "$name" . >"$log" 2>&1 || {
  tail -n 20 "$log" >&2
  fail "the build failed, its whole output is in $log"
}
rm -f "$log"
size=$($run image inspect --format '{{.Size}}' "$name")
echo "image: $name, $((SECONDS - started)) s, $((size / 1000000)) MB"
[ "$size" -le $limit ] || fail "it is $((size / 1000000)) MB, more than $((limit / 1000000)) MB; see what grew: $run history $name"

said=$($run run --rm --user 12345:54321 --read-only --tmpfs /tmp "$name" sh -euc '
  for tool in cc gcc g++ clang uv ruff mypy pytest; do
    if command -v $tool; then exit 1; fi
  done
  touch "$HOME/writable"
  tfx-edge --help
  /opt/tfx-edge/targets/bin/python -c "import ethosu.vela, tflite_micro"
  python -c "import tfx_edge.kubeflow.entrypoint.run, tensorflow, tf_keras; assert tensorflow.keras.Model is tf_keras.Model"
' 2>&1) || fail "as user 12345 with its root read-only it doesn't start, or it holds a tool: $(tail -n 1 <<<"$said")"
