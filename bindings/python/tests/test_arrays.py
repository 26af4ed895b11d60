"""Arrays are read and written in place, and results have the query's array type."""

import array
import ctypes

import formula
import ml_dtypes
import numpy as np
import pytest
import rapt
from conftest import behind
from rapt import _rapt


def address(x):
    return x.__array_interface__["data"][0]


def strides(x):
    return tuple(stride // x.itemsize for stride in x.strides)


LAYOUTS = {
    "contiguous": lambda x: x,
    "fortran": np.asfortranarray,
    "sliced": lambda x: x[:, ::2, 1:, ::3],
    "reversed": lambda x: x[::-1, :, ::-2],
    "transposed": lambda x: x.transpose(3, 1, 0, 2),
    "broadcast": lambda x: np.broadcast_to(x[:1], x.shape),
    "one row": lambda x: x[1:, 2:3],
    "empty": lambda x: x[:, :0],
    "zero dimensions": lambda x: x[0, 0, 0, 0:1].reshape(()),
    "one dimension": lambda x: x[0, 1, :, 2],
}
TYPES = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.bool_, np.int8]


@pytest.mark.parametrize("dtype", TYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_numpy_arrays_are_read_where_they_lie(layout, dtype):
    x = LAYOUTS[layout](np.zeros((2, 4, 6, 9)).astype(dtype))
    assert _rapt.lent(x)[:3] == (address(x), x.dtype.name, x.shape)
    used = [n for n in range(x.ndim) if x.shape[n] > 1]
    assert [_rapt.lent(x)[3][n] for n in used] == [strides(x)[n] for n in used]


@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_attention_reads_the_memory_itself(name, rng):
    inputs = {name: rng.standard_normal((2, 4, 5, 8), np.float32) for name in ("query", "key", "value")}
    with pytest.raises(ValueError, match=f"out overlaps {name}"):
        rapt.attention(**inputs, out=inputs[name])


@pytest.mark.parametrize("layout", ["contiguous", "fortran", "sliced", "reversed", "transposed", "broadcast"])
def test_strided_inputs_give_what_their_copies_give(layout, rng):
    q, k, v = (LAYOUTS[layout](rng.standard_normal((6, 6, 6, 12), np.float32)) for _ in range(3))
    same = rapt.attention(*(np.ascontiguousarray(x) for x in (q, k, v)))
    np.testing.assert_array_equal(rapt.attention(q, k, v), same)
    np.testing.assert_allclose(same, formula.attention(q, k, v), atol=1e-5)


def test_out_may_have_any_strides(qkv):
    expected = rapt.attention(*qkv)
    memory = np.full((2, 5, 4, 12), np.nan, np.float32)
    out = memory[:, ::-1, :, ::2].swapaxes(1, 2)
    assert rapt.attention(*qkv, out=out) is out
    np.testing.assert_array_equal(out, expected)
    assert np.isnan(memory[..., 1::2]).all()


def test_read_only_arrays_are_read(qkv):
    expected = rapt.attention(*qkv)
    for x in qkv:
        x.flags.writeable = False
    np.testing.assert_array_equal(rapt.attention(*qkv), expected)


def test_a_read_only_out_is_refused(qkv):
    out = np.zeros((2, 4, 5, 6), np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="attention: out is read-only"):
        rapt.attention(*qkv, out=out)
    with pytest.raises(ValueError, match="attention: out is read-only"):
        rapt.attention(*qkv, out=memoryview(out))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16], ids=lambda t: t.__name__)
def test_results_have_the_queries_dtype(dtype, qkv):
    q, k, v = (x.astype(dtype) for x in qkv)
    out = rapt.attention(q, k, v)
    assert type(out) is np.ndarray and out.dtype == dtype and out.flags.c_contiguous
    tolerance = {2: 2e-2, 4: 1e-5, 8: 1e-12}[out.itemsize]
    np.testing.assert_allclose(out.astype(np.float64), formula.attention(q, k, v), atol=tolerance)


def test_the_query_may_have_another_type_than_key_and_value(qkv):
    q, k, v = qkv
    k, v = k.astype(ml_dtypes.bfloat16), v.astype(ml_dtypes.bfloat16)
    out = rapt.attention(q, k, v)
    assert out.dtype == np.float32
    np.testing.assert_allclose(out, formula.attention(q, k, v), atol=1e-5)


def test_memoryviews_and_ctypes_arrays_are_read_where_they_lie(qkv):
    expected = rapt.attention(*qkv)
    lent = [memoryview(x) for x in qkv]
    assert [_rapt.lent(x)[0] for x in lent] == [address(x) for x in qkv]
    out = rapt.attention(*lent)
    assert type(out) is np.ndarray
    np.testing.assert_array_equal(out, expected)

    query = (ctypes.c_float * 8 * 5 * 4 * 2).from_buffer(qkv[0])
    assert _rapt.lent(query)[:3] == (ctypes.addressof(query), "float32", (2, 4, 5, 8))
    np.testing.assert_array_equal(rapt.attention(query, *qkv[1:]), expected)


