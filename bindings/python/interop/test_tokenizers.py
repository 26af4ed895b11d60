"""The tokenizers of src/models give the same tokens, places and texts as Hugging Face's tokenizers.

The tokenizers are trained here, on text that is made here. rapt's are run by the program build/release/tests/rapt_tokenize
(tests/models/tokenize_main.cc), or by the one that RAPT_TOKENIZE names.
"""

import json
import os
import pathlib
import random
import subprocess

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[3]
PROGRAM = pathlib.Path(os.environ.get("RAPT_TOKENIZE", ROOT / "build" / "release" / "tests" / "rapt_tokenize"))

WORDS = (
    "the animal didn't cross the street because it was too tired he'll they've I'M we're attention weights queries keys "
    "values unbelievable internationalization antidisestablishmentarianism Straße CAFÉ naïve Ångström Œuvre İstanbul "
    "ﬁne ﬂow ½ ² ① Ⅷ ℃ ㎏ x² don't do not n't 's HTTP2 a1b2 3.14 1,000 €5 $6 50% a_b c-d [CLS] [MASK] <mask> </s> "
    "<|endoftext|> C++20 rapt::Error foo.bar(baz) #tag @user https://example.org/?q=1&r=2"
).split()
SCRIPTS = [
    "中文字符注意力机制模型", "日本語のテキストカタカナﾊﾝｶｸ", "한국어텍스트가나다", "اللغة العربية مُشَكَّلَة", "हिन्दी पाठ क़ख़ग़ नमस्ते",
    "ภาษาไทยข้อความ", "ελληνικά ΟΔΥΣΣΕΥΣ ᾳῇ", "Русский ТЕКСТ ёЁйЙ", "עברית נִקּוּד", "தமிழ் உரை", "ქართული ᲥᲐᲠᲗᲣᲚᲘ", "Tiếng Việt ệ ở",
    "አማርኛ", "ខ្មែរ", "မြန်မာ", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝟘𝟙𝟚", "𐐀𐐨𐐁", "ⓐⒷ㈱", "０１２ＡＢｃ", "٠١٢٣ ०१२ ๓๔ 五六",
]
EMOJI = ["😀", "👍🏽", "👩‍💻", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪🇨🇳", "☺️", "1️⃣", "🤦🏻‍♂️", "❤"]
MARKS = ["e\u0301", "e\u0323\u0301", "e\u0301\u0323", "o\u0308\u0304", "q\u0307\u0323", "\u0344a", "\u0301\u0300", "a\u0345\u0301",
         "\u1100\u1161\u11a8", "\u0958", "\u212b", "\u0f73\u0f72", "n\u0303", "\u0130", "\u1e9e", "\u01c5"]  # fmt: skip
SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\u00a0", "\u2003", "\u3000", "\u200b", "\u2028", "\u0085", "\u1680", "\ufeff", "\v"]
CONTROLS = ["\x01", "\x1b", "\x7f", "\u00ad", "\u200d", "\u202e", "\ue000", "\ufffd", "\ufffe", "\U000e0041", "\U0010ffff"]
PUNCTUATION = list("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~") + list("。、「」！？…—–«»¿¡·؟،।॥་༼〈〉（）【】《》‰′※‿⁂") + ["''", "...", "?!", "--"]
SPECIAL = ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]", "<s>", "</s>", "<mask>", "<pad>", "<|endoftext|>", "Catfish", "CATFISH"]


def texts(count, seed):
    """Texts of mixed scripts, the same for each seed, without the character that separates them."""
    draw = random.Random(seed)
    kinds = [
        lambda: draw.choice(WORDS),
        lambda: draw.choice(WORDS).upper() if draw.random() < 0.5 else draw.choice(WORDS).title(),
        lambda: "".join(draw.choice(draw.choice(SCRIPTS)) for _ in range(draw.randint(1, 8))),
        lambda: draw.choice(SCRIPTS)[: draw.randint(1, 12)],
        lambda: draw.choice(EMOJI),
        lambda: draw.choice(MARKS),
        lambda: draw.choice(CONTROLS),
        lambda: draw.choice(PUNCTUATION),
        lambda: draw.choice(SPECIAL),
        lambda: str(draw.randint(0, 10 ** draw.randint(1, 12))),
        lambda: "".join(chr(draw.choice([draw.randint(1, 0x7F), draw.randint(0x80, 0x2FFF), draw.randint(0xA000, 0xD7FF),
                                         draw.randint(0x10000, 0x1FFFF)])) for _ in range(draw.randint(1, 6))),
    ]  # fmt: skip
    weights = [8, 2, 4, 4, 2, 3, 1, 4, 1, 2, 1]
    made = ["", " ", "  ", "\n", "a", "中", "\u0301", "\u200b", "x" * 99, "x" * 100, "x" * 101, "ab" * 3000, " " * 300]
    while len(made) < count:
        parts = []
        for kind in draw.choices(kinds, weights, k=draw.randint(1, 24)):
            parts.append(kind())
            parts.append(draw.choice(SPACES) if draw.random() < 0.15 else " " if draw.random() < 0.6 else "")
        made.append("".join(parts))
    assert not any("\0" in text for text in made)
    return made


