"""What a kernel left in a buffer against what it must be."""
import numpy as np

import scalars
from case import BITS, OPEN_ZERO

FILL = 90  # what outputs hold before


def filled(output):
    """A buffer before the launch, as bytes. A bool buffer holds bools, and only false ones."""
    value = 0 if output.type == "i1" else FILL
    values = np.full(output.expected.size, value, scalars.working(output.type))
    return scalars.to_storage(output.type, values).view(np.uint8)


def first_difference(output, got, inputs):
    """None, or where and how the bytes `got` differ."""
    compared = np.ones(output.expected.size, bool) if output.compared is None else output.compared
    before = filled(output).reshape(output.expected.size, -1)
    touched = (got.reshape(before.shape) != before).any(axis=1) & ~compared
    if touched.any():
        return "%s[%d] is written, expected it to be left alone" % (output.name, touched.argmax())
    stored = got.view(scalars.storage(output.type)) if output.type != "i1" else got
    if output.type == "i1":
        expected, shown = np.asarray(output.expected).astype(np.uint8), stored
        differs = stored != expected
    elif output.equality == BITS:
        expected = scalars.to_storage(output.type, output.expected)
        shown = scalars.from_storage(output.type, stored)
        differs = scalars.bits(output.type, expected) != scalars.bits(output.type, stored)
        expected = scalars.from_storage(output.type, expected)
    else:
        expected = scalars.rounded(output.type, output.expected)
        shown = scalars.from_storage(output.type, stored)
        has_sign = output.equality != OPEN_ZERO
        differs = ~scalars.same(output.type, expected, shown, has_sign)
        if output.bound is not None:
            with np.errstate(all="ignore"):
                differs &= ~(np.abs(shown.astype(np.float64) - expected.astype(np.float64)) <= output.bound)
    differs &= compared
    if not differs.any():
        return None
    first = int(differs.argmax())
    given = ", ".join("%s=%s" % (name, scalars.from_storage(type, np.asarray(values))[first])
                      for name, type, values in inputs if len(values) > first and name != "in_here")
    return "%d of %d elements differ; %s[%d] is %s, expected %s (%s)" % (
        differs.sum(), compared.sum(), output.name, first, show(output, shown[first], stored[first]),
        show(output, expected[first], None), given)


def show(output, value, stored):
    if stored is not None and output.equality == BITS and scalars.is_float(output.type):
        return "%s (0x%x)" % (value, int(scalars.bits(output.type, np.array([stored]))[0]))
    return str(value)


def compare(case, outputs):
    for output, got in zip(case.outputs, outputs):
        difference = first_difference(output, got, case.inputs)
        if difference:
            return difference
    return None
