"""Packs the package into a wheel: what `pip install` of this folder calls (PEP 517 and 660).

Pure Python, so a wheel is a zip of the sources and a few lines about them.
"""
import base64
import hashlib
import os
import re
import tarfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.join(HERE, "qdc")


def _read(*path):
    with open(os.path.join(HERE, *path), encoding="utf-8") as file:
        return file.read()


VERSION = re.search(r'^__version__ = "([^"]+)"', _read("qdc", "__init__.py"), re.M).group(1)
INFO = "qdc-%s.dist-info" % VERSION
METADATA = """Metadata-Version: 2.1
Name: qdc
Version: %s
Summary: Build, compile and launch GPU kernels written in QIR
License: Apache-2.0 WITH LLVM-exception
Requires-Python: >=3.8
Provides-Extra: numpy
Requires-Dist: numpy; extra == "numpy"
Description-Content-Type: text/markdown

%s""" % (VERSION, _read("README.md"))
WHEEL = "Wheel-Version: 1.0\nGenerator: qdc\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _sources():
    """The package's files: path in the wheel to contents."""
    files = {}
    for folder, folders, names in os.walk(PACKAGE):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(names):
            if name.endswith((".py", ".typed")):
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    files[os.path.relpath(path, HERE).replace(os.sep, "/")] = file.read()
    return files


def _write(folder, files):
    name = "qdc-%s-py3-none-any.whl" % VERSION
    files = dict(files)
    files[INFO + "/METADATA"], files[INFO + "/WHEEL"] = METADATA.encode(), WHEEL.encode()
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record += "%s,sha256=%s,%d\n" % (path, digest, len(data))
    record += INFO + "/RECORD,,\n"
    with zipfile.ZipFile(os.path.join(folder, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in list(files.items()) + [(INFO + "/RECORD", record.encode())]:
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))  # the same bytes at any time
            entry.external_attr = 0o644 << 16
            wheel.writestr(entry, data)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, _sources())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """Python then finds the package where it stands."""
    return _write(wheel_directory, {"qdc.pth": (HERE + "\n").encode()})


def build_sdist(sdist_directory, config_settings=None):
    name = "qdc-%s.tar.gz" % VERSION
    with tarfile.open(os.path.join(sdist_directory, name), "w:gz") as archive:
        for path in ["pyproject.toml", "README.md", "build_wheel.py"] + list(_sources()):
            archive.add(os.path.join(HERE, path), "qdc-%s/%s" % (VERSION, path))
    return name
