"""The inputs of rapt.show, and its errors for invalid ones."""

import array
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from show_support import softmax

import rapt

WEIGHTS = softmax(2, 3, 4)
EXPECTED = rapt.show(WEIGHTS.tolist()).svg()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, ">f4", ">f8"])
def test_numpy_of_any_order_of_bytes(dtype):
    assert rapt.show(WEIGHTS.astype(dtype)).svg() == EXPECTED


def test_views_with_any_strides():
    assert rapt.show(np.ascontiguousarray(WEIGHTS.transpose(2, 0, 1)).transpose(1, 2, 0)).svg() == EXPECTED
    assert rapt.show(np.asfortranarray(WEIGHTS)).svg() == EXPECTED
    assert rapt.show(np.repeat(WEIGHTS, 2, -1)[..., ::2]).svg() == EXPECTED
    assert rapt.show(np.ascontiguousarray(WEIGHTS[:, ::-1, ::-1])[:, ::-1, ::-1]).svg() == EXPECTED
    even = np.broadcast_to(np.float32(0.25), (4, 4))
    assert rapt.show(even).svg() == rapt.show([[0.25] * 4] * 4).svg()


def test_memory_that_must_not_be_written():
    fixed = WEIGHTS.copy()
    fixed.flags.writeable = False
    assert rapt.show(fixed).svg() == EXPECTED


def test_buffers_without_numpy():
    flat = memoryview(array.array("f", WEIGHTS.ravel().tolist()))
    assert rapt.show(flat.cast("B").cast("f", (2, 3, 4))).svg() == EXPECTED
    assert rapt.show(flat.cast("B").cast("f", (2, 3, 4)).toreadonly()).svg() == EXPECTED
    double = memoryview(array.array("d", [1.0, 0.25, 0.75, 0.5])).cast("B").cast("d", (2, 2))
    assert rapt.show(double).svg() == rapt.show([[1, 0.25], [0.75, 0.5]]).svg()


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_sixteen_bits(kind):
    dtype = np.float16 if kind == "float16" else pytest.importorskip("ml_dtypes").bfloat16
    short = WEIGHTS.astype(dtype)
    assert rapt.show(short).svg() == rapt.show(short.astype(np.float64)).svg()
    assert rapt.show(short.transpose(0, 2, 1)).svg() == rapt.show(short.astype(np.float64).transpose(0, 2, 1)).svg()


@pytest.mark.parametrize("kind", ["float32", "float64", "float16", "bfloat16"])
def test_pytorch(kind):
    torch = pytest.importorskip("torch")
    tensor = torch.tensor(WEIGHTS).to(getattr(torch, kind))
    expected = rapt.show(tensor.double().tolist()).svg()
    assert rapt.show(tensor).svg() == expected
    assert rapt.show(tensor.clone().requires_grad_()).svg() == expected
    assert rapt.show(tensor.transpose(1, 2).contiguous().transpose(1, 2)).svg() == expected
    assert rapt.show(torch.stack([tensor, tensor])[1:], batch=0).svg() == expected


def test_memory_beyond_the_cpu_is_refused():
    class OnCuda:
        def __dlpack_device__(self):
            return (2, 0)

        def __dlpack__(self):
            raise AssertionError("is not asked for")

    with pytest.raises(ValueError, match="a device of DLPack type 2, not in CPU memory; pass weights.cpu()"):
        rapt.show(OnCuda())


def test_what_a_library_does_not_hand_out_is_refused():
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="show: weights cannot be read: "):
        rapt.show(torch.empty(2, 2, device="meta"))


def test_jax():
    jax = pytest.importorskip("jax")
    assert rapt.show(jax.numpy.asarray(WEIGHTS)).svg() == EXPECTED


def test_a_row_of_the_batch_and_some_heads():
    batch = softmax(3, 4, 5, 5, seed=3)
    assert rapt.show(batch).svg() == rapt.show(batch[0]).svg()
    assert rapt.show(batch, batch=2).svg() == rapt.show(batch[2]).svg()
    some = rapt.show(batch, batch=1, heads=[3, 0])
    assert some.svg() == rapt.show(batch[1, [3, 0]], head_titles=["head 3", "head 0"]).svg()
    assert some.svg() == rapt.show(batch, batch=1, heads=np.array([3, 0])).svg()


def test_tokens_name_queries_and_keys():
    square = softmax(2, 2)
    assert rapt.show(square, ["a", "b"]).svg() == rapt.show(square, "ab", key_tokens=("a", "b")).svg()
    assert rapt.show(square, np.array([7, 8])).svg() == rapt.show(square, ["7", "8"]).svg()
    wide = rapt.show(softmax(1, 3), ["q"]).svg()
    assert "query 0 “q” → key 2: " in wide
    assert "query 0 → key 2 “c”: " in rapt.show(softmax(1, 3), key_tokens="abc").svg()


