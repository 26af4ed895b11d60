"""Nothing leaks: no reference, no memory, no object of the extension module."""

import gc
import resource
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
import rapt


def calls(x):
    """Calls every function of the extension, also with arguments that it rejects."""
    q, bias, hide = x["q"], x["bias"], x["hide"]
    rapt.attention(q, q, q)
    rapt.attention(q, q, q, out=x["out"], mask=[rapt.Mask.keep(hide), bias], sinks=x["sinks"], return_lse=True,
                   return_weights="mean", captures=[rapt.Capture("raw", heads=[0]), rapt.Capture(out=x["weights"])])
    rapt.attention(x["half"], x["half"], x["half"])
    rapt.attention(memoryview(q), q, q)
    rapt.attention_backward(q, q, q, x["out"], mask=bias, sinks=x["sinks"],
                            gradients=["dquery", "dkey", "dvalue", "dsinks", "dmasks"])
    cache = x["cache"]
    sequence = cache.add()
    cache.append([sequence], q, q)
    seen = cache.view([sequence])
    rapt.attention(q, cache=seen).sum() + seen.key.sum()
    cache.remove(sequence)
    rapt.save(x["path"], {"q": q, "half": x["half"]})
    rapt.load(x["path"])["half"].sum()
    for bad in ({"key": q[0]}, {"mask": hide}, {"softcap": "x"}, {"engine": "x"}, {"value": q.astype(">f4")},
                {"out": "x"}, {"captures": [3]}):
        with pytest.raises((ValueError, TypeError)):
            rapt.attention(q, **({"key": q, "value": q} | bad))


@pytest.fixture
def arguments(tmp_path):
    q = np.ones((1, 2, 3, 4), np.float32)
    return {
        "q": q, "out": np.empty_like(q), "half": q.astype(ml_dtypes.bfloat16), "bias": np.zeros((3, 3), np.float32),
        "hide": np.ones((3, 3), bool), "sinks": np.zeros(2, np.float32), "weights": np.empty((1, 2, 3, 3), np.float32),
        "path": str(tmp_path / "x.safetensors"),
        "cache": rapt.KvCache(kv_heads=2, head_size=4, sequences=2, length=8),
    }  # fmt: skip


def test_reference_counts_come_back(arguments):
    watched = [*arguments.values(), None, True, rapt.Mask, np.ndarray, arguments["q"].dtype, arguments["half"].dtype]
    calls(arguments)
    gc.collect()
    before = [sys.getrefcount(x) for x in watched]
    for _ in range(50):
        calls(arguments)
    gc.collect()
    after = [sys.getrefcount(x) for x in watched]
    assert [a - b for a, b in zip(after, before) if abs(a - b) > 10] == []  # None and True are referenced elsewhere too


def test_objects_do_not_pile_up(arguments):
    for _ in range(20):
        calls(arguments)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(50):
        calls(arguments)
    gc.collect()
    assert len(gc.get_objects()) - before < 40


def test_memory_does_not_grow():
    """A thousand results of half a megabyte each, so that a leak would be noticed."""
    q = np.ones((1, 2, 1024, 64), np.float32)
    k = np.ones((1, 2, 4, 64), np.float32)
    for _ in range(20):
        rapt.attention(q, k, k, return_lse=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(500):
        rapt.attention(q, k, k, return_lse=True)
        memory = memoryview(q)
        rapt.attention(memory, k, k)
        with pytest.raises(ValueError):
            rapt.attention(memory, k, k[:, :1])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000  # kB


PROGRAM = """
import sys
import numpy as np, rapt
q = np.ones((1, 2, 3, 4), np.float32)
rapt.attention(q, q, q, causal=True, return_lse=True)
cache = rapt.KvCache(kv_heads=2, head_size=4, sequences=2, length=8)
cache.append([cache.add()], q, q)
view = cache.view([0])
key = view.key
rapt.save(sys.argv[1], {"q": q})
kept = rapt.load(sys.argv[1])
try:
    rapt.attention(q, q, q[:, :1])
except ValueError as error:
    kept["error"] = error
"""


@pytest.mark.parametrize("options", [["-X", "dev"], ["-X", "dev", "-W", "error"], []], ids=["dev", "dev-error", "plain"])
def test_a_program_ends_without_a_word(options, tmp_path):
    """python -X dev checks the heap and resources; nanobind reports leaks at exit."""
    run = subprocess.run([sys.executable, *options, "-c", PROGRAM, str(tmp_path / "x.safetensors")],
                         capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_importing_rapt_imports_no_array_library():
    program = "import sys, rapt; print([x for x in ('numpy', 'ml_dtypes', 'torch', 'jax') if x in sys.modules])"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == "[]\n"


WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None  # as if it were not installed
import array, rapt
x = memoryview(array.array("f", range(8))).cast("B").cast("f", (1, 1, 2, 4))
out = rapt.attention(x, x, x, scale=100.0)
assert type(out) is memoryview and out.shape == (1, 1, 2, 4), out
assert out.tolist() == [[[[4.0, 5.0, 6.0, 7.0]] * 2]]
cache = rapt.KvCache(head_size=4, length=4, dtype="bfloat16")
cache.append([cache.add()], x, x)
key = cache.view([0]).key
assert type(key) is rapt.Array and key.dtype == "bfloat16" and key.shape == (1, 1, 2, 4), key
assert rapt.attention(x, key, key, scale=100.0).tolist() == out.tolist()
assert isinstance(rapt.attention(key, key, key), rapt.Array)
rapt.save(sys.argv[1], {"x": x})
assert rapt.load(sys.argv[1])["x"].tolist() == x.tolist()
"""


def test_without_numpy_results_are_memoryviews(tmp_path):
    run = subprocess.run([sys.executable, "-c", WITHOUT_NUMPY, str(tmp_path / "x.safetensors")],
                         capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stderr) == (0, "")
