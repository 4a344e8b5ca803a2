#!/usr/bin/env bash
# Makes the image's two environments from the locks, run by the Dockerfile in the folder of pyproject.toml:
#   /opt/tfx-edge           what the extra `tfx` of pyproject.toml asks for, without the tools to work on the project
#   /opt/tfx-edge/targets   the tools that judge models for microcontrollers and Ethos-U
set -euo pipefail
lock=requirements/tfx-1.21.txt
if [ -e /run/secrets/ca ]; then export SSL_CERT_FILE=/run/secrets/ca PIP_CERT=/run/secrets/ca; fi

# uv's own entry of the lock, with its hashes.
awk '/^[a-z0-9]/ {mine = /^uv==/} mine' $lock >/tmp/uv.txt
python3 -m venv /opt/uv
/opt/uv/bin/pip install --quiet --no-cache-dir --disable-pip-version-check --require-hashes --no-deps --requirement /tmp/uv.txt

# The lock as constraint: its versions, its hashes, and only as much of it as is asked for. TFX packages a module_file with
# `python -m pip wheel` inside the environment.
/opt/uv/bin/uv venv --quiet --python /usr/bin/python3 /opt/tfx-edge
/opt/uv/bin/uv pip install --quiet --no-cache --python /opt/tfx-edge/bin/python --verify-hashes \
  --constraint $lock --requirement pyproject.toml --extra tfx pip setuptools wheel
strays=$(/opt/uv/bin/uv pip freeze --python /opt/tfx-edge/bin/python | grep -vxFf <(sed -n 's/^\([a-z0-9][^ ]*==[^ ]*\).*/\1/p' $lock)) || true
if [ -n "$strays" ]; then
  echo "image: $lock does not pin" $strays "; compile it anew (make lock)" >&2
  exit 1
fi

/opt/uv/bin/uv venv --quiet --python /usr/bin/python3 /opt/tfx-edge/targets
/opt/uv/bin/uv pip sync --quiet --no-cache --python /opt/tfx-edge/targets/bin/python --require-hashes --only-binary :all: requirements/targets.txt

# Headers to compile TensorFlow's operators with, 430 MB: there is no compiler.
rm -r /opt/tfx-edge/lib/python3*/site-packages/tensorflow/include
