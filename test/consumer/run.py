"""Installs a build into a temporary prefix, builds this folder's project against it and checks what it prints."""

import os
import re
import subprocess
import sys
import tempfile

FOLDER = os.path.dirname(os.path.abspath(__file__))
RUNTIME_PAGE = os.path.join(FOLDER, "..", "..", "docs", "runtime.md")
SUM32 = os.path.join(FOLDER, "..", "..", "docs", "examples", "sum32.qir")


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit status {done.returncode}\n{done.stdout}")
    return done.stdout


def expect(got, wanted):
    if got != wanted:
        sys.exit(f"expected:\n{wanted}\nfound:\n{got}")


def main():
    build, cxx = sys.argv[1], sys.argv[2]
    with tempfile.TemporaryDirectory() as folder:
        prefix, project = os.path.join(folder, "prefix"), os.path.join(folder, "project")
        run("cmake", "--install", build, "--prefix", prefix)
        for root, _, files in os.walk(os.path.join(prefix, "include")):
            for name in files:
                with open(os.path.join(root, name)) as header:
                    if any("llvm/" in line or "mlir/" in line for line in header):
                        sys.exit(f"the installed header {name} names LLVM")
        # The program of the page for users, and what the page says that it prints.
        with open(RUNTIME_PAGE) as page:
            text = page.read()
        program = os.path.join(folder, "runtime.c")
        with open(program, "w") as file:
            file.write(re.search(r"```c\n(.*?)```", text, re.DOTALL).group(1))
        printed = re.search(r"\./scale cpu\n(.*?)```", text, re.DOTALL).group(1)
        run("cmake", "-G", "Ninja", "-S", FOLDER, "-B", project, "-DCMAKE_PREFIX_PATH=" + prefix,
            "-DCMAKE_CXX_COMPILER=" + cxx, "-DRUNTIME_PROGRAM=" + program)
        run("cmake", "--build", project)
        sums = "496 1520 2544 3568"
        expect(run(os.path.join(project, "consumer"), SUM32, "interp", "cpu"),
               f"ptx with shuffles\ninterp: {sums}\ncpu: {sums}\n")
        expect(run(os.path.join(project, "consumer-c")), "triple: 3 6 9 12\n")
        # Vulkan is where the machine has it.
        devices = run(os.path.join(prefix, "bin", "qdc-run"), "--list-devices")
        vulkan = ["vulkan"] if re.search(r"^vulkan:0", devices, re.MULTILINE) else []
        for device in ["cpu", "interp", "sim:sm_80", "sim:gfx942"] + vulkan:
            expect(run(os.path.join(project, "consumer-runtime"), device), printed)
        # The installed commands find the installed compiler library.
        run(os.path.join(prefix, "bin", "qdc-run"), SUM32, "-device=interp", "-grid=1", "src=iota:f32:128",
            "dst=zeros:f32:4", "-expect", "dst=" + sums.replace(" ", ","))


main()
