"""One kernel with its inputs and what it must compute."""
import collections

# What a buffer that the kernel writes must hold. `compared` selects the elements that the kernel writes (None: all);
# the others must stay as they were. `equality`: BITS, or VALUE (any NaN is any other), or OPEN_ZERO (+0 and -0 are
# alike as well). `bound`: how far each element may be off, or None. Arrays of the type as scalars.py holds it: for BITS
# its storage.
Output = collections.namedtuple("Output", "name type expected compared equality bound", defaults=(None, "value", None))
BITS, VALUE, OPEN_ZERO = "bits", "value", "open zero"

# name, text: the kernel. grid: blocks. scalars: (name, type, value). inputs: (name, type, array). The kernel's
# parameters are the inputs, then the scalars, then the outputs.
Case = collections.namedtuple("Case", "name text grid scalars inputs outputs")
