"""Batched gradients, forward-mode gradients and torch.func, with attention computed by rapt or passed on to PyTorch."""

import pytest
import rapt.torch
import torch
import torch.nn.functional as F
from rapt.torch import calls, enable
from torch.autograd import forward_ad
from torch.autograd.functional import hessian, jacobian
from torch.nn.attention import SDPBackend, sdpa_kernel

PRISTINE = F.scaled_dot_product_attention
pytestmark = [
    pytest.mark.filterwarnings("ignore:There is a performance drop because we have not yet implemented"),
    pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated"),  # PyTorch's own, for forward mode
]


def by_math(*args, **kwargs):
    """PyTorch's plain kernel: its fused one has no second gradients."""
    with sdpa_kernel(SDPBackend.MATH):
        return PRISTINE(*args, **kwargs)


@pytest.fixture(autouse=True)
def counted():
    torch.manual_seed(9)
    calls(reset=True)


@pytest.fixture
def inputs():
    """q, k, v and a float mask, in double."""
    shapes = ((1, 2, 3, 4), (1, 2, 5, 4), (1, 2, 5, 4), (3, 5))
    return tuple(torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes)


@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"mask": True}], ids=str)
@pytest.mark.parametrize("create_graph", [False, True])
def test_batched_gradients(inputs, options, create_graph):
    *leaves, mask = inputs
    leaves = leaves + [mask] if "mask" in options else leaves
    options = {name: value for name, value in options.items() if name != "mask"}
    arrived = torch.randn(7, 1, 2, 3, 4, dtype=torch.float64)

    def gradients(function):
        out = function(*leaves, **options)
        found = torch.autograd.grad(out, leaves, arrived, is_grads_batched=True, create_graph=create_graph)
        if not create_graph:
            return found
        return *found, *torch.autograd.grad(sum(x.square().sum() for x in found), leaves)

    with enable():
        ours = gradients(F.scaled_dot_product_attention)
    assert calls() == rapt.torch.Calls(1)
    torch.testing.assert_close(ours, gradients(by_math))


def test_batched_gradients_drop_what_the_call_dropped(inputs):
    q, k, v, _ = inputs
    arrived = torch.randn(7, 1, 2, 3, 4, dtype=torch.float64)
    out = rapt.torch.sdpa(q, k, v, dropout_p=0.4)
    batched = torch.autograd.grad(out, (q, k, v), arrived, is_grads_batched=True, retain_graph=True)
    one_by_one = [torch.autograd.grad(out, (q, k, v), x, retain_graph=True) for x in arrived]
    torch.testing.assert_close(batched, tuple(torch.stack(x) for x in zip(*one_by_one)))


def test_batched_gradients_of_a_layer():
    layer, x = torch.nn.MultiheadAttention(8, 2).double(), torch.randn(5, 2, 8, dtype=torch.float64)
    arrived = torch.randn(3, 5, 2, 8, dtype=torch.float64)
    parameters = list(layer.parameters())

    def gradients():
        return torch.autograd.grad(layer(x, x, x)[0], parameters, arrived, is_grads_batched=True)

    theirs = gradients()
    with enable():
        ours = gradients()
    assert calls().rapt == 1
    torch.testing.assert_close(ours, theirs)


def test_a_vectorised_jacobian(inputs):
    q, k, v, _ = inputs
    with enable():
        ours = jacobian(F.scaled_dot_product_attention, (q, k, v), vectorize=True)
    assert calls() == rapt.torch.Calls(1)
    torch.testing.assert_close(ours, jacobian(PRISTINE, (q, k, v)))


@pytest.mark.parametrize("kernel", [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION])
def test_a_jacobian_by_forward_mode_goes_to_pytorch(inputs, kernel):
    """PyTorch's fused kernel does not support forward mode."""
    forward = dict(vectorize=True, strategy="forward-mode")
    with enable(), sdpa_kernel([SDPBackend.MATH, kernel]):
        if kernel is SDPBackend.MATH:
            ours = jacobian(F.scaled_dot_product_attention, inputs[:3], **forward)
            torch.testing.assert_close(ours, jacobian(PRISTINE, inputs[:3]))
        else:
            with pytest.raises(NotImplementedError, match="forward AD"):
                jacobian(F.scaled_dot_product_attention, inputs[:3], **forward)
    assert calls().rapt == 0


