#!/bin/bash
# Shows the demonstration, then builds everything and runs all tests. The last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export QDC_BUILD=${QDC_BUILD:-build}
tools/demo.sh
tools/build.sh

# The Python packages of the tests, in an environment of the build folder.
venv=$QDC_BUILD/venv
if ! cmp -s test/requirements.txt "$venv/installed.txt"; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install --quiet --disable-pip-version-check -r test/requirements.txt
  cp test/requirements.txt "$venv/installed.txt"
fi
exec "$venv/bin/python" test/all.py "$QDC_BUILD"
