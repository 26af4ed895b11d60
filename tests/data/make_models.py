"""Makes tests/data/models: tiny BERT, DistilBERT, RoBERTa and GPT-2 models as transformers saves them, and their answers.

Made with PyTorch and transformers as in bindings/python/tests/requirements.txt's peers, on the CPU:

    python3 tests/data/make_models.py

Each folder has a config, weights and a tokenizer. NAME.expected.safetensors beside it has, computed in f64 and stored in
f32: `hidden` (L + 1, T, E), `weights` (L, H, T, T) and `logits` (T, V) of the tokens `ids`; `off.hidden`, with the heads
of OFF switched off before the output projection; for GPT-2, `greedy`, the tokens that generate() continues with, and
`scaled.hidden`, with the scores scaled in the other ways that its config knows.

All weights are exact in bf16 and in f16, so that the same answers hold for files of these types.
"""

import json
import pathlib
import shutil
import zlib

import numpy as np
import tokenizers
import torch
import transformers
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).parent / "models"
SIZES = {"width": 16, "layers": 2, "heads": 4, "hidden": 24, "positions": 40}
OFF = [(0, 1), (1, 3)]  # layer, head
WORDS = """the a cat dog animal street sat saw ran on and it was too tired because did not cross ' t . , ! ?
##s ##ed ##ing rain ##y""".split()
TEXTS = ["the cat sat on the street because it was too tired.", "The animal didn't cross the street, it ran and ran!"]
SHARED = {"attn_implementation": "eager", "dtype": torch.float32}


def draw(name, *shape):
    """Numbers in (-0.5, 0.5) that depend only on the name and the index, with seven significant bits."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    return torch.from_numpy(rng.integers(-127, 128, shape) / 256.0).float()


def fill(model, seed):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            value = draw(f"{seed}/{name}", *parameter.shape)
            is_norm = parameter.dim() == 1 and name.endswith("weight")
            parameter.copy_(1.0 + torch.round(value * 16) / 64 if is_norm else value)
    return model.eval()


# ---------------------------------------------------------------- tokenizers


def write_wordpiece(folder):
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    folder.joinpath("vocab.txt").write_text("".join(word + "\n" for word in words), encoding="utf-8")
    config = {"do_lower_case": True, "tokenizer_class": "BertTokenizer"}
    folder.joinpath("tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    return len(words)


def byte_level(special):
    """A byte-level BPE trained on the texts."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=340, show_progress=False, special_tokens=special,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.train_from_iterator(TEXTS * 4, trainer)
    return tokenizer


def write_gpt2(folder):
    byte_level(["<|endoftext|>"]).model.save(str(folder))  # vocab.json and merges.txt
    config = {"tokenizer_class": "GPT2Tokenizer"}
    folder.joinpath("tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")
    return len(json.loads(folder.joinpath("vocab.json").read_text()))


def write_roberta(folder):
    tokenizer = byte_level(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    tokenizer.post_processor = tokenizers.processors.RobertaProcessing(
        sep=("</s>", 2), cls_token=("<s>", 0), add_prefix_space=False)
    folder.joinpath("tokenizer.json").write_text(tokenizer.to_str(pretty=False) + "\n", encoding="utf-8")
    return tokenizer.get_vocab_size()


# ---------------------------------------------------------------- models


def bert(vocabulary):
    return transformers.BertForMaskedLM(transformers.BertConfig(
        vocab_size=vocabulary, hidden_size=SIZES["width"], num_hidden_layers=SIZES["layers"],
        num_attention_heads=SIZES["heads"], intermediate_size=SIZES["hidden"],
        max_position_embeddings=SIZES["positions"], **SHARED))


def distilbert(vocabulary):
    return transformers.DistilBertForMaskedLM(transformers.DistilBertConfig(
        vocab_size=vocabulary, dim=SIZES["width"], n_layers=SIZES["layers"], n_heads=SIZES["heads"],
        hidden_dim=SIZES["hidden"], max_position_embeddings=SIZES["positions"], activation="relu", **SHARED))


def roberta(vocabulary):
    return transformers.RobertaForMaskedLM(transformers.RobertaConfig(
        vocab_size=vocabulary, hidden_size=SIZES["width"], num_hidden_layers=SIZES["layers"],
        num_attention_heads=SIZES["heads"], intermediate_size=SIZES["hidden"],
        max_position_embeddings=SIZES["positions"], type_vocab_size=1, layer_norm_eps=1e-5, **SHARED))


def gpt2(vocabulary):
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=vocabulary, n_embd=SIZES["width"], n_layer=SIZES["layers"], n_head=SIZES["heads"],
        n_positions=SIZES["positions"], bos_token_id=0, eos_token_id=0, **SHARED))


