"""rapt.MultiheadAttention against stored results of torch.nn.MultiheadAttention: every argument, without PyTorch."""

import numpy as np
import pytest
from layer_cases import CASES
from layer_support import relative_error

import rapt


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_all_640_calls(dtype):
    for case in CASES:
        layer = case.fill(rapt.MultiheadAttention(**case.args, dtype=dtype))
        out, weights = case.run(layer, lambda x: x if x.dtype == bool else x.astype(dtype))
        assert out.dtype == dtype
        for what, found in (("out", out), ("weights", weights)):
            expected = case.answer(what, layer.out_proj.bias)
            if expected is None:
                assert found is None, case
                continue
            assert found.shape == expected.shape, case
            bound = 1e-12 if dtype == "float64" else max(2e-6, 2 * case.f32_error[what])
            assert relative_error(found, expected) <= bound, (case, what)
    assert len(CASES) >= 500


def test_state_dicts_have_the_names_and_shapes_of_pytorch():
    plain = rapt.MultiheadAttention(6, 2)
    assert {name: value.shape for name, value in plain.state_dict().items()} == {
        "in_proj_weight": (18, 6), "in_proj_bias": (18,), "out_proj.weight": (6, 6), "out_proj.bias": (6,)}
    other = rapt.MultiheadAttention(6, 2, bias=False, add_bias_kv=True, kdim=4, vdim=5)
    assert {name: value.shape for name, value in other.state_dict().items()} == {
        "q_proj_weight": (6, 6), "k_proj_weight": (6, 4), "v_proj_weight": (6, 5), "bias_k": (1, 1, 6),
        "bias_v": (1, 1, 6), "out_proj.weight": (6, 6)}
    assert list(plain.state_dict(prefix="a.")) == [f"a.{name}" for name in plain.state_dict()]


def test_parameters_are_drawn_as_pytorch_draws_them():
    layer = rapt.MultiheadAttention(64, 4, add_bias_kv=True, seed=3)
    bound = np.sqrt(6 / (64 + 3 * 64))  # xavier_uniform_
    values = layer.in_proj_weight
    assert np.abs(values).max() <= bound and np.abs(values).max() > 0.98 * bound
    assert abs(values.mean()) < 0.01 * bound
    bound = np.sqrt(1 / 64)  # that of a linear layer
    assert 0.95 * bound < np.abs(layer.out_proj.weight).max() <= bound
    assert not layer.in_proj_bias.any() and not layer.out_proj.bias.any()
    assert layer.bias_k.std() == pytest.approx(np.sqrt(2 / (1 + 64)), rel=0.5)  # xavier_normal_ of 64 numbers
