#include "cli/explain/words.h"

namespace rapt::cli {
namespace {

constexpr Words kEnglish{
    .sentence = "if the cat ran the dog ran too",
    .title = "multi-head attention, step by step",
    .sizes = "B = 1, tokens L = {0}, numbers each E = {1}, heads H = {2}, head size D = d_k = {3}",
    .made =
        "The weights are made by hand, not trained, so that each head has one job you can see. Every number below "
        "comes "
        "from the engine.",
    .shortened = "The text has {1} tokens. All are computed; the first {0} are shown.",

    .embedding =
        "One row per token. Numbers 0–{0} say who it is, {1}–{2} where it stands: equal words share the left half.",
    .who = "who it is",
    .where = "where it stands",
    .projections =
        "A token asks with q, offers itself with k, hands over v: three {0}×{0} matrices, each applied to every "
        "token. We follow one token, “{1}”:",
    .split = "Splitting adds no parameters: W_q, W_k, W_v and W_o hold {0} numbers with 1 head or with {1}.",
    .split_in_memory = "same memory, no copy",
    .split_pieces = "The q of “{0}” is cut into one piece per head:",
    .head = "head {0}",
    .numbers_of = "numbers {0}–{1}",
    .scores =
        "Every query against every key, in each head. A row is the word that asks, a column the word that answers. The "
        "row of “{0}”:",
    .by_hand = "{0}, “{1}” · “{2}” =",
    .more = "({0} more)",
    .scale =
        "Why? q·k adds up d_k products, so it grows with d_k. Variance of the scores: {0:.2f} before, {1:.2f} after (÷ "
        "{2}). "
        "Unscaled, softmax would put {3:.0f}% of a row on one key on average; scaled, {4:.0f}%.",
    .no_mask = "No mask: every word sees every word. Try --causal to hide the future.",
    .causal_mask = "Causal: a word sees itself and the words before it. Hidden scores become -inf, and exp(-inf) is 0.",
    .causal_row = "“{0}” sees keys 0 … {1}:",
    .softmax =
        "Over the keys, row by row: each row sums to 1. Rows ask, columns answer. What each head mostly looks at is "
        "read off its weights.",
    .edges =
        "The first word has nothing before it and the last nothing after it: there such a head has no good answer.",
    .hidden_key = "× is a hidden key: its weight is exactly 0.",
    .blinded = "In {0} the next word is hidden now, so softmax shares its weight among the keys that are left.",
    .one_head = "One head has only one set of weights, so it must average all four jobs. Compare with --heads 4.",
    .dropout =
        "Off here. In training with p = 0.1, one weight in ten would become 0 and the others be divided by 0.9, so a "
        "row "
        "would sum to 1 only on average.",
    .weighted_sum = "The output is the values, mixed by the weights. “{0}” in {1}:",
    .other_keys = "{0} other keys, weight {1:.2f}",
    .combine = "The heads' pieces of a token are laid side by side again.",
    .combine_copy = "the copy that view() needs",
    .output =
        "W_o mixes what the heads found. One row per token again, as many numbers as came in: ready for the next "
        "layer.",
    .checks = "checked",
    .rows_sum = "every row of weights sums to 1 (off by at most {0:.1g})",
    .out_equals = "out = weights · v, computed again by hand (off by at most {0:.1g})",
    .try_next = "next",
    .try_causal = "hide the future",
    .try_wrong = "the reshape that looks right and is not",
    .try_heads = "why several heads?",
    .try_questions = "what people ask, answered with numbers",
    .try_text = "your own sentence",
    .try_lang = "zh",
    .try_lang_means = "中文",
    .try_json = "all of this as data",

    .habit_previous = "previous word {0:.0f}%",
    .habit_same = "same word {0:.0f}%",
    .habit_itself = "itself {0:.0f}%",
    .habit_first = "first word {0:.0f}%",
    .habit_next = "next word {0:.0f}%",
    .habit_blinded = "next word, hidden",
    .habit_spread = "over {0:.1f} keys",

    .wrong_title = "the wrong split, made on purpose",
    .wrong_intro =
        "Both give the shape (B, H, L, D), so nothing complains. But view() never moves a number: it cuts memory in "
        "the order it lies, and in memory a token's numbers lie together.",
    .right_name = "right",
    .wrong_name = "wrong",
    .wrong_memory =
        "The {0} numbers of q as they lie in memory, one token per line. Each digit is the head that a number goes to:",
    .wrong_holds = "What each head holds: one token per row, D numbers of it (first–last).",
    .wrong_rows =
        "{0} of {1} rows hold the wrong numbers. A head should be a slice of every token; here it is a slice of the "
        "sentence, and its rows are pieces of the same few tokens.",
    .wrong_weights = "The weights that come of it. In the wrong maps a row is not the word it is labelled with.",
    .wrong_same =
        "With H = {0} and L = {1} the two cut at the same places, so nothing breaks here. It does as soon as there are "
        "two heads and two tokens.",
    .breaks = "what breaks",
    .weights_differ = "a weight is off by up to {0:.2f}",
    .output_differs = "the output y is off by {0:.0f}% (|wrong − right| / |right|)",
    .leak = "With a causal mask no word may depend on a later one. Change the last word: whose output moves?",
    .leak_right = "right: {0} of the {1} words before it",
    .leak_wrong = "wrong: {0} of the {1} words before it, so the model sees the future",
    .why_right =
        "So: view(B, L, H, D) first, which cuts each token, then transpose(1, 2), which brings the heads forward by "
        "swapping strides.",

    .error_empty = "explain: the text has no tokens; give at least one word with --text",
    .error_long = "explain: the text has {0} tokens; at most {1} are taken",
    .error_heads = "explain: {0} heads asked for; there must be at least 1",
    .error_divide =
        "explain: {0} heads do not divide E = {1}: each head would have {1} / {0} = {2:.4g} numbers; numbers of heads "
        "that work: {3}",
};

constexpr Words kChinese{
    .sentence = "我爱你，你爱我",
    .title = "多头注意力，一步一步来",
    .sizes = "B = 1，词元 L = {0} 个，每个 E = {1} 个数，头 H = {2} 个，每头 D = d_k = {3} 个数",
    .made = "权重矩阵是手工设计的，没有训练过：这样每个头只做一件看得见的事。下面所有数字都由引擎算出。",
    .shortened = "文本共有 {1} 个词元，全部参与计算，只显示前 {0} 个。",

    .embedding = "每个词元一行。第 0–{0} 个数表示它是谁，第 {1}–{2} 个数表示它在哪里：相同的词左半边相同。",
    .who = "它是谁",
    .where = "它在哪里",
    .projections =
        "词元用 q 提问，用 k 应答，用 v 交出内容：三个 {0}×{0} 的矩阵，对每个词元都一样。我们跟着一个词元走：“{1}”",
    .split = "拆分不增加参数：无论 1 个头还是 {1} 个头，W_q、W_k、W_v、W_o 一共都是 {0} 个数。",
    .split_in_memory = "同一块内存，不复制",
    .split_pieces = "“{0}” 的 q 被切成几段，每个头一段：",
    .head = "头 {0}",
    .numbers_of = "第 {0}–{1} 个数",
    .scores = "每个头里，每个查询都和每个键做点积。行是提问的词（查询），列是应答的词（键）。“{0}” 这一行：",
    .by_hand = "{0}，“{1}” · “{2}” =",
    .more = "（还有 {0} 项）",
    .scale =
        "为什么要除？q·k 是 d_k 个乘积之和，d_k 越大它越大。分数的方差：缩放前 {0:.2f}，缩放后 {1:.2f}（÷ "
        "{2}）。不缩放时 softmax "
        "平均把一行的 {3:.0f}% 压在一个键上；缩放后是 {4:.0f}%。",
    .no_mask = "没有掩码：每个词都能看到所有词。加上 --causal 可以遮住未来。",
    .causal_mask = "因果掩码：一个词只能看到自己和前面的词。被遮住的分数变成 -inf，而 exp(-inf) 就是 0。",
    .causal_row = "“{0}” 能看到键 0 … {1}：",
    .softmax = "沿着键的方向，一行一行做：每行之和为 1。行提问，列应答。每个头主要在看什么，是从权重里读出来的。",
    .edges = "第一个词前面没有词，最后一个词后面没有词：在那里，这样的头没有好答案可选。",
    .hidden_key = "× 是被遮住的键：权重正好是 0。",
    .blinded = "{0} 想看下一个词，但它被遮住了：softmax 只好把权重分给剩下的键。",
    .one_head = "只有一个头就只有一组权重，四件事只能取平均。对比 --heads 4。",
    .dropout = "这里关闭。训练时若 p = 0.1，十分之一的权重变成 0，其余除以 0.9，所以一行之和只在平均意义上等于 1。",
    .weighted_sum = "输出就是按权重混合的 v。“{0}” 在 {1} 里：",
    .other_keys = "其余 {0} 个键，权重共 {1:.2f}",
    .combine = "把同一个词元在各个头里的几段重新并排放好。",
    .combine_copy = "view() 需要的那次复制",
    .output = "W_o 把各个头找到的东西混合起来。又是每个词元一行，进来多少个数，出去还是多少个数：可以交给下一层。",
    .checks = "检查",
    .rows_sum = "每行权重之和为 1（最多差 {0:.1g}）",
    .out_equals = "out = weights · v，另算一遍（最多差 {0:.1g}）",
    .try_next = "接着试",
    .try_causal = "遮住未来",
    .try_wrong = "看起来对、其实错的 reshape",
    .try_heads = "为什么要多个头？",
    .try_questions = "人们常问的问题，用数字回答",
    .try_text = "换成你自己的句子",
    .try_lang = "en",
    .try_lang_means = "English",
    .try_json = "把这一切当作数据输出",

    .habit_previous = "上一个词 {0:.0f}%",
    .habit_same = "相同的词 {0:.0f}%",
    .habit_itself = "自己 {0:.0f}%",
    .habit_first = "第一个词 {0:.0f}%",
    .habit_next = "下一个词 {0:.0f}%",
    .habit_blinded = "下一个词，被遮住",
    .habit_spread = "分散在 {0:.1f} 个键",

    .wrong_title = "故意拆错给你看",
    .wrong_intro =
        "两种写法得到的形状都是 (B, H, L, D)，谁也不会报错。但 view() 从不移动数据：它按内存顺序切，而在内存里，"
        "一个词元的数是挨在一起的。",
    .right_name = "正确",
    .wrong_name = "错误",
    .wrong_memory = "q 的 {0} 个数在内存里的样子，一行一个词元。每个数字表示它分给了哪个头：",
    .wrong_holds = "每个头里装了什么：一行一个词元，取它的 D 个数（从几到几）。",
    .wrong_rows =
        "{1} 行里有 {0} 行装错了。一个头本应是每个词元的一段；这里却成了句子的一段，里面的行都是那几个词元的碎片。",
    .wrong_weights = "由此得到的权重。在错误的图里，一行已经不是它标的那个词。",
    .wrong_same = "H = {0}、L = {1} 时两种切法的切口相同，所以这里没有坏。只要有两个头和两个词元，就会坏。",
    .breaks = "坏在哪里",
    .weights_differ = "权重最多差 {0:.2f}",
    .output_differs = "输出 y 差 {0:.0f}%（|错误 − 正确| / |正确|）",
    .leak = "有因果掩码时，任何词都不能依赖后面的词。换掉最后一个词，看谁的输出变了？",
    .leak_right = "正确：前面 {1} 个词里变了 {0} 个",
    .leak_wrong = "错误：前面 {1} 个词里变了 {0} 个，模型看到了未来",
    .why_right = "所以：先 view(B, L, H, D)，把每个词元切开；再 transpose(1, 2)，交换步长，把头放到前面。",

    .error_empty = "explain: 文本里没有词元；请用 --text 给出至少一个词",
    .error_long = "explain: 文本有 {0} 个词元；最多接受 {1} 个",
    .error_heads = "explain: 要求 {0} 个头；至少要有 1 个",
    .error_divide = "explain: E = {1} 不能被 {0} 个头整除：每个头会有 {1} / {0} = {2:.4g} 个数；可用的头数：{3}",
};

}  // namespace

const Words& words(Lang lang) { return lang == Lang::zh ? kChinese : kEnglish; }

}  // namespace rapt::cli