def corpus():
    """What the tokenizers are trained on."""
    return texts(2000, seed=7)


def run(folder, inputs, *options):
    result = subprocess.run([PROGRAM, folder, *options], input="\0".join(inputs).encode(), capture_output=True, check=False)
    lines = [json.loads(line) for line in result.stdout.decode().split("\n") if line]
    assert result.returncode == 0, (lines, result.stderr)
    assert len(lines) == len(inputs)
    return lines


def save(tokenizer, folder):
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def compare(theirs, folder, inputs):
    """Ids, places, texts and decoding of all inputs."""
    for text, ours in zip(inputs, run(folder, inputs)):
        expected = theirs.encode(text)
        starts = [0]
        for character in text:
            starts.append(starts[-1] + len(character.encode()))
        offsets = [[starts[begin], starts[end]] for begin, end in expected.offsets]
        assert ours["ids"] == expected.ids, (text, expected.tokens)
        assert ours["offsets"] == offsets, (text, expected.tokens)
        assert ours["plain"] == theirs.encode(text, add_special_tokens=False).ids, text
        assert ours["decoded"] == theirs.decode(expected.ids, skip_special_tokens=True), (text, expected.tokens)


def with_catfish(tokenizer):
    """Adds tokens of every kind."""
    tokenizer.add_tokens([
        tokenizers.AddedToken("Catfish", single_word=True), tokenizers.AddedToken("é!", lstrip=True, rstrip=True),
        tokenizers.AddedToken("中文", normalized=False), tokenizers.AddedToken("ab", rstrip=True, single_word=True),
        tokenizers.AddedToken(" do", normalized=False), tokenizers.AddedToken("<|x|>", special=True, normalized=True),
    ])  # fmt: skip
    return tokenizer


def bert(lowercase, **options):
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase, **options)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=3000, special_tokens=special, show_progress=False))
    ids = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ids
    )
    tokenizer.decoder = decoders.WordPiece(cleanup=True)
    return tokenizer


def byte_bpe(special, add_prefix_space=False, normalizer=None, alphabet=True):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet() if alphabet else []
    trainer = trainers.BpeTrainer(vocab_size=3000, special_tokens=special, initial_alphabet=letters, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def gpt2(**options):
    return byte_bpe(["<|endoftext|>"], **options)


def roberta(add_prefix_space=False):
    special = ["<s>", "<pad>", "</s>", "<unk>", tokenizers.AddedToken("<mask>", lstrip=True, special=True, normalized=False)]
    tokenizer = byte_bpe(special, add_prefix_space=add_prefix_space)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=add_prefix_space
    )
    return tokenizer


def post_sequence():
    tokenizer = gpt2(add_prefix_space=True)
    tokenizer.post_processor = processors.Sequence([
        processors.ByteLevel(trim_offsets=True, add_prefix_space=True),
        processors.TemplateProcessing(single="<|endoftext|> $A", special_tokens=[("<|endoftext|>", 0)]),
    ])  # fmt: skip
    return tokenizer


def char_bpe(fuse):
    """BPE over characters, with unknown ones."""
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token="[UNK]", fuse_unk=fuse))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=["[UNK]"], limit_alphabet=60, show_progress=False)
    tokenizer.train_from_iterator(corpus(), trainer)
    return tokenizer


def sequence(*steps):
    return normalizers.Sequence(list(steps))


