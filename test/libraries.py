"""Checks the shared libraries as their users meet them: what they export, what they need and how large they are."""

import os
import re
import subprocess
import sys

COMPILER = r"qdc[A-Z]\w*|qd::(compile\(.*|getEmitKinds\(\)|describeTargets\S*\(\)|getVersionText\S*\(\))"
RUNTIME = r"qdrt[A-Z]\w*|((vtable|typeinfo|typeinfo name) for )?qd::rt::.*"
RUNTIME_BYTES = 1500000


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def exported(library):
    """The demangled names of the symbols that a library defines."""
    lines = output("nm", "--dynamic", "--defined-only", "--demangle", library).splitlines()
    return [line.split(" ", 2)[2] for line in lines]


def main():
    folder = sys.argv[1]
    compiler, runtime = (os.path.join(folder, name) for name in ("libqdcompiler.so", "libqdruntime.so"))
    problems = []
    for library, pattern in ((compiler, COMPILER), (runtime, RUNTIME)):
        names = exported(library)
        problems += [f"{library} exports {name}" for name in names if not re.fullmatch(pattern, name)]
        if not names:
            problems.append(f"{library} exports nothing")
    needed = output("readelf", "--dynamic", "--wide", runtime)
    problems += [f"{runtime} needs {name}" for name in re.findall(r"\(NEEDED\).*\[(.*)\]", needed)
                 if not re.match(r"lib(c|m|dl|stdc\+\+|gcc_s)\.so|ld-linux", name)]
    if os.path.getsize(runtime) >= RUNTIME_BYTES:
        problems.append(f"{runtime} has {os.path.getsize(runtime)} bytes, expected fewer than {RUNTIME_BYTES}")
    sys.exit("\n".join(problems) or None)


main()
