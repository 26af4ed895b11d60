// The steps of Walk: what each shows, and for any number, the row and column that it was computed from.
//
// A step is {key, shows(walk, choice) → [panel]}. A panel has the arguments of matrix(), and `name`, the name of its
// tensor; `tensor` {shape, strides} if it is one of the walk's; and `made(i, j)` → {terms: [[a, b], …], marks, ends?}:
// `terms` are the factors of a sum of products, `marks` says what to mark in other panels.
import {written} from '../matrix.mjs';

const WEIGHT_OF = {q: 'W_q', k: 'W_k', v: 'W_v'};

// A step of the walk by name, such as ('split_heads', 'q').
function found(walk, step, name) {
  return walk.steps.find((each) => each.step === step && (!name || each.name === name));
}

const numbered = (count, first = 0) => Array.from({length: count}, (_, n) => String(first + n));

function rowsOf(walk) {
  return walk.tokens;
}

// (1, L, E): one row per token.
function rowPanel(walk, tensor, name, extra = {}) {
  return {name, tensor, rows: rowsOf(walk), columns: numbered(tensor.shape[2]), values: tensor.values[0],
    paint: 'number', decimals: 1, every: walk.sizes.D, ...extra};
}

// (1, H, L, D): the slice of one head.
function headPanel(walk, tensor, name, head, extra = {}) {
  return {name: `${name}[${head}]`, tensor, rows: rowsOf(walk), columns: numbered(tensor.shape[3]),
    values: tensor.values[0][head], paint: 'number', decimals: 2, ...extra};
}

// (1, H, L, L): one head.
function squarePanel(walk, tensor, name, head, extra = {}) {
  return {name: `${name}[${head}]`, tensor, rows: rowsOf(walk), columns: rowsOf(walk), values: tensor.values[0][head],
    paint: 'number', decimals: 2, ...extra};
}

// y = x · Wᵀ: element r of token i is row i of x times row r of W.
function product(walk, from, fromName, weightName, to, toName) {
  const weight = walk.parameters[weightName];
  const into = rowPanel(walk, to, toName, {
    made: (i, r) => ({
      terms: from.values[0][i].map((x, c) => [x, weight.values[r][c]]),
      marks: {[fromName]: {row: i}, [weightName]: {row: r}},
    }),
  });
  const size = weight.shape[0];
  // The matrix last: it is large, and input and output should be visible together.
  return [rowPanel(walk, from, fromName), into, {
    name: weightName, tensor: weight, rows: numbered(size), columns: numbered(size), values: weight.values,
    paint: 'number', decimals: 1, dense: true,
  }];
}

