"""Uses the installed wheel with nothing but Python itself: no NumPy, no compiler.

    use_wheel.py VERSION
"""

import array
import importlib.metadata
import math
import platform
import sys

import rapt

version = sys.argv[1]
assert rapt.__version__ == version, rapt.__version__
assert importlib.metadata.version("rapt-attention") == version

query = memoryview(array.array("f", [1.0, 0.0])).cast("B").cast("f", (1, 1, 2, 1))
value = memoryview(array.array("f", [3.0, 5.0])).cast("B").cast("f", (1, 1, 2, 1))
causal = [row[0] for row in memoryview(rapt.attention(query, query, value, causal=True)).tolist()[0][0]]
assert abs(causal[0] - 3) < 1e-6 and abs(causal[1] - 4) < 1e-6, causal
full = [row[0] for row in memoryview(rapt.attention(query, query, value)).tolist()[0][0]]
weight = math.e / (math.e + 1)
assert abs(full[0] - (3 * weight + 5 * (1 - weight))) < 1e-6 and abs(full[1] - 4) < 1e-6, full

# An exception that the library throws becomes a Python exception.
try:
    rapt.attention(query, query, value, softcap=-1.0)
except ValueError as error:
    assert str(error) == "attention: softcap is -1; it must be positive, or 0 for none", error
else:
    raise AssertionError("a softcap of -1 was taken")

print(
    f"Python {platform.python_version()}, {' '.join(platform.libc_ver())}: rapt-attention {version}, {rapt.instruction_set()};",
    "attention is",
    ", ".join(f"{number:.6f}" for number in full),
    "and causal",
    ", ".join(f"{number:.6f}" for number in causal),
)
