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
qdcBuilderCreate qdcBuilderFree qdcBuilderSetLocation qdcBuilderBeginKernel qdcBuilderEndKernel qdcBuilderOp
qdcBuilderBeginOp qdcBuilderBeginRegion qdcBuilderEndRegion qdcBuilderEndOp qdcBuilderInteger qdcBuilderFloat
qdcBuilderFinish qdcBuilderError
qdcInitHostOptions qdcInitHostOptionsSized qdcHostLoad qdcHostCompile qdcHostInterface qdcHostLaunch qdcHostUnload
""".split()
COMPILER_CPP = ["qd::compile", "qd::describeCache", "qd::describeTargets", "qd::getEmitKinds", "qd::getVersionText"]
# The runtime's interface in C; what it exports in C++ is its namespace.
RUNTIME_C = """
qdrtApiVersion qdrtErrorText
qdrtListDevices qdrtDeviceListSize qdrtDeviceListName qdrtDeviceListText qdrtDeviceListPresent qdrtDeviceListFree
qdrtInitDeviceOptionsSized qdrtDeviceOpen qdrtDeviceClose qdrtDeviceGetProperties
qdrtBufferAllocate qdrtBufferWrap qdrtBufferFree qdrtBufferBytes qdrtBufferAddress qdrtBufferMap
qdrtBufferUpload qdrtBufferDownload qdrtBufferFill qdrtBufferCopy
qdrtModuleLoad qdrtModuleFree qdrtModuleInterface qdrtModuleWarnings qdrtModuleNumKernels qdrtModuleKernelName
qdrtModuleGetKernel qdrtKernelOccupancy
qdrtScalarI32 qdrtScalarI64 qdrtScalarF32 qdrtScalarF64 qdrtArray qdrtLaunch
qdrtDeviceSynchronize qdrtDeviceContext
qdrtPrepare qdrtPreparedSetArgument qdrtPreparedSetGrid qdrtPreparedLaunch qdrtPreparedFree
qdrtStreamCreate qdrtStreamWrap qdrtStreamFree qdrtStreamNative qdrtStreamSynchronize qdrtStreamQuery
qdrtStreamUpload qdrtStreamDownload qdrtStreamCopy qdrtStreamFill qdrtStreamWaitEvent
qdrtEventCreate qdrtEventFree qdrtEventRecord qdrtEventSynchronize qdrtEventQuery qdrtEventElapsed
qdrtGraphCreate qdrtGraphFree qdrtGraphLaunch
qdrtGraphAddLaunch qdrtGraphAddUpload qdrtGraphAddDownload qdrtGraphAddCopy qdrtGraphAddFill
""".split()
RUNTIME_CPP = r"((vtable|typeinfo|typeinfo name) for )?qd::rt::.*"
RUNTIME_BYTES = 1500000
SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def exported(library):
    """The demangled names of the symbols that a library defines."""
    lines = output("nm", "--dynamic", "--defined-only", "--demangle", library).splitlines()
    return [line.split(" ", 2)[2] for line in lines]


def undocumented(header):
    """The functions of a header without a comment: in front of them, behind them, or in front of those right above."""
    names = []
    for paragraph in re.split(r"\n(?:[ \t]*\n)+", header):
        hasComment = False
        for part in re.split(r"(?<=;)|(?<=\*/)", paragraph):
            declared = re.search(r"^QD(?:C|RT)_API [^(;]*?\b(qd(?:c|rt)\w+)\(", part, re.MULTILINE)
            hasComment |= "/*" in part
            if declared and not hasComment:
                behind = paragraph.split(declared.group(0), 1)[1].split("\n\n")[0]
                if not re.match(r"[^;]*;[ \t]*/\*", behind):
                    names.append(declared.group(1))
    return names


def main():
    folder = sys.argv[1]
    compiler, runtime = (os.path.join(folder, name) for name in ("libqdcompiler.so", "libqdruntime.so"))
    problems = []
    strip = lambda name: re.sub(r"(\[abi:\w+\])?\(.*", "", name)
    for library, header, listed, other in (
            (compiler, "compiler/qdc.h", COMPILER_C, set(COMPILER_CPP)),
            (runtime, "runtime/qdrt.h", RUNTIME_C,
             {strip(name) for name in exported(runtime) if re.match(RUNTIME_CPP, name)})):
        wanted, found = set(listed) | other, {strip(name) for name in exported(library)}
        problems += [f"{library} exports {name}" for name in sorted(found - wanted)]
        problems += [f"{library} lacks {name}" for name in sorted(wanted - found)]
        with open(os.path.join(SOURCE, header)) as file:
            text = file.read()
        declared = set(re.findall(r"^QD(?:C|RT)_API [^(;]*?\b(qd(?:c|rt)\w+)\(", text, re.MULTILINE))
        problems += [f"{header} does not say what {name} does" for name in undocumented(text)]
        problems += [f"{header} declares {name}, which is not listed here" for name in sorted(declared - wanted)]
        problems += [f"{header} does not declare {name}" for name in sorted(set(listed) - declared)]
    needed = output("readelf", "--dynamic", "--wide", runtime)
    problems += [f"{runtime} needs {name}" for name in re.findall(r"\(NEEDED\).*\[(.*)\]", needed)
                 if not re.match(r"lib(c|m|dl|stdc\+\+|gcc_s)\.so|ld-linux", name)]
    if os.path.getsize(runtime) >= RUNTIME_BYTES:
        problems.append(f"{runtime} has {os.path.getsize(runtime)} bytes, expected fewer than {RUNTIME_BYTES}")
    sys.exit("\n".join(problems) or None)


main()