def test_a_vectorised_hessian(inputs):
    q, k, v, _ = inputs
    with enable():
        ours = hessian(lambda q: F.scaled_dot_product_attention(q, k, v).square().sum(), q, vectorize=True)
    torch.testing.assert_close(ours, hessian(lambda q: by_math(q, k, v).square().sum(), q))


def total(function):
    return lambda *args: function(*args).square().sum()


TRANSFORMS = {
    "vmap": lambda f, q, k, v: torch.func.vmap(f)(q[0], k[0], v[0]),
    "grad": lambda f, q, k, v: torch.func.grad(total(f))(q, k, v),
    "vjp": lambda f, q, k, v: torch.func.vjp(f, q, k, v)[1](torch.ones_like(q)),
    "jvp": lambda f, q, k, v: torch.func.jvp(f, (q, k, v), (q, k, v)),
    "jacrev": lambda f, q, k, v: torch.func.jacrev(f)(q, k, v),
    "jacfwd": lambda f, q, k, v: torch.func.jacfwd(f)(q, k, v),
    "hessian": lambda f, q, k, v: torch.func.hessian(total(f))(q, k, v),
    "gradients of each sample": lambda f, q, k, v: torch.func.vmap(torch.func.grad(total(f)))(q[0], k[0], v[0]),
    "linearize": lambda f, q, k, v: torch.func.linearize(f, q, k, v)[1](q, k, v),
    "functionalize": lambda f, q, k, v: torch.func.functionalize(f)(q, k, v),
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
def test_transforms_go_to_pytorch(inputs, transform):
    q, k, v = (x.detach() for x in inputs[:3])
    try:
        theirs = transform(PRISTINE, q, k, v)
    except (RuntimeError, NotImplementedError) as error:
        theirs = type(error)  # PyTorch's fused kernel has no rule for some transforms
    with enable():
        if isinstance(theirs, type):
            with pytest.raises(theirs):
                transform(F.scaled_dot_product_attention, q, k, v)
        else:
            torch.testing.assert_close(transform(F.scaled_dot_product_attention, q, k, v), theirs)
    assert calls().pytorch["transform"] >= 1


def test_a_transform_over_the_parameters_of_a_layer():
    layer, x = torch.nn.MultiheadAttention(8, 2).double(), torch.randn(5, 2, 8, dtype=torch.float64)
    parameters = {name: value.detach() for name, value in layer.named_parameters()}

    def loss(parameters):
        return torch.func.functional_call(layer, parameters, (x, x, x))[0].square().sum()

    theirs = torch.func.grad(loss)(parameters)
    with enable():
        ours = torch.func.grad(loss)(parameters)
    torch.testing.assert_close(ours, theirs)


def test_tangents_that_arrive_with_a_gradient_are_carried_on(inputs):
    """Forward over reverse, with the attention call outside: the gradient is a dual number."""
    q, k, v, _ = inputs
    arrived, tangent = torch.randn(2, 1, 2, 3, 4, dtype=torch.float64)

    def gradient_and_tangent(function):
        out = function(q, k, v)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(arrived, tangent)
            (found,) = torch.autograd.grad(out, q, dual)
            return forward_ad.unpack_dual(found)

    ours = gradient_and_tangent(rapt.torch.sdpa)
    theirs = gradient_and_tangent(by_math)
    assert ours.tangent is not None
    torch.testing.assert_close(tuple(ours), tuple(theirs))


def test_a_gradient_of_a_subclass_arrives(inputs):
    class Mine(torch.Tensor):
        pass

    q, k, v, _ = inputs
    arrived = torch.randn(1, 2, 3, 4, dtype=torch.float64)
    ours = torch.autograd.grad(rapt.torch.sdpa(q, k, v), q, arrived.as_subclass(Mine))[0]
    theirs = torch.autograd.grad(PRISTINE(q, k, v), q, arrived)[0]
    torch.testing.assert_close(ours.as_subclass(torch.Tensor), theirs)
