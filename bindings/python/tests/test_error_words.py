"""Error messages in Python use Python's names: no C++ syntax, and no name that Python does not have."""

import inspect
import re

import numpy as np
import pytest
import rapt
from conftest import ROOT
from layer_support import layer_and_tokens
from test_errors import BACKWARD, FORWARD, dout, k, q, v
from test_layer_refusals import REFUSED

# Names of classes that Python does not have, and of an option that it does not have.
NOT_IN_PYTHON = r"(Transformer|Adam|PackedMatrix|RotaryScaling)::|LayerOptions::workspace"

# Names from PyTorch, and names of matrices in weight files.
OF_OTHERS = {"torch", "scaled_dot_product_attention", "q_linear", "q_proj", "to_q", "c_attn"}


def cache():
    made = rapt.KvCache(kv_heads=2, head_size=8, length=4)
    made.add()
    return made


def tokens(count, rows=1, heads=2, size=8):
    return np.zeros((rows, heads, count, size), np.float32)


def layer_of(**changes):
    return lambda: rapt.MultiheadAttention(**{"embed_dim": 12, "num_heads": 3} | changes)


def layer_call(**changes):
    def call():
        layer, x = layer_and_tokens()
        layer(x, **changes)

    return call


LAYERS = [
    layer_of(embed_dim=0), layer_of(num_heads=0), layer_of(num_heads=5), layer_of(kv_heads=2), layer_of(kv_heads=-1),
    layer_of(kdim=-1), layer_of(vdim=-1), layer_of(output_size=-1), layer_of(context_length=-1), layer_of(head_size=-1),
    layer_of(dropout=2.0), layer_of(output_dropout=-1.0), layer_of(dtype="int8"), layer_of(slice=(0, 0)),
    layer_of(slice=(2, 2)), layer_of(slice=(0, 2)), layer_of(kv_heads=1, slice=(0, 3)), layer_of(device="cuda"),
]  # fmt: skip
LAYER_CALLS = [
    layer_call(dropout=rapt.Dropout(0.5, 1)), layer_call(alibi_slopes=[1.0]), layer_call(threads=-1),
    layer_call(sinks=np.zeros(2, np.float32)), layer_call(window=(-1, None)), layer_call(position=-1),
    layer_call(causal=True, alignment=1 << 50), layer_call(mask=rapt.Mask.add(np.zeros((2, 5, 5), np.float32))),
    layer_call(mask=rapt.Mask.add(np.zeros((4, 4), np.float32))), layer_call(packed=([0, 1], [0, 1])),
    layer_call(sequences=[0]), layer_call(value=np.zeros((2, 5, 12), np.float32)),
    layer_call(key=np.zeros((2, 5, 7), np.float32)), layer_call(key=np.zeros((3, 5, 12), np.float32)),
    layer_call(key_padding_mask=np.zeros((2, 4), bool)),
]  # fmt: skip
CACHES = [
    lambda: rapt.KvCache(head_size=0, length=3), lambda: rapt.KvCache(head_size=8, kv_heads=0, length=3),
    lambda: rapt.KvCache(head_size=8, dtype="float64", length=3), lambda: rapt.KvCache(head_size=8, length=-1),
    lambda: rapt.KvCache(head_size=8, value_size=-1, length=3), lambda: rapt.KvCache(head_size=8, sequences=0, length=3),
    lambda: rapt.KvCache(head_size=8, page_size=8, pages=3), lambda: cache().length(9), lambda: cache().remove(9),
    lambda: cache().fork(9), lambda: cache().fork(0, 3), lambda: cache().truncate(0, 3), lambda: cache().view([9]),
    lambda: [cache.add() for cache in [cache()] for _ in range(2)],
    lambda: cache().append([0], tokens(5), tokens(5)), lambda: cache().append([0, 0], tokens(1, 2), tokens(1, 2)),
    lambda: cache().append([0], tokens(1, heads=3), tokens(1)), lambda: cache().append([0], tokens(1, size=7), tokens(1)),
    lambda: cache().append([0], tokens(1), tokens(1), counts=[2]),
    lambda: cache().append([0], tokens(1).astype(np.float64), tokens(1)),
]  # fmt: skip
CALLS = [
    *(lambda changes=changes: rapt.attention(**dict(query=q, key=k, value=v) | changes) for changes in FORWARD.values()),
    *(lambda changes=changes: rapt.attention_backward(**dict(query=q, key=k, value=v, dout=dout) | changes)
      for changes in BACKWARD.values()),
    *(lambda call=call: call(*layer_and_tokens()) for call, _ in REFUSED.values()),
    *LAYERS, *LAYER_CALLS, *CACHES,
    lambda: rapt.set_thread_count(-1), lambda: rapt.use_instruction_set("abacus"), lambda: rapt.load("no.npy"),
]  # fmt: skip


def python_names():
    """All names that a reader of the documentation can know: public names, their members, parameters and fields."""
    found = set(dir(rapt)) | OF_OTHERS
    for thing in (getattr(rapt, name) for name in dir(rapt) if not name.startswith("_")):
        members = [thing, *(getattr(thing, name) for name in dir(thing) if not name.startswith("__"))]
        found |= {name for name in dir(thing) if not name.startswith("_")} | set(getattr(thing, "_fields", ()))
        for member in members:
            try:
                found |= set(inspect.signature(member).parameters)
            except (TypeError, ValueError):
                found |= set(re.findall(r"(\w+)\s*[:=]", getattr(member, "__doc__", None) or ""))
    return found


@pytest.fixture(scope="module")
def texts():
    found = []
    for call in CALLS:
        with pytest.raises((ValueError, TypeError)) as refused:
            call()
        found.append(str(refused.value))
    return found


def test_no_text_has_a_name_of_cpp(texts):
    wrong = [text for text in texts if re.search(r"::|\b(b?f16|f32|f64|i8)\b|MultiHead|\bstd\b", text)]
    assert len(texts) > 150 and not wrong


def test_every_name_in_a_text_is_one_of_pythons(texts):
    """A name is a word with an underscore, or one followed by a dot or a bracket."""
    known, wrong = python_names(), []
    for text in texts:
        own = re.sub(r"""'[^']*'|"[^"]*"|\w+\.(npy|safetensors)""", "", text)  # without values and file names
        names = set(re.findall(r"\b[a-z]\w*_\w+\b|\b[a-z]\w+(?=\[\d|\.[a-z])", own))
        wrong += [(name, text) for name in names - known]
    assert not wrong


def test_no_text_that_the_library_could_raise_keeps_a_name_of_cpp():
    """The messages in its sources, whether or not a call above triggers them."""
    found = []
    for folder in ("attention", "core", "io", "nn"):
        for path in (ROOT / "src" / folder).glob("*.cc"):
            found += re.findall(r'"((?:[^"\\\n]|\\.)*)"', path.read_text())
    reachable = [text for text in found if re.search(r"\w::\w", text) and not re.search(NOT_IN_PYTHON, text)]
    assert len(reachable) > 20
    wrong = [text for text in reachable if "::" in rapt._rapt.in_python(text)]
    assert not wrong


def test_a_word_is_changed_only_where_it_is_the_whole_word_and_not_somebodys_own():
    assert rapt._rapt.in_python('f32 xf32 f32x "f32" masks[0] kv_heads is') == 'float32 xf32 f32x "f32" mask[0] kv_heads is'
    assert rapt._rapt.in_python("MultiHeadAttention: heads is 0") == "MultiheadAttention: num_heads is 0"
    assert rapt._rapt.in_python("KvCache: value_size is 0") == "KvCache: value_size is 0"
