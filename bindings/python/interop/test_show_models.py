"""rapt show beside transformers: random configurations of BERT, DistilBERT, RoBERTa and GPT-2, their own tokenizers, and
every attention weight, hidden state and logit that `rapt show --json` prints."""

import json
import pathlib
import random
import subprocess
import sys

import pytest
import tokenizers
import torch
import transformers

COMMAND = pathlib.Path(sys.executable).parent / "rapt"
SENTENCES = ["The animal didn't cross the street, because it was too tired.", "a b a b", "Hello, WORLD! 123 — déjà vu",
             "the cat sat on the mat and the cat sat"]
WEIGHTS, HIDDEN = 2e-6, 2e-5

SPECIAL = {"bert": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], "distilbert": ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"],
           "roberta": ["<s>", "<pad>", "</s>", "<unk>", "<mask>"], "gpt2": ["<|endoftext|>"]}


def trained_tokenizer(family):
    """A tokenizer of the family's kind, trained on the sentences."""
    if family in ("bert", "distilbert"):
        tokenizer = tokenizers.BertWordPieceTokenizer(lowercase=True)
        tokenizer.train_from_iterator(SENTENCES, vocab_size=120, min_frequency=1, show_progress=False)
        return tokenizers.Tokenizer.from_str(tokenizer.to_str())
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=300, special_tokens=SPECIAL[family], initial_alphabet=alphabet,
                                             show_progress=False)
    tokenizer.train_from_iterator(SENTENCES, trainer)
    if family == "roberta":
        tokenizer.post_processor = tokenizers.processors.RobertaProcessing(sep=("</s>", 2), cls_token=("<s>", 0), add_prefix_space=False)
    return tokenizer


def random_model(family, vocabulary, draw):
    heads = draw.choice([1, 2, 3, 4, 6])
    width = heads * draw.choice([2, 4, 8, 12])
    layers, hidden = draw.randint(1, 5), draw.randint(3, 70)
    activation = draw.choice(["gelu", "gelu_new", "relu"])
    common = {"vocab_size": vocabulary, "attn_implementation": "eager"}
    bert = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": hidden,
            "hidden_act": activation, "max_position_embeddings": 90, "layer_norm_eps": draw.choice([1e-12, 1e-5, 1e-3]),
            "initializer_range": 0.4, **common}
    if family == "bert":
        kind = draw.choice([transformers.BertForMaskedLM, transformers.BertModel])
        return kind(transformers.BertConfig(type_vocab_size=draw.randint(1, 3), **bert))
    if family == "roberta":
        kind = draw.choice([transformers.RobertaForMaskedLM, transformers.RobertaModel])
        return kind(transformers.RobertaConfig(type_vocab_size=1, **bert))
    if family == "distilbert":
        kind = draw.choice([transformers.DistilBertForMaskedLM, transformers.DistilBertModel])
        return kind(transformers.DistilBertConfig(
            dim=width, n_layers=layers, n_heads=heads, hidden_dim=hidden, activation=activation,
            max_position_embeddings=90, sinusoidal_pos_embds=draw.random() < 0.3, initializer_range=0.4, **common))
    kind = draw.choice([transformers.GPT2LMHeadModel, transformers.GPT2Model])
    return kind(transformers.GPT2Config(
        n_embd=width, n_layer=layers, n_head=heads, n_inner=draw.choice([None, hidden]), n_positions=90,
        activation_function=activation, scale_attn_weights=draw.random() < 0.8,
        scale_attn_by_inverse_layer_idx=draw.random() < 0.3, initializer_range=0.4, **common))


def show(folder, sentence, *options):
    run = subprocess.run([COMMAND, "show", folder, sentence, "--json", *options], capture_output=True, text=True,
                         timeout=120)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def answers(model, ids):
    with torch.no_grad():
        result = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
    found = {"weights": torch.stack([each[0] for each in result.attentions]),
             "hidden": torch.stack([each[0] for each in result.hidden_states])}
    if hasattr(result, "logits"):
        found["logits"] = result.logits[0]
    return {name: value.double() for name, value in found.items()}


def near(found, truth, rounded, bound):
    """The error is below the bound, or below twice that of transformers in f32: errors grow with random weights."""
    error = (torch.tensor(found, dtype=torch.double) - truth).abs().max()
    assert error < max(bound, 2 * (rounded - truth).abs().max())


@pytest.mark.parametrize("family", SPECIAL)
@pytest.mark.parametrize("seed", range(6))
def test_every_number_is_that_of_transformers(family, seed, tmp_path):
    draw = random.Random(f"{family} {seed}")
    torch.manual_seed(seed)
    tokenizer = trained_tokenizer(family)
    model = random_model(family, tokenizer.get_vocab_size(), draw).eval()
    for name, parameter in model.named_parameters():  # zeros and ones would leave parts untested
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, 1.0 if name.endswith("weight") else 0.0, 0.2)
    dtype = draw.choice([torch.float32, torch.float32, torch.float16, torch.bfloat16])
    model = model.to(dtype)
    model.save_pretrained(tmp_path, max_shard_size=draw.choice(["1GB", "20KB"]))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    sentence = draw.choice(SENTENCES)

    can_predict = hasattr(model, "lm_head") or "MaskedLM" in type(model).__name__ or family == "gpt2"
    mask = next((token for token in SPECIAL[family] if "mask" in token.lower()), "")
    text = f"{sentence} {mask}".strip()
    shown = show(tmp_path, text, *(["--next"] if can_predict else []))
    ids = tokenizer.encode(text).ids
    assert [token["id"] for token in shown["tokens"]] == ids

    truth, rounded = answers(model.double(), ids), answers(model.float(), ids)
    near(shown["weights"], truth["weights"], rounded["weights"], WEIGHTS)
    near(shown["hidden"], truth["hidden"], rounded["hidden"], HIDDEN)
    if not can_predict:
        assert "next" not in shown
        return
    assert shown["next"]
    for each in shown["next"] if "logits" in truth else []:
        at = each["position"]
        near(each["logits"], truth["logits"][at], rounded["logits"][at], HIDDEN)


def test_generated_tokens_are_those_of_transformers(tmp_path):
    torch.manual_seed(0)
    tokenizer = trained_tokenizer("gpt2")
    config = transformers.GPT2Config(n_embd=24, n_layer=3, n_head=4, n_positions=64, vocab_size=tokenizer.get_vocab_size(),
                                     initializer_range=0.4, bos_token_id=0, eos_token_id=0, attn_implementation="eager")
    model = transformers.GPT2LMHeadModel(config).eval()
    model.save_pretrained(tmp_path)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    ids = torch.tensor([tokenizer.encode(SENTENCES[0]).ids])
    with torch.no_grad():
        greedy = model.double().generate(ids, max_new_tokens=20, do_sample=False, pad_token_id=0)
    shown = show(tmp_path, SENTENCES[0], "--generate", "20")
    assert [token["id"] for token in shown["generated"]["tokens"]] == greedy[0, ids.shape[1] :].tolist()
