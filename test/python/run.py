#!/usr/bin/env python3
"""The tests of the Python package and of its example frontend, on the devices present.

usage: run.py --lib FOLDER [--venv FOLDER] [TEST...]

--lib has the shared libraries; a test is a name as unittest takes it, as in test_launch.Arguments.
"""
import argparse
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.dirname(HERE))
import with_numpy  # noqa: E402

with_numpy.ensure()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--lib", required=True)
    parser.add_argument("--venv")
    parser.add_argument("tests", nargs="*")
    options = parser.parse_args()
    os.environ["QDC_LIBRARY_PATH"] = os.path.abspath(options.lib)
    # Waits between blocks end on Mesa's software device only where one block runs after the other.
    os.environ.setdefault("LP_NUM_THREADS", "1")
    sys.path[:0] = [HERE, os.path.join(SOURCE, "runtime", "python"), os.path.join(SOURCE, "docs", "examples")]
    sys.dont_write_bytecode = True
    loader = unittest.TestLoader()
    suite = loader.loadTestsFromNames(options.tests) if options.tests else loader.discover(HERE, top_level_dir=HERE)
    return not unittest.TextTestRunner(verbosity=1).run(suite).wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
