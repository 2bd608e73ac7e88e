#!/bin/bash
# Installs what is missing of the Debian packages that qdc is built from, then builds it into build/.
# Arguments are the targets to build; none builds everything. QDC_BUILD names another build folder.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${QDC_BUILD:-build}

packages=(
  clang-22 lld-22 llvm-22 llvm-22-dev liblld-22-dev libmlir-22-dev mlir-22-tools llvm-22-tools # the compiler's parts
  zlib1g-dev libzstd-dev                                       # which LLVM's archives need
  spirv-tools spirv-headers                                    # SPIR-V: validation, disassembly
  libvulkan-dev libvulkan1 mesa-vulkan-drivers nlohmann-json3-dev # the runtime; Vulkan on the processor
  cmake ninja-build ccache g++ binutils                        # the build
  libgtest-dev libmpfr-dev python3 python3-venv qemu-user      # the tests
)

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
if ((${#missing[@]})); then
  echo "installing ${missing[*]}"
  as_root=()
  if ((EUID)); then
    command -v sudo >/dev/null || { echo "to install packages, run this as root or install sudo" >&2; exit 1; }
    as_root=(sudo)
  fi
  log=$(mktemp)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive bash -euc '
    apt-get -q update
    apt-get -q install -y --no-install-recommends "$@"' install "${missing[@]}" >"$log" 2>&1 ||
    { tail -n 30 "$log" >&2; echo "apt-get failed; qdc is built with the packages of Debian 12" >&2; exit 1; }
  rm "$log"
fi

if [[ ! -f $build/build.ninja ]]; then
  cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER=clang-22 -DCMAKE_CXX_COMPILER=clang++-22 >/dev/null
fi
cmake --build "$build" ${1:+--target "$@"}
