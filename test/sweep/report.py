"""What a run of the sweep prints at its end."""
import collections
import re

SHOWN = 40


def reason(text):
    """A refusal without what differs from kernel to kernel."""
    lines = text.splitlines() or ["no reason"]
    line = next((line for line in reversed(lines) if "error: " in line), lines[0])
    return re.sub(r"^.*error: ", "", line)


def row_of(result):
    """The op without its kind."""
    words = result.op.split(".")
    return ".".join(words[:2] if words[0] == "block" else words[:1])


def print_table(results):
    """A row an op, a column an executor: how many ran, and of those how many failed (!), and how many it refused
    (r)."""
    executors = sorted({r.executor for r in results})
    counts = collections.defaultdict(collections.Counter)
    for r in results:
        counts[row_of(r), r.executor]["ran" if r.status != "refused" else "refused"] += 1
        counts[row_of(r), r.executor]["bad"] += r.status in ("failed", "crashed")
    for number, executor in enumerate(executors):
        print("  %c: %s" % (chr(ord("A") + number), executor))
    print("%-22s %s" % ("", " ".join("%6c" % chr(ord("A") + k) for k in range(len(executors)))))
    for op in sorted({row_of(r) for r in results}):
        cells = []
        for executor in executors:
            c = counts[op, executor]
            more = "".join(["+%d!" % c["bad"]] * bool(c["bad"]) + ["+%dr" % c["refused"]] * bool(c["refused"]))
            cells.append("%6s" % ("%d%s" % (c["ran"] - c["bad"], more)))
        print("%-22s %s" % (op, " ".join(cells)))


def print_report(results, with_table, is_verbose):
    """Whether all is well."""
    refused = [r for r in results if r.status == "refused"]
    for (executor, text), count in sorted(collections.Counter((r.executor, reason(r.text)) for r in refused).items()):
        print("refused: %s: %d: %s" % (executor, count, text))
    bad = [r for r in results if r.status in ("failed", "crashed")] + refused
    for r in bad if is_verbose else bad[:SHOWN]:
        print("%s: %s: %s: %s"
              % (r.status.upper(), r.executor, r.name, reason(r.text) if r.status == "refused" else r.text))
    if len(bad) > SHOWN and not is_verbose:
        print("... and %d more" % (len(bad) - SHOWN))
    if bad:
        by_op = collections.Counter(r.op for r in bad).most_common(SHOWN)
        print("by op: " + ", ".join("%s: %d" % pair for pair in by_op))
    if with_table:
        print_table(results)
    by_executor = collections.defaultdict(collections.Counter)
    for r in results:
        by_executor[r.executor][r.status] += 1
    for executor, counts in sorted(by_executor.items()):
        print("%-16s %s" % (executor, ", ".join("%d %s" % (n, s) for s, n in sorted(counts.items()))))
    return not bad