REFUSED = {
    "rank 1": (lambda: rapt.show([0.5, 0.5]),
               "show: weights has rank 1, shape (2,); show takes (Lq, Lk), (H, Lq, Lk) or (B, H, Lq, Lk)"),
    "rank 5": (lambda: rapt.show(np.ones((1, 1, 1, 2, 2))),
               "show: weights has rank 5, shape (1, 1, 1, 2, 2); show takes (Lq, Lk), (H, Lq, Lk) or (B, H, Lq, Lk)"),
    "empty": (lambda: rapt.show(np.ones((0, 3))), "show: weights has shape (0, 3); there is nothing to show"),
    "a number": (lambda: rapt.show(3.0),
                 "show: weights is of type float; show takes an array (__dlpack__, the buffer protocol) or lists of "
                 "numbers"),
    "a string": (lambda: rapt.show("weights"),
                 "show: weights is of type str; show takes an array (__dlpack__, the buffer protocol) or lists of "
                 "numbers"),
    "several arrays": (lambda: rapt.show((WEIGHTS, WEIGHTS)),
                       "show: weights is a tuple of arrays; give one of them, such as weights[0]"),
    "complex": (lambda: rapt.show(np.ones((2, 2), complex)),
                "show: weights has type complex128; show takes float32, float64, float16 and bfloat16"),
    "ragged": (lambda: rapt.show([[0.5, 0.5], [1.0]]),
               "show: weights contains lists of unequal lengths, 2 and 1"),
    "scores": (lambda: rapt.show(np.array([[[0.5, 0.5], [0.25, -1.5]]])),
               "show: weights has -1.5 at (0, 1, 1); weights must not be negative (for scores, take the softmax "
               "over the keys first)"),
    "a score beside NaN": (lambda: rapt.show([[float("nan"), -1.0]]),
                           "show: weights has -1 at (0, 1); weights must not be negative (for scores, take the "
                           "softmax over the keys first)"),
    "too few tokens": (lambda: rapt.show(WEIGHTS, ["a", "b"]),
                       "show: tokens has 2 names, weights has 3 queries and 4 keys; tokens names the queries (and the "
                       "keys, if there are as many), key_tokens the keys"),
    "a sentence": (lambda: rapt.show(WEIGHTS, "if the cat"),
                   "show: tokens has 10 characters (a string is taken for a list of them; text.split() gives words), "
                   "weights has 3 queries and 4 keys; tokens names the queries (and the keys, if there are as "
                   "many), key_tokens the keys"),
    "key tokens": (lambda: rapt.show(WEIGHTS, key_tokens=["a"]),
                   "show: key_tokens has 1 names, weights has 3 queries and 4 keys; tokens names the queries (and the "
                   "keys, if there are as many), key_tokens the keys"),
    "tokens of no kind": (lambda: rapt.show(WEIGHTS, 3),
                          "show: tokens is of type int; it must be a list of 3 names"),
    "batch": (lambda: rapt.show(WEIGHTS[None], batch=1),
              "show: batch is 1; weights of shape (1, 2, 3, 4) has rows 0 … 0"),
    "no batch": (lambda: rapt.show(WEIGHTS, batch=1),
                 "show: batch is 1; weights of shape (2, 3, 4) has no batch dimension, so only batch=0 fits"),
    "head": (lambda: rapt.show(WEIGHTS, heads=[0, 2]),
             "show: heads contains 2; weights of shape (2, 3, 4) has heads 0 … 1"),
    "heads": (lambda: rapt.show(WEIGHTS, heads=1), "show: heads is 1; it must be a list of numbers, such as [0, 1]"),
    "no heads": (lambda: rapt.show(WEIGHTS, heads=[]),
                 "show: 0 heads requested; show takes 1 to 144: choose some with heads="),
    "titles": (lambda: rapt.show(WEIGHTS, head_titles=["a"]),
               "show: head_titles has 1 titles, 2 heads are shown; they must be equal"),
    "largest": (lambda: rapt.show(WEIGHTS, largest=0), "show: largest is 0; it must be a number above 0"),
    "scale": (lambda: rapt.show(WEIGHTS, scale="sqrt"),
              "show: scale is 'sqrt'; it must be one of 'linear', 'log'"),
    "theme": (lambda: rapt.show(WEIGHTS, theme="blue"),
              "show: theme is 'blue'; it must be one of 'auto', 'light', 'dark'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_bad_argument_is_refused_in_plain_words(what):
    call, text = REFUSED[what]
    with pytest.raises(ValueError) as refused:
        call()
    assert str(refused.value) == text


def test_pictures_need_nothing_but_the_standard_library():
    code = """
        import importlib.util, sys
        sys.modules["numpy"] = None
        spec = importlib.util.spec_from_file_location("picture", sys.argv[1], submodule_search_locations=[sys.argv[2]])
        picture = sys.modules["picture"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(picture)
        shown = picture.show([[0.25, 0.75], [1.0, 0.0]], ["a", "b"])
        print(len(shown.html()) > 0, len(shown.png()) > 0)
    """
    package = rapt.show.__globals__["__file__"].rsplit("/", 1)[0]
    run = [sys.executable, "-c", textwrap.dedent(code), f"{package}/__init__.py", package]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "True True\n"
