"""One kernel with its inputs and what it must compute."""
import collections

# name, text: the kernel. grid: blocks. scalars: (name, type, value). inputs: (name, type, array).
# The output buffer is y, of `type`; `expected` is its contents. `compared` selects the elements that the kernel
# writes (None: all); the others must stay as they were. zero_sign: whether +0 and -0 differ. on_vulkan: what is
# also right there, element by element, or None.
Case = collections.namedtuple("Case", "name text grid scalars inputs type expected compared zero_sign on_vulkan",
                              defaults=(None,))
