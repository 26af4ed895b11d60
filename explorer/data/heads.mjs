// Computes one head at a time (in a worker). A subject describes what is shown, as plain data:
//   {kind: 'weights', array, batch, heads, queries, keys}
//   {kind: 'qk', q, k, batch, heads, kvHeads, queries, keys, size, causal}
//   {kind: 'layer', layer, arrays, x, batch, heads, kvHeads, queries, keys, size, causal, rotary}
// Every kind offers `map`, in which each number is the maximum over the weights in its cell, and `rows`, exact weights.
import {numbersOf, partOf} from './source.mjs';

const KEPT = 4;      // heads whose q and k stay in the engine's memory
const BAND = 4 << 20;  // weights computed between two checks for a newer request

const pause = () => new Promise((resolve) => setTimeout(resolve, 0));

export class Heads {
  constructor(rapt, subject) {
    this.rapt = rapt;
    this.subject = subject;
    this.kept = new Map();
  }
  free() {
    this.freed = true;  // arrays still being read are freed when they arrive
    for (const {q, k} of this.kept.values()) q.free(), k.free();
    this.kept.clear();
    this.x?.free();
    this.x = undefined;
  }

  async input() {
    const {x, batch, queries} = this.subject;
    const size = x.shape.at(-1);
    this.reading ??= partOf(this.rapt, x, batch * queries * size, [queries, size]);
    const read = await this.reading;
    if (this.freed) {
      read.free();
      throw new Error('stopped');
    }
    this.x = read;
    return read;
  }

  // Applies one head's rows of the q or k projection to the input.
  async projection(which, head) {
    const {layer, arrays, size, queries, rotary} = this.subject;
    const find = (role) => arrays.find((array) => array.name === layer.tensors[role]);
    const [packed, packedBias] = [find('weight of q, k and v'), find('bias of q, k and v')];
    const weight = packed ?? find(`weight of ${which}`), bias = packedBias ?? find(`bias of ${which}`);
    // The first row of the head; in a packed projection, k starts after q.
    const alone = head * size, after = alone + (which === 'k' ? layer.queryWidth : 0);
    const begin = packed ? after : alone;
    const inputs = layer.transposed ? weight.shape[0] : weight.shape[1];
    const x = await this.input();
    const rows = layer.transposed
      ? await partOf(this.rapt, weight, 0, weight.shape)
      : await partOf(this.rapt, weight, begin * inputs, [size, inputs]);
    const own = bias && await partOf(this.rapt, bias, packedBias ? after : alone, [size]);
    try {
      return this.rapt.scope(() => {
        const matrix = layer.transposed
          ? rows.transpose(0, 1).slice(0, begin, begin + size).reshape([size, inputs]) : rows;
        const made = this.rapt.linear(x, matrix, own).reshape([1, 1, queries, size]);
        return rotary ? this.rapt.rotary(made, rotary) : made;
      });
    } finally {
      rows.free();
      own?.free();
    }
  }

  async both(head) {
    const {kind, q, k, batch, heads, kvHeads, queries, keys, size} = this.subject;
    const kv = Math.floor(head / (heads / kvHeads));
    if (kind === 'layer') return {q: await this.projection('q', head), k: await this.projection('k', kv)};
    return {
      q: await partOf(this.rapt, q, (batch * heads + head) * queries * size, [1, 1, queries, size]),
      k: await partOf(this.rapt, k, (batch * kvHeads + kv) * keys * size, [1, 1, keys, size]),
    };
  }

  // q and k of a head; the most recent heads are cached.
  async queriesAndKeys(head) {
    let pair = this.kept.get(head);
    if (!pair) {
      pair = await this.both(head);
      if (this.freed || this.kept.has(head)) {  // another request finished first
        pair.q.free(), pair.k.free();
        if (this.freed) throw new Error('stopped');
        return this.kept.get(head);
      }
      if (this.kept.size >= KEPT) {
        const [oldest, old] = this.kept.entries().next().value;
        this.kept.delete(oldest);
        old.q.free(), old.k.free();
      }
      this.kept.set(head, pair);
    }
    return pair;
  }

  options() {
    return this.subject.causal ? {causal: true, alignment: 'bottomRight'} : {};
  }

  // The weights of a range of queries, reduced to cells.
  async band(head, queries, keys, cell) {
    if (this.subject.kind !== 'weights') {
      const {q, k} = await this.queriesAndKeys(head);
      const map = this.rapt.weightsMap(q, k, {...this.options(), queries, keys, cell});
      const values = map.values();
      map.free();
      return values;
    }
    const {array, batch, heads, queries: all, keys: width} = this.subject;
    const first = ((batch * heads + head) * all + queries[0]) * width;
    const numbers = await numbersOf(this.rapt, array, first, (queries[1] - queries[0]) * width);
    const columns = Math.ceil((keys[1] - keys[0]) / cell);
    const most = new Float32Array(Math.ceil((queries[1] - queries[0]) / cell) * columns);
    for (let i = 0; i < queries[1] - queries[0]; ++i) {
      const row = Math.floor(i / cell) * columns;
      for (let j = keys[0]; j < keys[1]; ++j) {
        const place = row + Math.floor((j - keys[0]) / cell);
        const value = numbers[i * width + j];
        if (value > most[place] || Number.isNaN(value)) most[place] = value;
      }
    }
    return most;
  }

  /** {values, rows, columns} of a part of a head's weights; undefined if `stale()` became true in the meantime. */
  async map({head, queries, keys, cell}, stale = () => false) {
    const columns = Math.ceil((keys[1] - keys[0]) / cell);
    const rows = Math.ceil((queries[1] - queries[0]) / cell);
    const values = new Float32Array(rows * columns);
    const step = cell * Math.max(1, Math.floor(BAND / this.subject.keys / cell));
    for (let first = queries[0]; first < queries[1]; first += step) {
      if (first > queries[0]) await pause();
      if (stale()) return undefined;
      const part = await this.band(head, [first, Math.min(first + step, queries[1])], keys, cell);
      values.set(part, (first - queries[0]) / cell * columns);
    }
    return {values, rows, columns, head, queries, keys, cell};
  }

  /** The exact weights of one query. */
  row(head, query) {
    return this.band(head, [query, query + 1], [0, this.subject.keys], 1);
  }
}
