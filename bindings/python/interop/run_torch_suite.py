#!/usr/bin/env python3
"""Runs PyTorch's own tests of attention twice, without rapt and inside rapt.torch.enable, and compares.

    bindings/python/interop/run_torch_suite.py FOLDER [--tests EXPRESSION] [--keep FOLDER] [--jobs N] [--seconds S]

FOLDER is the folder `test` of PyTorch's sources, of about the version that is installed; none of it is part of this
project. The tests are those of test_transformers.py and nn/test_multihead_attention.py for the CPU. EXPRESSION selects
tests, as pytest's -k does.

It fails if a test passes without rapt and fails with it, unless EXPECTED lists the test and the reason. It reports how
many calls rapt computed, and why others went to PyTorch.
"""

import dataclasses
import pathlib
import sys

import suite_support

FILES = ("nn/test_multihead_attention.py", "test_transformers.py")

# Tests that pass without rapt and may fail with it: a pattern of the name, and the reason.
_NAN = "demands NaN for a query that sees no key; rapt gives 0"
_MOCK = "puts a mock in the place of PyTorch's fast path and demands that it is called"
_SEED = "demands the dropout that a scripted copy of the model draws from the same seed; rapt draws another"
EXPECTED = {
    "TestMultiheadAttentionNN.test_multihead_attention_average_attn_weights_*": _NAN,
    "TestMultiheadAttentionNNDeviceTypeCPU.test_multihead_self_attn_two_masks_fast_path_mock_cpu": _MOCK,
    "TestTransformersCPU.test_disable_fastpath_cpu": _MOCK,
    "TestTransformersCPU.test_mask_check_fastpath_cpu": _MOCK,
    "TestTransformersCPU.test_transformerencoderlayer_subclass_cpu": _SEED,
    "TestTransformersCPU.test_transformerencoderlayer_subclass_model_cpu": _SEED,
}


# ---------------------------------------------------------------- the pytest plugin for the run with rapt


def pytest_configure(config):
    """Enables rapt before PyTorch's tests are imported, because some import the functions by name."""
    import rapt.torch

    config.rapt_routing = rapt.torch.enable(all_threads=True)
    suite_support.counts = lambda: dataclasses.astuple(rapt.torch.calls())


def pytest_unconfigure(config):
    config.rapt_routing.undo()


# ---------------------------------------------------------------- outside


def main():
    given = suite_support.arguments(__doc__.split("\n")[0], "`test` of PyTorch's sources")

    def once(with_rapt, name, tests, seconds):
        plugins = [pathlib.Path(__file__).stem] if with_rapt else []
        environment = {"PYTORCH_TESTING_DEVICE_ONLY_FOR": "cpu"}
        return suite_support.run(name, given, tests or FILES, plugins, environment, seconds)

    return suite_support.compare(given, once, EXPECTED, lambda test: ".".join(test.split("::")[1:]) or test)


if __name__ == "__main__":
    sys.exit(main())
