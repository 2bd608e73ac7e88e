"""Checks that includes follow the data flow: a folder names only itself and those before it."""

import glob
import os
import re
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ORDER = ["ir", "passes", "codegen", "compiler", "tools"]
# The runtime meets the compiler only through its C interface.
RUNTIME = re.compile(r"runtime/|compiler/qdc\.h")


def may_include(folder, header):
    if folder == "runtime":
        return RUNTIME.match(header)
    if folder == "tools" and header.startswith("runtime/"):
        return True
    return header.split("/")[0] in ORDER[:ORDER.index(folder) + 1]


def main():
    problems, files = [], 0
    for folder in ORDER + ["runtime"]:
        for path in glob.glob(os.path.join(SOURCE, folder, "**", "*"), recursive=True):
            if not path.endswith((".cpp", ".h", ".td")):
                continue
            files += 1
            with open(path) as source:
                for number, line in enumerate(source, 1):
                    match = re.match(r'\s*#?include "((?:ir|passes|codegen|compiler|runtime|tools)/[^"]+)"', line)
                    if match and not may_include(folder, match.group(1)):
                        problems.append(f"{os.path.relpath(path, SOURCE)}:{number}: {folder} includes {match.group(1)}")
    sys.exit("\n".join(problems) or (None if files else "found no sources"))


main()
