#!/bin/bash
# Shows the demonstration, then builds everything and runs all tests. The last line is "N passed, N failed".
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export QDC_BUILD=${QDC_BUILD:-build}
tools/demo.sh
tools/build.sh
exec python3 test/all.py "$QDC_BUILD"