KINDS = {
    "bert uncased": lambda: bert(True),
    "bert cased": lambda: bert(False),
    "bert cased, added tokens": lambda: with_catfish(bert(False)),
    "bert uncased, added tokens": lambda: with_catfish(bert(True)),
    "bert without cleaning": lambda: bert(True, clean_text=False, handle_chinese_chars=False, strip_accents=False),
    "bert cased without accents": lambda: bert(False, strip_accents=True),
    "gpt2": gpt2,
    "gpt2, added tokens": lambda: with_catfish(gpt2()),
    "gpt2, prefix space": lambda: gpt2(add_prefix_space=True),
    "gpt2, some bytes": lambda: gpt2(alphabet=False),
    "gpt2, nfc": lambda: gpt2(normalizer=normalizers.NFC()),
    "gpt2, nfkd, lower": lambda: gpt2(normalizer=sequence(normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase())),
    "gpt2, nfkc, strip": lambda: gpt2(normalizer=sequence(normalizers.NFKC(), normalizers.Strip(), normalizers.Replace("th", "ðé"))),
    "gpt2, nfd": lambda: with_catfish(gpt2(normalizer=normalizers.NFD())),
    "gpt2, template": post_sequence,
    "roberta": roberta,
    "roberta, prefix space": lambda: roberta(add_prefix_space=True),
    "roberta, added tokens": lambda: with_catfish(roberta()),
    "characters": lambda: char_bpe(False),
    "characters, fused": lambda: char_bpe(True),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_tokens_places_and_texts_are_the_same(name, tmp_path):
    tokenizer = KINDS[name]()
    compare(tokenizer, save(tokenizer, tmp_path), texts(1200, seed=len(name)))


def test_the_texts_reach_many_tokens():
    """The comparison above would be weak if most words were unknown or one letter."""
    for tokenizer in (bert(True), gpt2()):
        lengths = [len(token) for text in texts(1200, seed=1) for token in tokenizer.encode(text).tokens]
        assert len(lengths) > 15000 and sum(length > 2 for length in lengths) > 4000


def vocabulary_files(tokenizer, folder):
    """The vocabulary as vocab.txt, or as vocab.json and merges.txt."""
    folder.mkdir()
    tokenizer.model.save(str(folder))
    return folder


@pytest.mark.parametrize("lowercase", [True, False])
def test_vocab_txt_is_read_as_transformers_read_it(lowercase, tmp_path):
    tokenizer = bert(lowercase)
    folder = vocabulary_files(tokenizer, tmp_path / "files")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowercase}))
    compare(tokenizer, folder, texts(300, seed=3))


def test_vocab_json_and_merges_txt_are_read_as_transformers_read_them(tmp_path):
    inputs = texts(300, seed=4)
    plain, wrapped = gpt2(), roberta()
    compare(plain, vocabulary_files(plain, tmp_path / "gpt2"), inputs)
    compare(wrapped, vocabulary_files(wrapped, tmp_path / "roberta"), inputs)


# Every code point below the last ideographs, and the planes of tags and private use.
POINTS = [point for point in [*range(1, 0x32400), *range(0xE0000, 0xE1000), 0xF0000, 0xFFFFD, 0x10FFFD, 0x10FFFE]
          if not 0xD800 <= point < 0xE000]  # fmt: skip


def in_groups(form):
    """Texts that contain form(character) for each code point."""
    return ["".join(form(chr(point)) for point in POINTS[start : start + 512]) for start in range(0, len(POINTS), 512)]


NORMALIZERS = {
    "nfd": normalizers.NFD(), "nfc": normalizers.NFC(), "nfkd": normalizers.NFKD(), "nfkc": normalizers.NFKC(),
    "lower": normalizers.Lowercase(), "strip accents": normalizers.StripAccents(),
    "bert": normalizers.BertNormalizer(), "bert cased": normalizers.BertNormalizer(lowercase=False),
    "bert accents": normalizers.BertNormalizer(clean_text=False, strip_accents=True, lowercase=False),
}  # fmt: skip


@pytest.mark.parametrize("name", NORMALIZERS)
def test_every_code_point_is_normalized_the_same(name, tmp_path):
    """Byte-level BPE without a merge, so that decoding gives the normalized text."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = tokenizers.Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.normalizer = NORMALIZERS[name]
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    folder = save(tokenizer, tmp_path)
    # Before and after marks of several combining classes, too: they are reordered and composed.
    for form in (lambda c: f"x{c}", lambda c: f"e\u0301{c}\u0316{c}a\u0345{c}\u0334", lambda c: f"{c}\u0301{c}\u0338\u3099"):
        inputs = in_groups(form)
        for text, ours in zip(inputs, run(folder, inputs, "decoded")):
            expected = NORMALIZERS[name].normalize_str(text)
            assert ours["decoded"] == expected, [
                hex(ord(a)) for a, b in zip(ours["decoded"], expected) if a != b
            ][:5]  # fmt: skip


PRE_TOKENIZERS = {
    "bert": pre_tokenizers.BertPreTokenizer(), "gpt2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "whitespace": pre_tokenizers.Whitespace(), "whitespace split": pre_tokenizers.WhitespaceSplit(),
}  # fmt: skip


@pytest.mark.parametrize("name", PRE_TOKENIZERS)
def test_every_code_point_is_split_the_same(name, tmp_path):
    """Each word is one unknown token, so that the places show the words."""
    tokenizer = tokenizers.Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = PRE_TOKENIZERS[name]
    compare(tokenizer, save(tokenizer, tmp_path), in_groups(lambda c: f"x{c}1{c}!{c}{c} {c}\n"))
