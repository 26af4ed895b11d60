// An example layer for users without a file: eight hand-made heads, each with one behaviour that is known from trained
// models, and an input of 512 words. (Runs in a worker.)

const LENGTH = 512, SIZE = 32, HEADS = 8;
const WAVES = 16;                    // a token's position is encoded as cosine and sine of this many frequencies
const WORD = 2 * WAVES, PREVIOUS = WORD + 32, ONE = PREVIOUS + 32, FIRST = ONE + 1, STOP = ONE + 2;
const EMBED = 128;

const SENTENCES = {
  en: {
    who: 'cat dog bird child teacher river', how: 'old small quiet quick', does: 'sees hears follows finds',
    make: (who, how, does, whom) => ['the', how, who, does, 'the', whom, '.'],
  },
  zh: {
    who: '猫 狗 鸟 孩子 老师 河', how: '老 小 安静 快', does: '看见 听见 跟着 找到',
    make: (who, how, does, whom) => [how, '的', who, does, '那', whom, '。'],
  },
};

// A seeded generator: the same numbers every time.
function dice(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

function words(lang) {
  const {who, how, does, make} = SENTENCES[lang];
  const roll = dice(7);
  const pick = (list) => {
    const all = list.split(' ');
    return all[Math.floor(roll() * all.length)];
  };
  const text = [];
  while (text.length < LENGTH) text.push(...make(pick(who), pick(how), pick(does), pick(who)));
  return text.slice(0, LENGTH);
}

const frequency = (wave) => 2.6 * 0.72 ** wave;

function inputOf(text) {
  const roll = dice(11);
  const vectors = new Map();
  const vectorOf = (word) => {
    if (!vectors.has(word)) {
      // Random signs, drawn for each word: word vectors are nearly orthogonal.
      vectors.set(word, Float32Array.from({length: 32}, () => (roll() < 0.5 ? -1 : 1)));
    }
    return vectors.get(word);
  };
  const x = new Float32Array(LENGTH * EMBED);
  text.forEach((word, place) => {
    const row = x.subarray(place * EMBED, (place + 1) * EMBED);
    for (let wave = 0; wave < WAVES; ++wave) {
      row[2 * wave] = Math.cos(frequency(wave) * place);
      row[2 * wave + 1] = Math.sin(frequency(wave) * place);
    }
    row.set(vectorOf(word), WORD);
    if (place > 0) row.set(vectorOf(text[place - 1]), PREVIOUS);
    row[ONE] = 1;
    row[FIRST] = place === 0 ? 1 : 0;
    row[STOP] = word === '.' || word === '。' ? 1 : 0;
  });
  return x;
}

// Rows of W_q and W_k: which parts of the input a head compares.
function weights() {
  const q = new Float32Array(HEADS * SIZE * EMBED), k = new Float32Array(HEADS * SIZE * EMBED);
  const set = (matrix, head, row, column, value) => {
    matrix[(head * SIZE + row) * EMBED + column] = value;
  };
  // Attends `back` tokens back: rotates the position encoding by that much.
  const place = (head, back, strength) => {
    for (let wave = 0; wave < WAVES; ++wave) {
      const angle = frequency(wave) * back, [cos, sin] = [Math.cos(angle) * strength, Math.sin(angle) * strength];
      set(q, head, 2 * wave, 2 * wave, cos);
      set(q, head, 2 * wave, 2 * wave + 1, sin);
      set(q, head, 2 * wave + 1, 2 * wave, -sin);
      set(q, head, 2 * wave + 1, 2 * wave + 1, cos);
      for (const n of [0, 1]) set(k, head, 2 * wave + n, 2 * wave + n, 1);
    }
  };
  // Matches its own word against another part of the keys.
  const word = (head, part, strength) => {
    for (let n = 0; n < 32; ++n) {
      set(q, head, n, WORD + n, strength);
      set(k, head, n, part + n, 1);
    }
  };
  const flag = (head, column, strength) => {
    set(q, head, 0, ONE, strength);
    set(k, head, 0, column, 1);
  };
  place(0, 1, 8);             // the previous token
  place(1, 7, 8);             // the previous sentence
  place(2, 0, 1.2);           // its neighbours
  word(3, WORD, 1.6);         // the same word
  word(4, PREVIOUS, 1.6);     // what came after the same word: induction
  flag(5, FIRST, 60);         // the first token
  flag(6, STOP, 40);          // full stops
  // head 7: uniform
  return {q, k};
}

function safetensors(tensors, metadata) {
  const header = {__metadata__: metadata};
  let at = 0;
  for (const [name, [numbers, shape]] of Object.entries(tensors)) {
    header[name] = {dtype: 'F32', shape, data_offsets: [at, at + numbers.byteLength]};
    at += numbers.byteLength;
  }
  const text = new TextEncoder().encode(JSON.stringify(header));
  const size = new BigUint64Array([BigInt(text.length)]);
  return new Blob([size, text, ...Object.values(tensors).map(([numbers]) => numbers)]);
}

export function sampleFile(lang) {
  const {q, k} = weights();
  const width = HEADS * SIZE, text = words(lang);
  const blob = safetensors({
    'attention.W_q.weight': [q, [width, EMBED]],
    'attention.W_k.weight': [k, [width, EMBED]],
    'attention.W_v.weight': [new Float32Array(width * EMBED), [width, EMBED]],
    'attention.W_o.weight': [new Float32Array(EMBED * width), [EMBED, width]],
    'attention.mask': [Float32Array.from({length: LENGTH * LENGTH}, (_, n) => (n % LENGTH <= n / LENGTH ? 1 : 0)),
      [LENGTH, LENGTH]],
    x: [inputOf(text), [LENGTH, EMBED]],
  }, {'rapt.heads': String(HEADS)});
  return {name: 'sample.safetensors', blob, labels: text};
}