# Name -> (tokenizer, model, the paths of the attention layers' output projections, layers counted from {})
MODELS = {
    "bert": (write_wordpiece, bert, "bert.encoder.layer.{}.attention.output.dense"),
    "distilbert": (write_wordpiece, distilbert, "distilbert.transformer.layer.{}.attention.out_lin"),
    "roberta": (write_roberta, roberta, "roberta.encoder.layer.{}.attention.output.dense"),
    "gpt2": (write_gpt2, gpt2, "transformer.h.{}.attn.c_proj"),
}


def answers(model, ids):
    with torch.no_grad():
        result = model(ids, output_attentions=True, output_hidden_states=True)
    stack = lambda tensors: torch.stack([each[0] for each in tensors])
    return stack(result.hidden_states), stack(result.attentions), result.logits[0]


def without_heads(model, path, ids):
    """The hidden states with the heads of OFF zeroed before the output projection."""
    size = SIZES["width"] // SIZES["heads"]

    def zeroing(head):
        def hook(_, inputs):
            x = inputs[0].clone()
            x[..., head * size : (head + 1) * size] = 0
            return (x,)
        return hook

    hooks = [model.get_submodule(path.format(layer)).register_forward_pre_hook(zeroing(head)) for layer, head in OFF]
    hidden = answers(model, ids)[0]
    for hook in hooks:
        hook.remove()
    return hidden


def make(name):
    write_tokenizer, build, path = MODELS[name]
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    vocabulary = write_tokenizer(folder)
    model = fill(build(vocabulary), name)
    model.save_pretrained(folder)
    folder.joinpath("generation_config.json").unlink(missing_ok=True)
    config = json.loads(folder.joinpath("config.json").read_text())
    config.pop("transformers_version", None)
    folder.joinpath("config.json").write_text(json.dumps(config, indent=2) + "\n")

    rng = np.random.default_rng(zlib.crc32(f"{name}/ids".encode()))
    ids = torch.from_numpy(rng.integers(0, vocabulary, (1, 12)))
    if name == "roberta":
        ids[0, 5] = ids[0, 11] = 1  # padding, which has a position of its own
    else:
        ids[0, 7:10] = ids[0, 2:5]  # repeats
    model = model.double()
    hidden, weights, logits = answers(model, ids)
    expected = {"ids": ids[0], "hidden": hidden, "weights": weights, "logits": logits,
                "off.hidden": without_heads(model, path, ids)}
    if name == "gpt2":
        greedy = model.generate(ids, max_new_tokens=10, do_sample=False, pad_token_id=0, eos_token_id=None)
        expected["greedy"] = greedy[0, ids.shape[1] :]
        other = transformers.GPT2Config(**{**model.config.to_dict(), "scale_attn_weights": False,
                                           "scale_attn_by_inverse_layer_idx": True}, attn_implementation="eager")
        scaled = transformers.GPT2LMHeadModel(other).eval().double()
        scaled.load_state_dict(model.state_dict())
        expected["scaled.hidden"] = answers(scaled, ids)[0]
    save_file({key: value.float().contiguous() for key, value in expected.items()},
              FOLDER / f"{name}.expected.safetensors")


def main():
    for name in MODELS:
        make(name)
    size = sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file())
    print(f"{len(MODELS)} models, {size} bytes, transformers {transformers.__version__}, torch {torch.__version__}")


main()
