"""Builds cases and runs them on executors in this process, which a crash may end: results go out line by line.

usage: worker.py JOB.pickle   (a dictionary: library, qdc_run, folder, seed, batch, no_subnormals,
                               units: (number, executor, item))

Lines are JSON: [number, status, case name, text] for a result, [null, "loading"|"running", numbers] for what is next.
"""
import json
import os
import pickle
import signal
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")]
import cases  # noqa: E402
import compare  # noqa: E402
import host  # noqa: E402
import launches  # noqa: E402
import scalars  # noqa: E402

# Seconds that a module may take to load, or a launch to run: a hanging one ends the process.
PATIENCE = 120


def tell(*words):
    print(json.dumps(words), flush=True)


def announce(phase, units):
    signal.alarm(PATIENCE)
    tell(None, phase, [number for number, _, _ in units])


class Worker:
    def __init__(self, job):
        self.job, self.compiler, self.made = job, host.Compiler(job["library"]), {}

    def case(self, item):
        if item not in self.made:
            self.made[item] = cases.build(item, self.job["seed"], self.compiler)
        return self.made[item]

    def run_units(self, units):
        """Loads all kernels as one module; where that is refused, halves of it, until the refused ones stand alone."""
        executor = units[0][1]
        made = [self.case(item) for _, _, item in units]
        text = "".join(case.text for case in made)
        announce("loading", units)
        if executor.family in host.FAMILIES:
            module, diagnostics = self.compiler.load(text, executor.device, executor.size)
            outcomes = None
        else:
            module, diagnostics = None, None
            outcomes, refusal = launches.run(self.job["qdc_run"], executor, text, made, self.job["folder"])
            diagnostics = refusal
        if outcomes is not None:
            for (number, _, _), case, (status, text) in zip(units, made, outcomes):
                tell(number, status, case.name, text)
        elif module:
            for unit, case in zip(units, made):
                announce("running", [unit])
                failure = host.run(self.compiler, module, case)
                tell(unit[0], "failed" if failure else "passed", case.name, failure or "")
            self.compiler.library.qdcHostUnload(module)
        elif len(units) == 1:
            tell(units[0][0], "refused", made[0].name, diagnostics)
        else:
            half = len(units) // 2
            self.run_units(units[:half])
            self.run_units(units[half:])

    def run(self):
        units = []
        for unit in self.job["units"]:
            # A row that is no legal kernel makes no case.
            if self.case(unit[2]) is None:
                tell(unit[0], "none", "", "")
                continue
            if units and (units[0][1] != unit[1] or len(units) == self.job["batch"]):
                self.run_units(units)
                units = []
            units.append(unit)
        if units:
            self.run_units(units)


def main():
    with open(sys.argv[1], "rb") as file:
        job = pickle.load(file)
    scalars.without_subnormals.update(job["no_subnormals"])
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    Worker(job).run()


if __name__ == "__main__":
    main()
