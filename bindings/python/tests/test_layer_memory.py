"""Checks that a layer makes no unnecessary copies, releases everything it should, and leaves nothing behind at exit."""

import gc
import subprocess
import sys
import textwrap
import weakref

import numpy as np
from layer_support import drawn, layer_and_tokens

import rapt


def test_calls_leave_reference_counts_as_they_were():
    layer, x = layer_and_tokens()
    mask, dout = np.zeros((5, 5), bool), drawn(2, 5, 12)
    cache = rapt.KvCache(kv_heads=3, head_size=4, sequences=2, length=4096)
    cache.add(), cache.add()
    kept = rapt.LayerActivations()
    objects = [layer, layer._layer, x, mask, dout, cache, kept]

    def calls():
        layer(x, attn_mask=mask, key_padding_mask=np.zeros((2, 5), bool), captures=[rapt.Capture("raw")])
        layer(x, causal=True, cache=cache)
        layer(x, mask=rapt.Mask.drop(mask), keep=kept)
        layer.backward(dout, kept=kept)
        layer.load_state_dict(layer.state_dict())
        for bad in (x[..., :3], None, "x"):
            try:
                layer(bad)
            except (TypeError, ValueError):
                pass

    calls()
    before = [sys.getrefcount(one) for one in objects]
    for _ in range(50):
        calls()
    gc.collect()
    assert [sys.getrefcount(one) for one in objects] == before


def test_what_a_call_kept_goes_with_what_it_was_kept_in():
    class Tokens(np.ndarray):  # supports weak references
        pass

    layer, x = layer_and_tokens()
    tokens = x.view(Tokens)
    watched = weakref.ref(tokens)
    kept = rapt.LayerActivations()
    layer(tokens, keep=kept)
    del tokens
    assert watched() is not None  # backward reads it again
    layer(x, keep=kept)
    gc.collect()
    assert watched() is None


def test_a_layer_leaves_nothing_behind_at_the_end():
    code = """
        import numpy as np, rapt
        layer = rapt.MultiheadAttention(8, 2, batch_first=True)
        x = np.ones((1, 3, 8), np.float32)
        weight = layer.in_proj_weight
        layer(x, keep=True)
        gradients = layer.backward(x)
        rapt.show(layer(x)[1]).png()
        cache = rapt.KvCache(kv_heads=2, head_size=4, length=8)
    """
    run = [sys.executable, "-X", "dev", "-W", "error", "-c", textwrap.dedent(code)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_parameters_are_lent_where_they_lie():
    layer, _ = layer_and_tokens()
    first, again = layer.in_proj_weight, layer.in_proj_weight
    assert first.ctypes.data == again.ctypes.data
    gradients = layer.zero_gradients()
    address = gradients["in_proj_weight"].ctypes.data
    x = drawn(2, 5, 12)
    layer(x, keep=True)
    assert layer.backward(x, parameters=gradients).parameters["in_proj_weight"].ctypes.data == address
    assert gradients["in_proj_weight"].any()