def test_array_array_lends_its_memory():
    numbers = array.array("f", [1.0, 2.0])
    assert _rapt.lent(numbers) == (numbers.buffer_info()[0], "float32", (2,), (1,))
    sinks = array.array("f", [0.5, -1.0])
    q = np.ones((1, 2, 3, 4), np.float32)
    np.testing.assert_array_equal(rapt.attention(q, q, q, sinks=sinks), rapt.attention(q, q, q, sinks=np.array(sinks)))


def test_a_locked_buffer_is_free_again_after_the_call():
    memory = bytearray(4 * 8)
    q = memoryview(memory).cast("f", (1, 1, 2, 4))
    rapt.attention(q, q, q)
    with pytest.raises(TypeError):
        rapt.attention(q, q, "no array")
    q.release()
    memory.extend(b"grows only where nobody holds its memory")


class Lender:
    """Exports a NumPy array through __dlpack__, as its library would."""

    def __init__(self, x, versions=True, device=None):
        self.x, self.versions, self.device = x, versions, device

    def __dlpack__(self, **options):
        if not self.versions and options:
            raise TypeError("unexpected keyword argument")
        return self.x.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.device or self.x.__dlpack_device__()


@pytest.mark.parametrize("versions", [True, False], ids=["versioned", "unversioned"])
def test_what_has_dlpack_is_read_where_it_lies(versions, qkv):
    q = qkv[0][:, ::-1, ::2]
    assert _rapt.lent(Lender(q, versions)) == (address(q), "float32", q.shape, strides(q))
    lent = (Lender(x, versions) for x in (q, *qkv[1:]))
    np.testing.assert_array_equal(rapt.attention(*lent), rapt.attention(q, *qkv[1:]))


def test_a_dlpack_loan_that_is_read_only_is_not_written(qkv):
    out = np.zeros((2, 4, 5, 6), np.float32)
    rapt.attention(*qkv, out=Lender(out))
    np.testing.assert_array_equal(out, rapt.attention(*qkv))
    out.flags.writeable = False
    with pytest.raises(ValueError, match="out is read-only"):
        rapt.attention(*qkv, out=Lender(out))


def test_an_array_of_ours_is_lent_both_ways(qkv, tmp_path):
    rapt.save(tmp_path / "x.safetensors", {"x": qkv[0]})
    ours = behind(rapt.load(tmp_path / "x.safetensors")["x"])
    assert (ours.shape, ours.dtype) == ((2, 4, 5, 8), "float32")
    assert "float32" in repr(ours)
    np.testing.assert_array_equal(np.asarray(memoryview(ours)), qkv[0])
    np.testing.assert_array_equal(np.from_dlpack(ours), qkv[0])
    assert address(np.from_dlpack(ours)) == _rapt.lent(ours)[0]
    assert address(np.from_dlpack(ours, copy=True)) != _rapt.lent(ours)[0]
    np.testing.assert_array_equal(np.from_dlpack(ours, copy=True), qkv[0])
    assert ours.__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="read-only"):
        ours.__dlpack__()


# ---------------------------------------------------------------- what is refused


def refused(x, error=ValueError):
    q = np.zeros((1, 1, 2, 4), np.float32)
    with pytest.raises(error) as caught:
        rapt.attention(x, q, q)
    return str(caught.value)


@pytest.mark.parametrize("x", [[[1.0]], 3.0, "query", object(), {}], ids=lambda x: type(x).__name__)
def test_what_is_no_array_is_refused_by_its_type(x):
    text = refused(x, TypeError)
    assert text.startswith(f"attention: query is of type {type(x).__name__}; rapt takes arrays: numpy.ndarray")


def test_a_missing_query_is_refused():
    assert refused(None, TypeError) == "attention: query is None; it must be an array"


@pytest.mark.parametrize("dtype", ["int64", "uint8", "complex64", "complex128", "longdouble", "O", "U3", "M8[s]", "V2", "S3"])
def test_other_types_are_refused_with_those_there_are(dtype):
    text = refused(np.zeros((1, 1, 2, 4), dtype))
    name = np.dtype(dtype).name
    assert text == (f"attention: query holds {name}; rapt computes with float32, float64, bfloat16 and float16, and takes "
                    "bool masks and int8 keys and values")


def test_float8_is_refused_by_its_name():
    assert "query holds float8_e4m3fn;" in refused(np.zeros((1, 1, 2, 4), ml_dtypes.float8_e4m3fn))


def test_formats_of_the_buffer_protocol_that_are_no_numbers_are_refused():
    assert "elements of format 'c'" in refused(memoryview(b"abcd").cast("c"))


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">f2"])
def test_swapped_bytes_are_refused_with_the_way_to_mend_them(dtype):
    x = np.zeros((1, 1, 2, 4), dtype)
    text = refused(x)
    assert text.startswith("attention: query has non-native byte order")
    mend = text.split("order: ")[1]
    mended = eval(mend, {"query": x})  # noqa: S307: the text itself is the test
    rapt.attention(mended, mended, mended)


