"""Cases as launches of one qdc-run process: a list of them, and NumPy files that hold all arrays."""
import os
import re
import subprocess
import tempfile

import numpy as np

import compare
import scalars
from case import OPEN_ZERO

TIME_LIMIT = 300


class Arrays:
    """A NumPy file a type; equal arrays are kept once."""

    def __init__(self, base):
        self.base, self.parts, self.ends, self.seen = base, {}, {}, {}

    def add(self, type, values):
        """How qdc-run reads the array back."""
        stored = np.ascontiguousarray(scalars.to_storage(type, values))
        key = (type, stored.tobytes())
        if key not in self.seen:
            start = self.ends.get(type, 0)
            self.parts.setdefault(type, []).append(stored)
            self.ends[type] = start + stored.size
            self.seen[key] = "@%s.%s.npy[%d:%d]" % (os.path.basename(self.base), type, start, self.ends[type])
        return self.seen[key]

    def write(self):
        for type, parts in self.parts.items():
            np.save("%s.%s.npy" % (self.base, type), np.concatenate(parts))


def inputs_of(case, arrays):
    words = ["-kernel=" + case.name, "-grid=%d,%d,%d" % case.grid]
    words += ["%s=%s" % (name, arrays.add(type, values)) for name, type, values in case.inputs]
    words += ["%s=%d" % (name, value) for name, _, value in case.scalars]
    return words + ["%s=%s" % (o.name, arrays.add(o.type, compare.filled(o).view(scalars.storage(o.type))))
                    for o in case.outputs]


def expecting(case, arrays):
    """A line that compares by itself, with outputs' own bounds widened to one tolerance."""
    words = inputs_of(case, arrays)
    for o in case.outputs:
        expected = scalars.to_storage(o.type, o.expected)
        if o.compared is not None:
            before = compare.filled(o).view(scalars.storage(o.type))
            expected = np.where(o.compared, expected, before).astype(expected.dtype)
        value = arrays.add(o.type, expected)
        if o.bound is not None:
            scale = np.maximum(1, np.abs(scalars.from_storage(o.type, expected).astype(np.float64)))
            value += ":tol=%.3g" % (1.01 * np.max(o.bound / scale))
        words += ["-expect", "%s=%s%s" % (o.name, value, ":any-zero" if o.equality == OPEN_ZERO else "")]
    return " ".join(words)


def run(qdc_run, executor, text, cases, folder):
    """(status, text) of each case; or None and why the module as a whole is refused."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        with open(os.path.join(place, "k.qir"), "w") as file:
            file.write(text)
        arrays = Arrays(os.path.join(place, "k"))
        lines = []
        for number, case in enumerate(cases):
            outs = ["-out %s=%d.%s.npy" % (o.name, number, o.name) for o in case.outputs]
            lines.append(" ".join(inputs_of(case, arrays) + outs))
        arrays.write()
        outcomes = []
        while len(outcomes) < len(cases):
            done, refusal = run_list(qdc_run, executor, place, lines[len(outcomes):])
            if refusal is not None and not outcomes:
                return None, refusal
            for status, message in done:
                number = len(outcomes)
                outcomes.append((status, message) if status != "passed"
                                else judge(executor, cases[number], number, place))
            if not done:
                outcomes.append(("crashed", "no result: %s" % refusal))
        return outcomes, None


def run_list(qdc_run, executor, place, lines):
    """Results of the launches up to the one that ends the process; or why there are none."""
    with open(os.path.join(place, "k.list"), "w") as file:
        file.write("\n".join(lines) + "\n")
    command = [qdc_run, "k.qir", "-device=" + executor.device, "--launches=k.list"] + list(executor.options)
    try:
        done = subprocess.run(command, cwd=place, env={**os.environ, **executor.env}, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TIME_LIMIT)
        output, errors, ending = done.stdout, done.stderr, "exit status %d" % done.returncode
        status = done.returncode
    except subprocess.TimeoutExpired as expired:
        output, errors, ending, status = expired.stdout or b"", expired.stderr or b"", "still running", -1
    output, errors = output.decode(errors="replace"), errors.decode(errors="replace")
    results = [("passed" if m.group(1) == "passed" else "failed", m.group(2))
               for m in re.finditer(r"^(passed|FAILED): \w+(?:: (.*))?$", output, re.M)]
    # What the stand-in for HIP's library says of a kernel is the better reason.
    reasons = dict(re.findall(r"^stand-in for HIP: kernel '(\w+)': (.*)$", errors, re.M))
    named = [re.match(r"-kernel=(\w+)", line).group(1) for line in lines]
    results = [(outcome, reasons.get(name, text) if outcome == "failed" else text)
               for name, (outcome, text) in zip(named, results)]
    if len(results) < len(lines) and (status < 0 or results):
        last = errors.strip().splitlines()[-1:] or [""]
        results.append(("crashed", "%s: %s" % (ending, last[0])))
    return results, None if results else errors.strip() or ending


def judge(executor, case, number, place):
    outputs = []
    for o in case.outputs:
        got = np.load(os.path.join(place, "%d.%s.npy" % (number, o.name)))
        outputs.append(np.ascontiguousarray(got).view(np.uint8).ravel())
    failure = compare.compare(case, outputs)
    return "failed" if failure else "passed", failure or ""
