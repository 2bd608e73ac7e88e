"""Checks the shared libraries as their users meet them: what they export, what they need and how large they are."""

import os
import re
import subprocess
import sys

# The compiler's interface in C, which only grows, and in C++.
COMPILER_C = """
qdcApiVersion qdcVersionText qdcDescribeTargets qdcDescribeCache qdcFreeString
qdcInitCompileOptions qdcInitCompileOptionsSized qdcCompile
qdcResultOk qdcResultIsCached qdcResultData qdcResultDiagnostics qdcResultFree
qdcResultNumDiagnostics qdcResultDiagnostic qdcResultNote
qdcResultNumVariants qdcResultVariant qdcResultFindVariant
qdcInitHostOptions qdcInitHostOptionsSized qdcHostLoad qdcHostCompile qdcHostInterface qdcHostLaunch qdcHostUnload
""".split()
COMPILER_CPP = ["qd::compile", "qd::describeCache", "qd::describeTargets", "qd::getEmitKinds", "qd::getVersionText"]
RUNTIME = r"qdrt[A-Z]\w*|((vtable|typeinfo|typeinfo name) for )?qd::rt::.*"
RUNTIME_BYTES = 1500000
HEADER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "compiler", "qdc.h")


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
    wanted, found = set(COMPILER_C + COMPILER_CPP), {re.sub(r"(\[abi:\w+\])?\(.*", "", name) for name in exported(compiler)}
    problems += [f"{compiler} exports {name}" for name in sorted(found - wanted)]
    problems += [f"{compiler} lacks {name}" for name in sorted(wanted - found)]
    with open(HEADER) as header:
        declared = set(re.findall(r"^QDC_API [^(;]*?\b(qdc\w+)\(", header.read(), re.MULTILINE))
    problems += [f"{HEADER} declares {name}, which is not listed here" for name in sorted(declared - wanted)]
    problems += [f"{HEADER} does not declare {name}" for name in sorted(set(COMPILER_C) - declared)]
    names = exported(runtime)
    problems += [f"{runtime} exports {name}" for name in names if not re.fullmatch(RUNTIME, name)]
    if not names:
        problems.append(f"{runtime} exports nothing")
    needed = output("readelf", "--dynamic", "--wide", runtime)
    problems += [f"{runtime} needs {name}" for name in re.findall(r"\(NEEDED\).*\[(.*)\]", needed)
                 if not re.match(r"lib(c|m|dl|stdc\+\+|gcc_s)\.so|ld-linux", name)]
    if os.path.getsize(runtime) >= RUNTIME_BYTES:
        problems.append(f"{runtime} has {os.path.getsize(runtime)} bytes, expected fewer than {RUNTIME_BYTES}")
    sys.exit("\n".join(problems) or None)


main()
