#include "cli/explain/words.h"

namespace rapt::cli {
namespace {

constexpr Words kEnglish{
    .sentence = "if the cat ran the dog ran too",
    .title = "multi-head attention, step by step",
    .sizes = "B = 1, tokens L = {0}, embedding size E = {1}, heads H = {2}, head size D = d_k = {3}",
    .made =
        "The weights are set by hand, not trained, so that each head has one visible job. Every number below is "
        "computed live.",
    .shortened = "The text has {1} tokens. All are computed; the first {0} are shown.",

    .embedding =
        "One row per token. Numbers 0–{0} encode the word, {1}–{2} its position: equal words have equal left halves.",
    .who = "word",
    .where = "position",
    .projections =
        "Each token gets a query q (what it looks for), a key k (what it matches) and a value v (what it passes on), "
        "from three {0}×{0} matrices that all tokens share. We follow one token, “{1}”:",
    .split = "Splitting adds no parameters: W_q, W_k, W_v and W_o hold {0} numbers with 1 head or with {1}.",
    .split_in_memory = "same memory, no copy",
    .split_pieces = "The q of “{0}” is cut into one piece per head:",
    .head = "head {0}",
    .numbers_of = "numbers {0}–{1}",
    .scores =
        "In each head, the dot product of every query with every key. Rows are queries, columns are keys. The row of "
        "“{0}”:",
    .by_hand = "{0}, “{1}” · “{2}” =",
    .more = "({0} more)",
    .scale =
        "Why? q·k adds up d_k products, so it grows with d_k. Variance of the scores: {0:.2f} before, {1:.2f} after (÷ "
        "{2}). "
        "Unscaled, softmax would put {3:.0f}% of a row on one key on average; scaled, {4:.0f}%.",
    .no_mask = "No mask: every word sees every word. Try --causal to mask the future.",
    .causal_mask = "Causal: a word sees itself and the words before it. Masked scores become -inf, and exp(-inf) is 0.",
    .causal_row = "“{0}” sees keys 0 … {1}:",
    .softmax =
        "Softmax over the keys: each row sums to 1. Rows are queries, columns are keys. The label of a head is "
        "computed from its weights.",
    .edges =
        "The first word has no previous word and the last has no next word, so the heads that look for them "
        "have nothing to attend to there.",
    .hidden_key = "× is a masked key: its weight is exactly 0.",
    .blinded = "In {0} the next word is now masked, so softmax spreads its weight over the remaining keys.",
    .one_head = "One head has only one set of weights, so it must average all four jobs. Compare with --heads 4.",
    .dropout =
        "Off here. In training with p = 0.1, one weight in ten would become 0 and the others be divided by 0.9, so a "
        "row "
        "would sum to 1 only on average.",
    .weighted_sum = "The output is the sum of the values, weighted by the attention weights. “{0}” in {1}:",
    .other_keys = "{0} other keys, weight {1:.2f}",
    .combine = "The parts of each token, one per head, are concatenated again.",
    .combine_copy = "the copy that view() needs",
    .output =
        "W_o mixes the outputs of the heads. The result has the shape of the input, one row per token: ready for the "
        "next layer.",
    .checks = "checked",
    .rows_sum = "every row of weights sums to 1 (off by at most {0:.1g})",
    .out_equals = "out = weights · v, computed a second time (off by at most {0:.1g})",
    .try_next = "next",
    .try_causal = "mask the future",
    .try_wrong = "the reshape that looks right but is wrong",
    .try_heads = "why several heads?",
    .try_questions = "common questions, answered with numbers",
    .try_text = "your own sentence",
    .try_lang = "zh",
    .try_lang_means = "中文",
    .try_json = "all of this as JSON",

    .habit_previous = "previous word {0:.0f}%",
    .habit_same = "same word {0:.0f}%",
    .habit_itself = "itself {0:.0f}%",
    .habit_first = "first word {0:.0f}%",
    .habit_next = "next word {0:.0f}%",
    .habit_blinded = "next word, masked",
    .habit_spread = "over {0:.1f} keys",

    .wrong_title = "the wrong split, made on purpose",
    .wrong_intro =
        "Both give the shape (B, H, L, D), so there is no error. But view() never moves data: it divides memory in "
        "storage order, and in memory the numbers of a token are contiguous.",
    .right_name = "right",
    .wrong_name = "wrong",
    .wrong_memory =
        "The {0} numbers of q in memory order, one token per line. Each digit is the head that a number goes to:",
    .wrong_holds = "What each head holds: one token per row, D numbers of it (first–last).",
    .wrong_rows =
        "{0} of {1} rows hold the wrong numbers. A head should be a slice of every token; here it is a slice of the "
        "sentence, and its rows are pieces of the same few tokens.",
    .wrong_weights = "The resulting weights. In the wrong maps, a row does not belong to the word in its label.",
    .wrong_same =
        "With H = {0} and L = {1} both split at the same places, so nothing breaks here. With at least two heads and "
        "two tokens, it does.",
    .breaks = "what breaks",
    .weights_differ = "a weight is off by up to {0:.2f}",
    .output_differs = "the output y is off by {0:.0f}% (|wrong − right| / |right|)",
    .leak = "With a causal mask no word may depend on a later one. Change the last word: whose output moves?",
    .leak_right = "right: {0} of the {1} words before it",
    .leak_wrong = "wrong: {0} of the {1} words before it, so the model sees the future",
    .why_right =
        "So: first view(B, L, H, D), which splits each token, then transpose(1, 2), which moves the heads forward by "
        "swapping strides.",

    .error_empty = "explain: the text has no tokens; give at least one word with --text",
    .error_long = "explain: the text has {0} tokens; the maximum is {1}",
    .error_heads = "explain: {0} heads requested; at least 1 is needed",
    .error_divide =
        "explain: {0} heads do not divide E = {1}: each head would have {1} / {0} = {2:.4g} numbers; possible numbers "
        "of heads: {3}",
};

constexpr Words kChinese{
    .sentence = "我爱你，你爱我",
    .title = "多头注意力，一步一步来",
    .sizes = "B = 1，词元 L = {0} 个，每个 E = {1} 个数，头 H = {2} 个，每头 D = d_k = {3} 个数",
    .made = "权重矩阵是手工设计的，未经训练，每个头各司其职，便于观察。下面所有数字都是实时计算的结果。",
    .shortened = "文本共有 {1} 个词元，全部参与计算，只显示前 {0} 个。",

    .embedding = "每个词元一行。第 0–{0} 个数编码词本身，第 {1}–{2} 个数编码位置：词相同，左半部分就相同。",
    .who = "词",
    .where = "位置",
    .projections =
        "每个词元生成三个向量：查询 q（要找什么）、键 k（能匹配什么）、值 v（传递什么内容）。三个 {0}×{0} "
        "的矩阵由所有词元共用。下面以一个词元为例：“{1}”",
    .split = "拆分不增加参数：无论 1 个头还是 {1} 个头，W_q、W_k、W_v、W_o 一共都是 {0} 个数。",
    .split_in_memory = "同一块内存，不复制",
    .split_pieces = "“{0}” 的 q 被切成几段，每个头一段：",
    .head = "头 {0}",
    .numbers_of = "第 {0}–{1} 个数",
    .scores = "每个头里，每个查询都和每个键做点积。行是查询，列是键。“{0}” 这一行：",
    .by_hand = "{0}，“{1}” · “{2}” =",
    .more = "（还有 {0} 项）",
    .scale =
        "为什么要除？q·k 是 d_k 个乘积之和，随 d_k 的增大而增大。分数的方差：缩放前 {0:.2f}，缩放后 {1:.2f}（÷ "
        "{2}）。不缩放时 softmax "
        "平均把一行中 {3:.0f}% 的权重集中到一个键上；缩放后是 {4:.0f}%。",
    .no_mask = "没有掩码：每个词都能看到所有词。加上 --causal 可以遮住未来。",
    .causal_mask = "因果掩码：一个词只能看到自己和前面的词。被遮住的分数变成 -inf，而 exp(-inf) 就是 0。",
    .causal_row = "“{0}” 能看到键 0 … {1}：",
    .softmax = "沿键的方向做 softmax，每行之和为 1。行是查询，列是键。每个头上方的说明根据它的权重得出。",
    .edges = "第一个词没有上一个词，最后一个词没有下一个词，所以在这两处，寻找它们的头没有可关注的词。",
    .hidden_key = "× 是被遮住的键：权重正好是 0。",
    .blinded = "{0} 的下一个词现在被遮住了，softmax 会把权重分给剩下的键。",
    .one_head = "只有一个头时，权重也只有一组，四种关注方式只能折中。可与 --heads 4 对比。",
    .dropout = "此处关闭。训练时若 p = 0.1，约十分之一的权重会变成 0，其余除以 0.9，因此一行之和只在平均意义上等于 1。",
    .weighted_sum = "输出是 v 的加权和。“{0}” 在{1}中：",
    .other_keys = "其余 {0} 个键，权重共 {1:.2f}",
    .combine = "把同一个词元在各个头里的输出重新拼接起来。",
    .combine_copy = "view() 之前必需的一次复制",
    .output = "W_o 把各个头的输出混合起来。结果与输入形状相同，仍是每个词元一行，可以直接送入下一层。",
    .checks = "检查",
    .rows_sum = "每行权重之和为 1（最多差 {0:.1g}）",
    .out_equals = "out = weights · v，独立重算一遍（最多差 {0:.1g}）",
    .try_next = "接着试",
    .try_causal = "遮住未来",
    .try_wrong = "看起来对、其实错的 reshape",
    .try_heads = "为什么要多个头？",
    .try_questions = "常见问题，用数字回答",
    .try_text = "换成你自己的句子",
    .try_lang = "en",
    .try_lang_means = "English",
    .try_json = "以 JSON 格式输出全部结果",

    .habit_previous = "上一个词 {0:.0f}%",
    .habit_same = "相同的词 {0:.0f}%",
    .habit_itself = "自己 {0:.0f}%",
    .habit_first = "第一个词 {0:.0f}%",
    .habit_next = "下一个词 {0:.0f}%",
    .habit_blinded = "下一个词，被遮住",
    .habit_spread = "分散在 {0:.1f} 个键",

    .wrong_title = "一种错误的拆分",
    .wrong_intro =
        "两种写法得到的形状都是 (B, H, L, D)，都不会报错。但 view() "
        "不移动数据，只按内存顺序切分，而一个词元的数在内存里是连续存放的。",
    .right_name = "正确",
    .wrong_name = "错误",
    .wrong_memory = "q 的 {0} 个数在内存中的顺序，一行一个词元。每个数字表示对应的数分给了哪个头：",
    .wrong_holds = "每个头实际拿到的内容：一行对应一个词元的 D 个数（起–止）。",
    .wrong_rows =
        "{1} 行里有 {0} 行内容错误。一个头本应包含每个词元的一段，这里却成了句子的一段，各行只是少数几个词元的碎片。",
    .wrong_weights = "由此得到的权重。在错误的图里，行与行首标注的词已经对不上了。",
    .wrong_same = "H = {0}、L = {1} 时两种切法的切分位置相同，所以这里没有出错。只要头数和词元数都不小于 2，就会出错。",
    .breaks = "错在哪里",
    .weights_differ = "权重最多差 {0:.2f}",
    .output_differs = "输出 y 的相对误差：{0:.0f}%（|错误 − 正确| / |正确|）",
    .leak = "有因果掩码时，任何词都不能依赖后面的词。换掉最后一个词，看哪些词的输出会变：",
    .leak_right = "正确：前面 {1} 个词里变了 {0} 个",
    .leak_wrong = "错误：前面 {1} 个词里变了 {0} 个，模型看到了未来",
    .why_right = "所以：先用 view(B, L, H, D) 把每个词元切开，再用 transpose(1, 2) 交换步长，把头的维度移到前面。",

    .error_empty = "explain: 文本里没有词元；请用 --text 给出至少一个词",
    .error_long = "explain: 文本有 {0} 个词元；最多接受 {1} 个",
    .error_heads = "explain: 要求 {0} 个头；至少要有 1 个",
    .error_divide = "explain: E = {1} 不能被 {0} 个头整除：每个头会有 {1} / {0} = {2:.4g} 个数；可用的头数：{3}",
};

}  // namespace

const Words& words(Lang lang) { return lang == Lang::zh ? kChinese : kEnglish; }

}  // namespace rapt::cli
