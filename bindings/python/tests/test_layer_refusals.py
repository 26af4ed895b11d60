"""Invalid calls of rapt.MultiheadAttention, and their messages."""

import numpy as np
import pytest
from layer_support import layer_and_tokens

import rapt

def kept_by_another(x):
    kept = rapt.LayerActivations()
    rapt.MultiheadAttention(12, 3, kv_heads=1, batch_first=True)(x, keep=kept)
    return kept


REFUSED = {
    "heads": (lambda layer, x: rapt.MultiheadAttention(8, 3),
              "MultiheadAttention: embed_dim 8 is not a multiple of num_heads 3; give head_size, or a number of heads "
              "that divides embed_dim"),
    "device": (lambda layer, x: rapt.MultiheadAttention(8, 2, device="cuda"),
               "MultiheadAttention: device is cuda; rapt computes on the CPU: omit it"),
    "query": (lambda layer, x: layer(x[..., :7]),
              "MultiheadAttention.forward: query has tokens of 7 numbers, the layer has embed_dim = 12; they must be "
              "equal"),
    "rank": (lambda layer, x: layer(x[None]),
             "MultiheadAttention.forward: query has shape (1, 2, 5, 12); it must be (B, L, E), or (L, E) without a "
             "batch"),
    "type": (lambda layer, x: layer(x.astype(np.float64)),
             "MultiheadAttention.forward: query is float64; it must be float32, bfloat16 or float16"),
    "planes": (lambda layer, x: layer(x, attn_mask=np.zeros((4, 5, 5), bool)),
               "MultiheadAttention.forward: attn_mask has 4 planes, which is not a multiple of 3 heads; it must be "
               "(B·Hq, Lq, Lk)"),
    "bare mask": (lambda layer, x: layer(x, mask=np.zeros((5, 5), bool)), None),
    "rate": (lambda layer, x: layer(x, dropout=rapt.Dropout(0.5, 1)),
             "MultiheadAttention.forward: dropout.rate is 0.5; pass dropout= to the constructor"),
    "family": (lambda layer, x: layer.state_dict(family="wQ"),
               "state_dict: family is 'wQ'; it may be one of torch, W_q, W_query, q_linear, wq, q_proj, query, to_q, "
               "qkv, c_attn"),
    "nothing kept": (lambda layer, x: layer.backward(x),
                     "MultiheadAttention.backward: no call was kept; call forward with keep=True first"),
    "empty": (lambda layer, x: layer.backward(x, kept=rapt.LayerActivations()),
              "MultiheadAttention.backward: kept is empty; pass it to forward as keep= first"),
    "another layer": (lambda layer, x: layer.backward(x, kept=kept_by_another(x)),
                      "MultiheadAttention.backward: kept is from another layer; pass it to this layer's forward"),
    "gradients of no kind": (lambda layer, x: layer(x, keep=True) and layer.backward(x, parameters={}),
                             "MultiheadAttention.backward: parameters is of type dict; pass the result of zero_gradients"),
    "gradients of another layer": (
        lambda layer, x: layer(x, keep=True) and layer.backward(
            x, parameters=rapt.MultiheadAttention(12, 3, kv_heads=1).zero_gradients()), None),
    "parameter": (lambda layer, x: layer.set_parameter("W_q", x), None),
    "sequences": (lambda layer, x: layer(x, sequences=[0, 1]),
                  "MultiheadAttention.forward: sequences are given without a cache; they are ids of sequences in a "
                  "cache"),
    "no file": (lambda layer, x: rapt.MultiheadAttention.load("nowhere.safetensors"), None),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_bad_argument_is_refused_with_the_librarys_words(what):
    call, text = REFUSED[what]
    with pytest.raises(ValueError) as refused:
        call(*layer_and_tokens())
    if text is not None:
        assert str(refused.value) == text
