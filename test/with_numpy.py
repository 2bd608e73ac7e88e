"""Gives a test script NumPy: `with_numpy.ensure()` before its import."""
import fcntl
import os
import subprocess
import sys


def ensure():
    """Where Python has no NumPy, a virtual environment gets it (--venv FOLDER, kept for the next time) and the script
    starts again in it."""
    try:
        import numpy  # noqa: F401
        return
    except ImportError:
        pass
    folder = sys.argv[sys.argv.index("--venv") + 1] if "--venv" in sys.argv[:-1] else None
    python = os.path.join(folder or "", "bin", "python")
    if not folder or os.path.realpath(sys.prefix) == os.path.realpath(folder):
        sys.exit("this test needs NumPy; with --venv FOLDER it is installed there")
    with open(folder.rstrip("/") + ".lock", "w") as lock:  # tests run side by side
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(python) or subprocess.run([python, "-c", "import numpy"]).returncode:
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "numpy"],
                           check=True)
    os.execv(python, [python] + sys.argv)
