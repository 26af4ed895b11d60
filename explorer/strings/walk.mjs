// Text of Walk.
export const walk = {
  'walk.sentence': {en: 'if the cat ran the dog ran too', zh: '我爱你，你爱我'},
  'walk.title': {en: 'Follow a sentence through attention', zh: '跟着一句话，走完注意力的每一步'},
  'walk.lead': {
    en: 'Type a sentence. Each step below shows the numbers that rapt computes for it in your browser. The matrices are set by hand, not trained, so that each head has one visible job.',
    zh: '输入一句话。下面每一步的数字都由 rapt 在你的浏览器里实时算出。矩阵是手工设计的，未经训练，每个头各司其职，便于观察。',
  },
  'walk.sentenceLabel': {en: 'Sentence', zh: '句子'},
  'walk.heads': {en: 'Heads', zh: '头数'},
  'walk.causal': {en: 'Mask the future (causal mask)', zh: '遮住未来（因果掩码）'},
  'walk.empty': {en: 'Enter at least one word.', zh: '请至少输入一个词。'},
  'walk.long': {en: 'The sentence has {0} tokens; the maximum is {1}.', zh: '句子有 {0} 个词元，最多支持 {1} 个。'},
  'walk.steps': {en: 'Steps', zh: '步骤'},
  'walk.back': {en: '← Back', zh: '← 上一步'},
  'walk.forward': {en: 'Next step →', zh: '下一步 →'},
  'walk.which': {en: 'Vector', zh: '选择向量'},
  'walk.whichHead': {en: 'Head', zh: '选择头'},
  'walk.head': {en: 'head {0}', zh: '头 {0}'},
  'walk.hover': {
    en: 'Point at a number, or select it with Tab and the arrow keys, to mark its inputs and see the calculation here.',
    zh: '把鼠标移到一个数上，或用 Tab 和方向键选中它，就会标出参与计算的数，并在这里显示算式。',
  },
  'walk.more': {en: '({0} more)', zh: '（还有 {0} 项）'},
  'walk.allHeads': {en: 'All heads', zh: '所有头'},

  'walk.embedding': {en: 'Words become vectors', zh: '词变成向量'},
  'walk.embedding.text': {
    en: 'Each of the {0} tokens is a row of {1} numbers. The first 12 encode the word, the last 12 its position: equal words have the same first half.',
    zh: '{0} 个词元，每个一行，共 {1} 个数。前 12 个数编码词本身，后 12 个数编码位置：词相同，前半部分就相同。',
  },
  'walk.embedding.text.one': {
    en: 'The only token is a row of {1} numbers. The first 12 encode the word, the last 12 its position.',
    zh: '只有一个词元，它是一行，共 {1} 个数。前 12 个数编码词本身，后 12 个数编码位置。',
  },
  'walk.projections': {en: 'Query, key, value', zh: '查询、键、值'},
  'walk.projections.text': {
    en: 'Three matrices turn each row into three vectors: the query `q` (what the word looks for), the key `k` (what it matches) and the value `v` (what it passes on). Each number is the dot product of a row of `x` with a row of the {0}×{0} matrix.',
    zh: '三个矩阵把每一行变成三个向量：查询 `q`（要找什么）、键 `k`（能匹配什么）、值 `v`（传递什么内容）。结果里的每个数，都是 `x` 的一行与 {0}×{0} 矩阵的一行的点积。',
  },
  'walk.split': {en: 'Split into heads', zh: '拆分成多个头'},
  'walk.split.text': {
    en: 'The {1} numbers of each word are split into {0} parts of {2}, one per head. Nothing is copied, only the strides change, and no parameters are added: the four matrices have {3} numbers for any number of heads.',
    zh: '每个词的 {1} 个数被切成 {0} 段，每段 {2} 个，一个头一段。不复制数据，只改变步长；也不增加参数：无论有几个头，四个矩阵一共都是 {3} 个数。',
  },
  'walk.split.text.one': {
    en: 'With one head, all {1} numbers of each word belong to it. The four matrices have {3} numbers for any number of heads: more heads add no parameters.',
    zh: '只有一个头时，每个词的 {1} 个数都属于它。无论有几个头，四个矩阵一共都是 {3} 个数：增加头不会增加参数。',
  },
  'walk.scores': {en: 'Compare every word with every word', zh: '词与词两两比较'},
  'walk.scores.text': {
    en: 'A score is the dot product of a query and a key: large when one word matches what the other is looking for. Rows are queries, columns are keys.',
    zh: '分数就是查询与键的点积：一个词要找的与另一个词越匹配，分数就越大。行是查询，列是键。',
  },
  'walk.scale': {en: 'Divide by √d', zh: '除以 √d'},
  'walk.scale.text': {
    en: 'A score is a sum of d = {0} products, so it grows with d. Divided by √{0}, its variance falls from {1} to {2}. Without that, softmax would put {3} % of a row on one word on average; with it, {4} %.',
    zh: '分数是 d = {0} 个乘积之和，d 越大，分数也越大。除以 √{0} 之后，方差从 {1} 降到 {2}。不缩放时，softmax 平均会把一行中 {3}% 的权重集中到一个词上；缩放后是 {4}%。',
  },
  'walk.mask': {en: 'Apply the mask', zh: '应用掩码'},
  'walk.mask.text': {
    en: 'There is no mask now: every word sees every word. Tick “Mask the future” above to see what a decoder does.',
    zh: '现在没有掩码：每个词都能看到所有词。勾选上面的“遮住未来”，看看解码器是怎么做的。',
  },
  'walk.mask.causal': {
    en: 'A word may see itself and the words before it. Scores of later words become −∞, and the exponential of −∞ is exactly 0.',
    zh: '一个词只能看到自己和前面的词。后面各词的分数变成 −∞，而 exp(−∞) 正好是 0。',
  },
  'walk.softmax': {en: 'Scores become weights', zh: '分数变成权重'},
  'walk.softmax.text': {
    en: 'Softmax, row by row: each score is exponentiated and divided by the sum of its row. Every row then sums to 1 and shows how a word distributes its attention.',
    zh: 'softmax 逐行计算：每个分数取指数，再除以这一行的总和。所以每行之和为 1，表示一个词怎样分配注意力。',
  },
  'walk.sum': {en: 'Weighted sum of the values', zh: '对值加权求和'},
  'walk.sum.text': {
    en: 'The output of a head is the sum of the values of all words, each multiplied by its weight.',
    zh: '一个头的输出，就是所有词的值分别乘以权重后相加。',
  },
  'walk.combine': {en: 'Concatenate the heads', zh: '拼接各个头'},
  'walk.combine.text': {
    en: 'The {0} parts of each word, {2} numbers each, are joined into one row of {1} again. This step copies memory: it is the `contiguous()` in PyTorch code.',
    zh: '每个词的 {0} 段，每段 {2} 个数，重新拼成 {1} 个数的一行。这一步会复制内存，也就是 PyTorch 代码里的 `contiguous()`。',
  },
  'walk.combine.text.one': {
    en: 'With one head, there is nothing to join: its {1} numbers are the row of each word.',
    zh: '只有一个头时，不需要拼接：它的 {1} 个数就是每个词的那一行。',
  },
  'walk.output': {en: 'Output projection', zh: '输出投影'},
  'walk.output.text': {
    en: '`W_o` ({0}×{0}) mixes the outputs of the heads. The output has the shape of the input, so layers can be stacked.',
    zh: '`W_o`（{0}×{0}）把各个头的输出混合起来。输出与输入形状相同，所以层可以一层层堆叠。',
  },
  'walk.vocabulary': {en: 'Predict the next letter', zh: '预测下一个字母'},
  'walk.vocabulary.text': {
    en: 'What is such an output used for? The hand-made model ends here. The next one was trained with rapt: two attention layers with one head each, which learned to continue a pattern they have seen before. The last row of its output is multiplied by one more matrix, which has a row for each letter of the vocabulary.',
    zh: '这样的输出有什么用？手工设计的模型到此为止。下面这个模型是用 rapt 训练的：两层注意力，每层一个头，学会了续写前面出现过的内容。它输出的最后一行再乘以一个矩阵，词表里的每个字母对应矩阵的一行。',
  },
  'walk.vocabulary.reads': {en: 'Its input, the letters of your sentence:', zh: '它的输入是你句子里的字母：'},
  'walk.vocabulary.sample': {
    en: 'It supports only Latin letters and digits, and your sentence has too few of them. It gets these instead:',
    zh: '它只支持拉丁字母和数字，而你的句子里太少，所以改用这段输入：',
  },
  'walk.vocabulary.before': {
    en: 'The last letter is {0}. It appeared before, followed by {1}.',
    zh: '最后一个字母是 {0}。它以前出现过，当时后面跟着 {1}。',
  },
  'walk.vocabulary.never': {
    en: 'The last letter is {0}, which has not appeared before, so the model has to guess.',
    zh: '最后一个字母是 {0}，前面没有出现过，模型只能猜。',
  },
  'walk.vocabulary.caption': {
    en: 'The next letter: {0} numbers times a matrix of {1} rows, then softmax',
    zh: '下一个字母：{0} 个数乘以 {1} 行的矩阵，再做 softmax',
  },
  'walk.vocabulary.letter': {en: 'letter', zh: '字母'},
  'walk.vocabulary.logit': {en: 'logit', zh: 'logit'},
  'walk.vocabulary.chance': {en: 'probability', zh: '概率'},
  'walk.vocabulary.bar': {en: 'as a bar', zh: '图示'},
  'walk.vocabulary.layer0': {en: 'layer 1: each letter attends to the one before it', zh: '第 1 层：每个字母看它前面的那个'},
  'walk.vocabulary.layer1': {
    en: 'layer 2: each letter attends to what followed it last time',
    zh: '第 2 层：每个字母看上次跟在它后面的那个',
  },

  'walk.readWeight': {en: '“{0}” gives “{2}” {1} % of its attention', zh: '“{0}” 把 {1}% 的注意力分配给 “{2}”'},
  'walk.readScore': {en: 'query “{0}”, key “{1}”: score {2}', zh: '查询“{0}”，键“{1}”：分数 {2}'},
  'walk.readHidden': {en: '“{1}” is masked for “{0}”', zh: '“{1}” 对 “{0}” 不可见'},
  'walk.readNumber': {en: '{0} of “{1}”, number {2}: {3}', zh: '“{1}” 的 {0}，第 {2} 个数：{3}'},
  'walk.readGroup': {en: '{0} of “{1}”, number {2}: {3}', zh: '“{1}” 的 {0}，第 {2} 个数：{3}'},
  'walk.habit.previous': {en: 'previous word {0} %', zh: '上一个词 {0}%'},
  'walk.habit.same': {en: 'same word {0} %', zh: '相同的词 {0}%'},
  'walk.habit.itself': {en: 'itself {0} %', zh: '自己 {0}%'},
  'walk.habit.first': {en: 'first word {0} %', zh: '第一个词 {0}%'},
  'walk.habit.next': {en: 'next word {0} %', zh: '下一个词 {0}%'},
  'walk.habit.blinded': {en: 'next word, masked', zh: '下一个词，被遮住'},
  'walk.habit.spread': {en: 'spread over {0} words', zh: '分散在 {0} 个词上'},
};
