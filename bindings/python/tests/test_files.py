"""safetensors, npy and npz, against what NumPy and the json module read and write."""

import json
import struct

import ml_dtypes
import numpy as np
import pytest
import rapt

TYPES = {
    "f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "bool": np.bool_,
    "i8": np.int8,
}  # fmt: skip


@pytest.fixture
def arrays(rng):
    made = {name: (4 * rng.standard_normal((2, 3, 5))).astype(dtype) for name, dtype in TYPES.items()}
    return made | {"strided": made["f32"][:, ::-1, ::2], "scalar": np.float32(3).reshape(()), "empty": made["f64"][:, :0]}


def assert_same(read, written):
    assert list(read) == list(written)
    for name, x in written.items():
        assert (read[name].dtype, read[name].shape) == (x.dtype, x.shape), name
        np.testing.assert_array_equal(read[name], x)


def read_safetensors(path):
    """Written from the format's description only: a length, a header in JSON, bytes."""
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    names = {"F32": "f4", "F64": "f8", "F16": "f2", "BF16": ml_dtypes.bfloat16, "BOOL": "?", "I8": "i1"}
    arrays = {}
    for name, entry in header.items():
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        arrays[name] = np.frombuffer(data[begin:end], names[entry["dtype"]]).reshape(entry["shape"])
    return arrays, metadata


def test_safetensors_are_written_as_the_format_says(arrays, tmp_path):
    path = tmp_path / "x.safetensors"
    rapt.save(path, arrays, metadata={"made": "today"})
    read, metadata = read_safetensors(path)
    assert metadata == {"made": "today"}
    assert_same(read, arrays)


def test_safetensors_are_read_through_a_map(arrays, tmp_path):
    path = tmp_path / "x.safetensors"
    rapt.save(path, arrays, metadata={"made": "today"})
    read = rapt.load(path)
    assert_same(read, arrays)
    assert not any(x.flags.writeable or x.flags.owndata for x in read.values())
    with open("/proc/self/maps") as maps:
        assert str(path) in maps.read()
    del read
    with open("/proc/self/maps") as maps:
        assert str(path) not in maps.read()


def test_an_open_file_is_a_mapping(arrays, tmp_path):
    path = tmp_path / "x.safetensors"
    rapt.save(path, arrays, metadata={"made": "today"})
    file = rapt.SafetensorsFile(str(path))
    assert list(file) == file.keys() == list(arrays) and len(file) == len(arrays)
    assert "f32" in file and "f3" not in file
    assert file.metadata == {"made": "today"}
    np.testing.assert_array_equal(file["bf16"], arrays["bf16"])
    with pytest.raises(KeyError, match="f3"):
        file["f3"]
    entry = next(x for x in file.entries if x.name == "bf16")
    assert (entry.type, entry.dtype, entry.shape, entry.end - entry.begin) == ("BF16", "bfloat16", (2, 3, 5), 60)


def test_integers_of_safetensors_come_from_numpy(tmp_path):
    ids = np.arange(6).reshape(2, 3)
    header = {"ids": {"dtype": "I64", "shape": [2, 3], "data_offsets": [0, 48]},
              "none": {"dtype": "U8", "shape": [0], "data_offsets": [48, 48]}}
    text = json.dumps(header).encode()
    path = tmp_path / "x.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + ids.tobytes())
    read = rapt.load(path)
    np.testing.assert_array_equal(read["ids"], ids)
    assert read["none"].shape == (0,) and read["none"].dtype == np.uint8
    with pytest.raises(ValueError, match="I64"):
        rapt.SafetensorsFile(str(path))["ids"]


@pytest.mark.parametrize("compress", [False, True])
def test_npz_goes_to_numpy_and_back(compress, arrays, tmp_path):
    del arrays["i8"]  # integers are converted or rejected
    path = tmp_path / "x.npz"
    rapt.save(path, arrays, compress=compress)
    with np.load(path) as theirs:
        read = {name: theirs[name] for name in theirs}
    read["bf16"] = read["bf16"].view(ml_dtypes.bfloat16)
    assert_same(read, arrays)

    (np.savez_compressed if compress else np.savez)(path, **arrays)
    ours = rapt.load(path)
    assert_same(ours, arrays)
    assert all(x.flags.writeable for x in ours.values())


def test_npy_goes_to_numpy_and_back(arrays, tmp_path):
    path = tmp_path / "x.npy"
    for name in ("f32", "strided", "f64", "bool"):
        rapt.save(path, arrays[name])
        np.testing.assert_array_equal(np.load(path), arrays[name])
        np.save(path, arrays[name].T)
        np.testing.assert_array_equal(rapt.load(str(path)), arrays[name].T)
    np.save(path, np.array([[0, 3]]))
    np.testing.assert_array_equal(rapt.load(path, integers_as="bool"), [[False, True]])
    assert rapt.load(path, integers_as=np.float32).dtype == np.float32
    with pytest.raises(ValueError, match="holds int64"):
        rapt.load(path)


def test_what_was_loaded_is_attended_to_where_it_lies(qkv, tmp_path):
    path = tmp_path / "x.safetensors"
    rapt.save(path, dict(zip("qkv", qkv)))
    read = rapt.load(path)
    np.testing.assert_array_equal(rapt.attention(read["q"], read["k"], read["v"]), rapt.attention(*qkv))


def test_refusals_name_the_file(tmp_path, arrays):
    missing = tmp_path / "no.safetensors"
    with pytest.raises(ValueError, match=str(missing)):
        rapt.load(missing)
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(b"\xff" * 20)
    with pytest.raises(ValueError, match="safetensors: .*broken.safetensors"):
        rapt.load(broken)
    for call in (lambda p: rapt.load(p), lambda p: rapt.save(p, arrays)):
        with pytest.raises(ValueError, match=r"x.bin .*expected .safetensors, .npz or .npy"):
            call(tmp_path / "x.bin")
    with pytest.raises(ValueError, match="metadata is supported only in .safetensors"):
        rapt.save(tmp_path / "x.npz", arrays, metadata={"a": "b"})
    with pytest.raises(ValueError, match="compress is supported only for .npz"):
        rapt.save(tmp_path / "x.npy", arrays["f32"], compress=True)
    with pytest.raises(ValueError, match="save: ids holds int64"):
        rapt.save(tmp_path / "x.npz", {"ids": np.arange(3)})
    with pytest.raises(TypeError, match="names must be str"):
        rapt.save(tmp_path / "x.npz", {3: arrays["f32"]})
    with pytest.raises(TypeError):
        rapt.save(tmp_path / "x.npz", arrays["f32"])
    assert not (tmp_path / "x.npz").exists()