def test_swapped_bytes_in_a_buffer_are_refused():
    class Swapped(ctypes.BigEndianStructure):
        _fields_ = [("x", ctypes.c_float)]

    assert "order" in refused(memoryview((ctypes.c_float.__ctype_be__ * 4)()))


def test_masked_arrays_are_refused_and_other_subclasses_read():
    x = np.ma.masked_array(np.zeros((1, 1, 2, 4), np.float32), mask=True)
    assert "query is a masked array, and its mask would be ignored; pass query.filled(0)" in refused(x)
    kept = np.zeros((1, 1, 2, 4), np.float32).view(type("Kept", (np.ndarray,), {}))
    assert _rapt.lent(kept)[0] == address(kept)
    assert type(rapt.attention(kept, kept, kept)) is np.ndarray


def test_strides_between_elements_are_refused():
    records = np.zeros((1, 1, 2, 4), np.dtype([("a", "f4"), ("b", "i1")]))
    assert "stride of 5 bytes" in refused(records["a"])


def test_addresses_between_elements_are_refused():
    x = np.frombuffer(bytearray(33), np.float32, 8, offset=1).reshape(1, 1, 2, 4)
    assert refused(x) == "attention: query starts at an address that is not a multiple of 4, the size of float32"
    lengths = np.frombuffer(bytearray(33), np.int64, 2, offset=1)
    q = np.zeros((2, 1, 1, 1), np.float32)
    with pytest.raises(ValueError, match="key_lengths starts at an address that is not a multiple of the element size, 8 bytes"):
        rapt.attention(q, q, q, key_lengths=lengths)


def test_zero_dimensions_are_refused_with_the_librarys_text():
    assert refused(np.zeros((), np.float32)) == "attention: query has shape (); it must be (B, Hq, Lq, D)"


def test_nine_dimensions_are_refused():
    assert "9" in refused(np.zeros((1,) * 9, np.float32))


# DLPack's structs, for exports that NumPy never produces.
class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    pass


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class HandMade:
    """A loan of 8 floats of shape (1, 1, 2, 4), changed by keyword."""

    def __init__(self, **changes):
        self.memory = (ctypes.c_float * 10)(*range(10))
        self.shape = (ctypes.c_int64 * 4)(1, 1, 2, 4)
        tensor = _Tensor(ctypes.addressof(self.memory), 1, 0, 4, 2, 32, 1, ctypes.addressof(self.shape), None, 0)
        for name, value in changes.items():
            setattr(tensor, name, value)
        self.given_back = 0
        self.managed = _Managed(tensor, None, _Deleter(self.take_back))

    def take_back(self, _):
        self.given_back += 1

    def __dlpack__(self, max_version=None):
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor", None)


def test_a_dlpack_loan_without_strides_is_row_major_and_given_back_once():
    x = HandMade(byte_offset=8)
    assert _rapt.lent(x) == (ctypes.addressof(x.memory) + 8, "float32", (1, 1, 2, 4), (8, 8, 4, 1))
    assert x.given_back == 1
    plain = np.arange(2, 10, dtype=np.float32).reshape(1, 1, 2, 4)
    np.testing.assert_array_equal(rapt.attention(x, plain, plain), rapt.attention(plain, plain, plain))
    assert x.given_back == 2


@pytest.mark.parametrize(("changes", "text"), [
    ({"device_type": 2, "device": 1}, "query is on cuda:1; rapt computes on the CPU: pass query.cpu()"),
    ({"device_type": 10}, "query is on a device of DLPack type 10; rapt computes on the CPU"),
    ({"lanes": 4}, "query has elements of 32 bits in 4 lanes; rapt computes with float32"),
    ({"bits": 4}, "query has elements of 4 bits in 1 lanes"),
    ({"code": 5, "bits": 64}, "query holds complex64"),
    ({"code": 9, "bits": 8}, "query holds elements of 1 bytes"),
    ({"byte_offset": 2}, "query starts at an address that is not a multiple"),
    ({"rank": -1}, "query"),
], ids=str)
def test_other_loans_are_refused_and_given_back(changes, text):
    x = HandMade(**changes)
    assert text in refused(x)
    assert x.given_back == 1


def test_who_fails_to_lend_is_named_and_its_words_are_the_cause():
    class Broken:
        def __dlpack__(self, **options):
            raise BufferError("not today")

    q = np.zeros((1, 1, 2, 4), np.float32)
    with pytest.raises(ValueError, match=r"attention: query \(.*Broken\) does not export its memory through DLPack") as caught:
        rapt.attention(Broken(), q, q)
    assert str(caught.value.__cause__) == "not today"


def test_a_capsule_that_is_none_is_refused():
    class Wrong:
        def __dlpack__(self, **options):
            return 3

    assert "returned no DLPack capsule" in refused(Wrong())
