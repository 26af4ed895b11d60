"""Layers and files: names of every family, copies and pickles."""

import copy
import pickle

import numpy as np
import pytest
from layer_support import layer_and_tokens

import rapt


@pytest.mark.parametrize("end", ["safetensors", "npz"])
@pytest.mark.parametrize("family", ["torch", "W_q", "W_query", "q_linear", "wq", "q_proj", "query", "to_q", "qkv",
                                    "c_attn"])
def test_files_under_every_familys_names(tmp_path, family, end):
    layer, x = layer_and_tokens()
    path = tmp_path / f"layer.{end}"
    layer.save(path, family=family, prefix="encoder.0.attn.")
    loaded = rapt.MultiheadAttention.load(path, prefix="encoder.0", heads=3, batch_first=True)
    np.testing.assert_array_equal(loaded(x)[0], layer(x)[0])
    assert loaded.found.family == family and loaded.found.prefix == "encoder.0.attn."
    assert not loaded.found.left_over and not loaded.found.missing
    (found,) = rapt.find_attention_layers(path)
    assert found == loaded.found and 3 in found.possible_heads
    named = layer.state_dict(family=family, prefix="encoder.0.attn.")
    assert sorted(named) == sorted(name for name, _ in found.tensors)
    again = rapt.MultiheadAttention.load(named, heads=3, batch_first=True)
    np.testing.assert_array_equal(again(x)[0], layer(x)[0])


def test_a_saved_layer_knows_its_heads(tmp_path):
    layer, x = layer_and_tokens()
    layer.save(tmp_path / "layer.safetensors")
    loaded = rapt.MultiheadAttention.load(str(tmp_path / "layer.safetensors"), batch_first=True)
    assert loaded.num_heads == 3
    np.testing.assert_array_equal(loaded(x)[0], layer(x)[0])


def test_a_dict_may_hold_more_than_the_layer():
    layer, x = layer_and_tokens()
    tensors = layer.state_dict(prefix="a.") | {"a.counter": np.zeros(1, np.int64), "b.weight": np.ones((2, 2))}
    loaded = rapt.MultiheadAttention.load(tensors, heads=3, batch_first=True)
    np.testing.assert_array_equal(loaded(x)[0], layer(x)[0])


def test_types_of_files_and_layers(tmp_path):
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    layer, x = layer_and_tokens()
    assert layer.state_dict(dtype="bfloat16")["in_proj_weight"].dtype == bfloat16
    layer.save(tmp_path / "short.safetensors", dtype=bfloat16)
    short = rapt.MultiheadAttention.load(tmp_path / "short.safetensors", batch_first=True)
    assert short.config.dtype == "bfloat16"
    wide = rapt.MultiheadAttention.load(tmp_path / "short.safetensors", batch_first=True, dtype=np.float32)
    np.testing.assert_array_equal(wide.in_proj_weight, layer.in_proj_weight.astype(bfloat16).astype(np.float32))


def test_copies_and_pickles():
    layer, x = layer_and_tokens(kv_heads=1, rotary=rapt.RotaryOptions(base=100.0), dropout=0.5)
    layer.eval()
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert other.config == layer.config and other.training is False
        np.testing.assert_array_equal(other(x)[0], layer(x)[0])
        other.set_parameter("out_proj.bias", np.ones(12))
        assert (other(x)[0] != layer(x)[0]).any()
