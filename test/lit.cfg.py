# Every .qir file outside unit/ and sweep/, and every example of the documentation, is a test; its RUN lines say what
# is run.
#
#   %run FILE ARGS...   runs a kernel on every executor present and compares (run.py)
#   %source             the top of the source tree
import os
import shutil
import sys

import lit.formats

sys.path.insert(0, os.path.dirname(__file__))
import executors

config.name = "qdc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".qir", ".test"]
config.excludes = ["unit", "sweep", "bench", "Inputs", "CMakeLists.txt"]
config.test_source_root = config.qd_suite

path = [config.qd_bin, config.qd_llvm_bin, os.environ.get("PATH", "")]
config.environment["PATH"] = os.pathsep.join(path)
for name in ("LD_LIBRARY_PATH", "VK_ICD_FILENAMES", "VK_DRIVER_FILES", "XDG_RUNTIME_DIR", "HOME",
             "QDC_COMPILER_LIBRARY"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

present, absent = executors.discover(os.path.join(config.qd_bin, "qdc-run"))
for name, reason in absent:
    lit_config.note("absent executor: %s: %s" % (name, reason))
config.environment[executors.VARIABLE] = executors.pack(present)
for executor in present:
    config.available_features.add(executor.family)
    config.available_features.add("%s@%d" % (executor.device, executor.size))
for tool in ("qdc", "qdc-opt", "ptxas", "spirv-val", "spirv-dis", "spirv-cross", "llvm-spirv"):
    if shutil.which(tool, path=config.environment["PATH"]):
        config.available_features.add(tool)

config.substitutions.append(("%run", "%s %s/run.py --qdc-run %s/qdc-run" % (
    config.qd_python, os.path.dirname(__file__), config.qd_bin)))
config.substitutions.append(("%source", config.qd_source))
config.substitutions.append(("%python", config.qd_python))