export const STEPS = [
  {
    key: 'embedding',
    shows: (walk) => [rowPanel(walk, found(walk, 'embedding'), 'x', {every: 12})],
  },
  {
    key: 'projections',
    parts: ['q', 'k', 'v'],
    shows: (walk, {part}) => product(walk, found(walk, 'embedding'), 'x', WEIGHT_OF[part],
      found(walk, 'projections', part), part),
  },
  {
    key: 'split',
    parts: ['q', 'k', 'v'],
    shows: (walk, {part}) => {
      const whole = found(walk, 'projections', part);
      const pieces = found(walk, 'split_heads', part);
      const {D, H} = walk.sizes;
      const groups = whole.values[0].map((row) => row.map((_, n) => Math.floor(n / D)));
      return [rowPanel(walk, whole, part, {paint: 'group', groups, legendOfHeads: true}),
        ...numbered(H).map(Number).map((head) => headPanel(walk, pieces, part, head, {
          paint: 'group', groups: pieces.values[0][head].map((row) => row.map(() => head)),
          made: (i, d) => ({same: [part, i, head * D + d], marks: {[part]: {cell: [i, head * D + d]}}}),
        }))];
    },
  },
  {
    key: 'scores',
    ofHead: true,
    shows: (walk, {head}) => {
      const q = found(walk, 'split_heads', 'q'), k = found(walk, 'split_heads', 'k');
      return [headPanel(walk, q, 'q', head), headPanel(walk, k, 'k', head),
        squarePanel(walk, found(walk, 'scores'), 'scores', head, {
          made: (i, j) => ({
            terms: q.values[0][head][i].map((x, d) => [x, k.values[0][head][j][d]]),
            marks: {[`q[${head}]`]: {row: i}, [`k[${head}]`]: {row: j}},
          }),
        })];
    },
  },
  {
    key: 'scale',
    ofHead: true,
    shows: (walk, {head}) => {
      const before = found(walk, 'scores');
      return [squarePanel(walk, before, 'scores', head),
        squarePanel(walk, found(walk, 'scale'), 'scaled', head, {
          made: (i, j) => ({
            terms: [[before.values[0][head][i][j], walk.scale.factor]],
            marks: {[`scores[${head}]`]: {cell: [i, j]}},
          }),
        })];
    },
  },
  {
    key: 'mask',
    ofHead: true,
    shows: (walk, {head}) => {
      const before = found(walk, 'scale');
      return [squarePanel(walk, before, 'scaled', head),
        squarePanel(walk, found(walk, 'apply_mask'), 'masked', head, {
          made: (i, j) => ({same: [`scaled[${head}]`, i, j], hidden: walk.causal && j > i,
            marks: {[`scaled[${head}]`]: {cell: [i, j]}}}),
        })];
    },
  },
  {
    key: 'softmax',
    ofHead: true,
    shows: (walk, {head}) => {
      const scores = found(walk, 'apply_mask');
      return [squarePanel(walk, scores, 'masked', head),
        squarePanel(walk, found(walk, 'softmax'), 'weights', head, {
          paint: 'weight',
          made: (i, j) => {
            const row = scores.values[0][head][i];
            const powers = row.map((score) => (score === null ? 0 : Math.exp(score)));
            return {fraction: [powers[j], powers.reduce((a, b) => a + b, 0)], score: row[j],
              marks: {[`masked[${head}]`]: {row: i}}};
          },
        })];
    },
    maps: true,
  },
  {
    key: 'sum',
    ofHead: true,
    shows: (walk, {head}) => {
      const weights = found(walk, 'softmax'), v = found(walk, 'split_heads', 'v');
      return [squarePanel(walk, weights, 'weights', head, {paint: 'weight'}), headPanel(walk, v, 'v', head),
        headPanel(walk, found(walk, 'weighted_sum'), 'out', head, {
          made: (i, d) => ({
            terms: weights.values[0][head][i].map((p, j) => [p, v.values[0][head][j][d]]),
            marks: {[`weights[${head}]`]: {row: i}, [`v[${head}]`]: {column: d}},
          }),
        })];
    },
  },
  {
    key: 'combine',
    shows: (walk) => {
      const pieces = found(walk, 'weighted_sum');
      const {D, H} = walk.sizes;
      return [...numbered(H).map(Number).map((head) => headPanel(walk, pieces, 'out', head)),
        rowPanel(walk, found(walk, 'combine_heads'), 'combined', {
          made: (i, n) => ({same: [`out[${Math.floor(n / D)}]`, i, n % D],
            marks: {[`out[${Math.floor(n / D)}]`]: {cell: [i, n % D]}}}),
        })];
    },
  },
  {
    key: 'output',
    shows: (walk) => product(walk, found(walk, 'combine_heads'), 'combined', 'W_o', found(walk, 'W_o'), 'y'),
  },
  {key: 'vocabulary', shows: () => []},
];

const MOST_TERMS = 6;

/** The sum that made a number, written out: "0.31 × 1.20 + … = 2.14". `more` is the number of omitted terms. */
export function writtenSum({terms, fraction, score, same, hidden}, value, more) {
  if (hidden) return '−∞';
  if (same) return `${same[0]}[${same[1]}, ${same[2]}] = ${written(value)}`;
  if (fraction) {
    return `exp(${written(score)}) ÷ Σ exp = ${written(fraction[0])} ÷ ${written(fraction[1])} = ${written(value)}`;
  }
  const shown = terms.slice(0, MOST_TERMS).map(([a, b]) => `${written(a)} × ${written(b)}`);
  if (terms.length > MOST_TERMS) shown.push(more(terms.length - MOST_TERMS));
  return `${shown.join(' + ')} = ${written(value)}`;
}
