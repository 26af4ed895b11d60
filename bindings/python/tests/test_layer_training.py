"""Training a rapt.MultiheadAttention: dropout, gradients, and threads that share a layer."""

import threading

import numpy as np
import pytest
from layer_support import drawn, filled, layer_and_tokens

import rapt


# ---- Training -------------------------------------------------------------------------------------------------------


def test_dropout_is_on_in_training_only():
    layer, x = layer_and_tokens(dropout=0.5)
    one, other = layer(x)[0], layer(x)[0]
    assert (one != other).any()
    assert ((layer(x)[1] == 0).mean()) > 0  # weights as after dropout
    layer.eval()
    np.testing.assert_array_equal(layer(x)[0], layer(x)[0])
    layer.train()
    seeded = [layer(x, dropout=rapt.Dropout(0.0, seed=3))[0] for _ in range(2)]
    np.testing.assert_array_equal(*seeded)
    again = filled(rapt.MultiheadAttention(12, 3, batch_first=True, dropout=0.5))
    np.testing.assert_array_equal(again(x)[0], one)  # a new layer drops the same weights as this one


def test_output_dropout():
    layer, x = layer_and_tokens(output_dropout=0.5)
    out, _ = layer(x)
    whole, _ = layer.eval()(x)
    dropped = out == 0
    assert 0.3 < dropped.mean() < 0.7
    np.testing.assert_allclose(out[~dropped], 2 * whole[~dropped], rtol=1e-5)


def test_gradients_match_finite_differences():
    layer = filled(rapt.MultiheadAttention(6, 2, dropout=0.25, dtype="float64"))
    rng = np.random.default_rng(5)
    x, dout, dweights = rng.standard_normal((4, 2, 6)), rng.standard_normal((4, 2, 6)), rng.standard_normal((2, 4, 4))
    bias = rng.standard_normal((4, 4))
    sinks = rng.standard_normal(2)
    dropout = rapt.Dropout(0.0, seed=11)

    def loss(x=x, bias=bias, sinks=sinks):
        out, weights = layer(x, mask=rapt.Mask.add(bias), sinks=sinks, dropout=dropout)
        return (out * dout).sum() + (weights * dweights).sum()

    layer(x, mask=rapt.Mask.add(bias), sinks=sinks, dropout=dropout, keep=True)
    found = layer.backward(dout, dweights, masks=[0])
    step = 1e-6

    def differences(value, at):
        gradient = np.empty_like(value)
        for place in np.ndindex(*value.shape):
            up, down = value.copy(), value.copy()
            up[place] += step
            down[place] -= step
            gradient[place] = (at(up) - at(down)) / (2 * step)
        return gradient

    def with_parameter(name, value):
        old = dict(layer.named_parameters())[name].copy()
        layer.set_parameter(name, value)
        result = loss()
        layer.set_parameter(name, old)
        return result

    np.testing.assert_allclose(found.dquery, differences(x, lambda v: loss(x=v)), atol=1e-7)
    np.testing.assert_allclose(found.dmasks[0], differences(bias, lambda v: loss(bias=v)), atol=1e-7)
    np.testing.assert_allclose(found.dsinks, differences(sinks, lambda v: loss(sinks=v)), atol=1e-7)
    for name, value in layer.named_parameters():
        wanted = differences(value.copy(), lambda v, name=name: with_parameter(name, v))
        np.testing.assert_allclose(found.parameters[name], wanted, atol=1e-7, err_msg=name)


def test_gradients_of_several_calls_add_up():
    layer, x = layer_and_tokens()
    dout = drawn(2, 5, 12, seed=2)
    layer(x, keep=True)
    whole = layer.backward(dout)
    total = layer.zero_gradients()
    kept = [rapt.LayerActivations(), rapt.LayerActivations()]
    for row in range(2):
        layer(x[row : row + 1], keep=kept[row])
    for row in range(2):
        part = layer.backward(dout[row : row + 1], kept=kept[row], parameters=total)
        assert part.parameters is total
        np.testing.assert_array_equal(part.dquery, whole.dquery[row : row + 1])
    for name, value in whole.parameters.items():
        np.testing.assert_array_equal(total[name], value, err_msg=name)  # the same bits as in one call
    assert kept[0].bytes > 0
    only = layer.backward(dout[:1], kept=kept[0], inputs=False, parameters=False)
    assert only.dquery is None and only.parameters is None


def test_a_call_that_is_refused_keeps_nothing():
    layer, x = layer_and_tokens()
    kept = rapt.LayerActivations()
    layer(x, keep=kept)
    with pytest.raises(ValueError, match="alibi_slopes"):
        layer(x, keep=kept, alibi_slopes=[1.0])
    with pytest.raises(ValueError, match="kept is empty"):
        layer.backward(x, kept=kept)
    with pytest.raises(TypeError, match="keep must be a bool or a rapt.LayerActivations, not dict"):
        layer(x, keep={})


def test_a_layer_learns():
    layer = rapt.MultiheadAttention(8, 2, batch_first=True, seed=1)
    target = rapt.MultiheadAttention(8, 2, batch_first=True, seed=2)
    x = drawn(8, 6, 8)
    losses = []
    for _ in range(60):
        out, _ = layer(x, need_weights=False, keep=True)
        difference = out - target(x, need_weights=False)[0]
        losses.append(float((difference**2).mean()))
        gradients = layer.backward(2 * difference / difference.size, inputs=False).parameters
        for name, value in layer.named_parameters():
            layer.set_parameter(name, value - 2.0 * gradients[name])
    assert losses[-1] < 0.2 * losses[0]


# ---- Threads --------------------------------------------------------------------------------------------------------


def test_threads_share_a_layer_and_get_the_same_bits():
    layer = rapt.MultiheadAttention(64, 4, batch_first=True)
    x = drawn(4, 50, 64)
    expected, wanted = layer(x, threads=1)
    failures = []

    def work():
        for _ in range(20):
            out, weights = layer(x, threads=1)
            if not (np.array_equal(out, expected) and np.array_equal(weights, wanted)):
                failures.append("differs")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_parameters_may_change_between_the_calls_of_other_threads():
    layer = rapt.MultiheadAttention(32, 4, batch_first=True, bias=False)
    x = drawn(2, 20, 32)
    weight = layer.out_proj.weight.copy()
    expected = []
    for sign in (1, -1):
        layer.set_parameter("out_proj.weight", sign * weight)
        expected.append(layer(x)[0].tobytes())
    done, unknown = threading.Event(), []

    def call():
        while not done.is_set():
            if layer(x)[0].tobytes() not in expected:
                unknown.append("neither of the two")

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for n in range(200):
        layer.set_parameter("out_proj.weight", (1 if n % 2 else -1) * weight)
    done.set()
    for thread in threads:
        thread.join()
    assert not unknown
