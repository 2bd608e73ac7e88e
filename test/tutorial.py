"""Runs the kernels of a document and compares what they print with what the document says.

usage: tutorial.py DOCUMENT

A block of ```mlir that defines a kernel NAME is the file NAME.qir. In other blocks a line `$ qdc-run FILE.qir ...` is
run, where the document has FILE; what stands below it, up to the next command, is what it prints, lines broken
anywhere.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile


def commands(block):
    """Pairs of a command and the text below it."""
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def normalize(text):
    return "".join(text.split())


def main():
    with open(sys.argv[1]) as file:
        blocks = re.findall(r"^```([\w+]*)\n(.*?)^```$", file.read(), re.M | re.S)
    count = failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for language, text in blocks:
            name = re.search(r"qd\.kernel @(\w+)", text)
            if language == "mlir" and name:
                with open(os.path.join(folder, name.group(1) + ".qir"), "w") as file:
                    file.write(text)
                continue
            for command, expected in commands(text):
                words = shlex.split(command)
                if words[0] != "qdc-run" or not os.path.exists(os.path.join(folder, words[1])):
                    continue
                done = subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      universal_newlines=True)
                count += 1
                if normalize(done.stdout) != normalize(expected):
                    failures += 1
                    print(f"$ {command}\nexpected:\n{expected}\nfound:\n{done.stdout}")
    print(f"{count - failures} commands print what the document says, {failures} do not")
    return 0 if count and not failures else 1


sys.exit(main())
