#!/usr/bin/env python3
"""Times whole models of transformers with rapt's attention, relative to the same models with PyTorch's ("sdpa").

    bench/python/models.py [--model gpt2|llama]… [--prefill N] [--decode N] [--rounds N] [--threads N] [--json FILE]

The models are GPT-2 in its smallest size (124 million parameters) and a small Llama whose query heads share key heads,
with random float32 weights, on the CPU. Two things are timed: prefill with N tokens, and decoding N tokens one by one.
Each measurement runs in its own process, so that its peak memory can be measured; the two implementations alternate. A
ratio below 1.00 means that rapt needs less time or memory. In every round, both must give the same logits.

It needs the environment of `make test-interop`.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

IMPLEMENTATIONS = ("sdpa", "rapt")
CONFIGS = {
    "gpt2": ("GPT2Config", {}),  # 124 million parameters in 12 layers of 12 heads
    "llama": ("LlamaConfig", {"vocab_size": 32000, "hidden_size": 1024, "intermediate_size": 2816,
                              "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 4}),
}  # fmt: skip


def peak_mib():
    """The peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ---------------------------------------------------------------- one measurement, in its own process


def make(name, implementation, longest):
    """The model. Both implementations get the same weights."""
    import torch
    import transformers

    if implementation == "rapt":
        import rapt.transformers  # registers the name
    torch.manual_seed(1)
    kind, settings = CONFIGS[name]
    config = getattr(transformers, kind)(**settings)
    config.max_position_embeddings = max(config.max_position_embeddings, longest)
    return transformers.AutoModelForCausalLM.from_config(config, attn_implementation=implementation).eval()


def measure(what, name, implementation, prefill, decode, threads):
    """Seconds, the peak of memory (also before the timed call) and some logits, as a dict."""
    import torch

    if threads:
        torch.set_num_threads(threads)
    if threads and implementation == "rapt":
        import rapt

        rapt.set_thread_count(threads)
    model = make(name, implementation, prefill + decode)
    tokens = torch.randint(model.config.vocab_size, (1, prefill), generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        model(tokens[:, :64])  # a first call loads what is loaded lazily
        before = peak_mib()
        if what == "prefill":
            began = time.perf_counter()
            logits = model(tokens, logits_to_keep=1).logits
            seconds = time.perf_counter() - began
        else:
            step = model(tokens, logits_to_keep=1)
            began = time.perf_counter()
            for _ in range(decode):
                step = model(step.logits[:, -1:].argmax(-1), past_key_values=step.past_key_values)
            seconds = time.perf_counter() - began
            logits = step.logits
    return {"seconds": seconds, "peak": peak_mib(), "model": before, "logits": logits[0, -1, :8].tolist()}


# ---------------------------------------------------------------- all of them, alternating


def in_a_process(*arguments):
    run = subprocess.run([sys.executable, __file__, "--one", *map(str, arguments)], capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"{' '.join(map(str, arguments))}:\n{run.stderr}")
    return json.loads(run.stdout.splitlines()[-1])


def compare(what, name, given):
    """{implementation: [measurement of each round]}."""
    found = {implementation: [] for implementation in IMPLEMENTATIONS}
    for _ in range(given.rounds):
        for implementation in IMPLEMENTATIONS:
            one = in_a_process(what, name, implementation, given.prefill, given.decode, given.threads)
            found[implementation].append(one)
        theirs, ours = (found[implementation][-1]["logits"] for implementation in IMPLEMENTATIONS)
        difference = max(abs(one - other) for one, other in zip(theirs, ours))
        if not difference < 1e-3:
            sys.exit(f"{name}, {what}: logits differ by {difference}")
    return found


def line(name, what, unit, values, ratios):
    middle = [statistics.median(values[implementation]) for implementation in IMPLEMENTATIONS]
    numbers = f"{middle[0]:9.1f} {middle[1]:9.1f} {unit:4} {statistics.median(ratios):6.2f}"
    print(f"{name:8} {what:16} {numbers}   {min(ratios):.2f} to {max(ratios):.2f}", flush=True)


def report(name, what, found):
    for field, label, unit, scale in (("seconds", what, "ms", 1e3), ("peak", f"{what}, peak", "MiB", 1)):
        values = {key: [scale * one[field] for one in each] for key, each in found.items()}
        line(name, label, unit, values, [ours / theirs for theirs, ours in zip(values["sdpa"], values["rapt"])])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", action="append", choices=CONFIGS)
    parser.add_argument("--prefill", type=int, default=1024)
    parser.add_argument("--decode", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=0, help="0: the default of each implementation")
    parser.add_argument("--json", help="write all measurements to this file")
    given = parser.parse_args()
    print(f"{'':25} {'sdpa':>9} {'rapt':>9} {'':4} {'ratio':>6}   of {given.rounds} rounds")
    everything = {}
    for name in given.model or CONFIGS:
        for what in ("prefill", "decode"):
            found = everything[f"{name} {what}"] = compare(what, name, given)
            report(name, what, found)
    if given.json:
        with open(given.json, "w", encoding="utf-8") as file:
            json.dump(everything, file, indent=1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        what, name, implementation, *numbers = sys.argv[2:]
        print(json.dumps(measure(what, name, implementation, *map(int, numbers))))
    else:
        main()
