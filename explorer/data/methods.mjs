// Worker methods of Your data. One worker serves the large map, another the thumbnails; both have the same subject.
import {csvOf} from './csv.mjs';
import {Heads} from './heads.mjs';
import {sampleFile} from './sample.mjs';
import {count, numbersOf, openFile, readable} from './source.mjs';
import {overlap, rowLooksLikeWeights, sampled, statistics} from './statistics.mjs';

let heads;
let newest = 0;  // number of the latest map request

function current() {
  if (!heads) throw new Error('there is nothing to look at');
  return heads;
}

// A few rows suffice to distinguish weights from other numbers.
async function looksLikeWeights(rapt, array) {
  const rank = array.shape.length;
  if (rank < 2 || rank > 4 || !readable(array) || count(array.shape) === 0) return false;
  const width = array.shape.at(-1), rows = count(array.shape) / width;
  if (width > 1e6) return false;
  let seen = false;  // found a row with a nonzero weight
  for (const row of sampled(rows, 16)) {
    const looks = rowLooksLikeWeights(await numbersOf(rapt, array, row * width, width));
    if (looks === false) return false;  // most arrays of a model fail at the first row
    seen ||= looks;
  }
  return Boolean(seen);
}

export const methods = {
  /** The contents of a file: arrays, layers, metadata. */
  async dataOpen(rapt, {name, blob, base64}) {
    const file = blob ?? new Blob([Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0))]);
    const opened = await openFile(rapt, name, file);
    for (const array of opened.arrays) {
      array.readable = readable(array);
      array.weights = await looksLikeWeights(rapt, array);
    }
    return opened;
  },

  dataSample: (rapt, {lang}) => sampleFile(lang),

  /** Sets the subject of all later calls. */
  dataSubject(rapt, subject) {
    heads?.free();
    newest += 1;
    heads = subject && new Heads(rapt, subject);
  },

  /** A part of a head's weights. A newer request cancels an unfinished one, which then returns undefined. */
  async dataMap(rapt, request) {
    const number = ++newest;
    const map = await current().map(request, () => number !== newest);
    return map && {...map, transfer: [map.values.buffer]};
  },

  async dataRow(rapt, {head, query}) {
    const values = await current().row(head, query);
    return {values, head, query, transfer: [values.buffer]};
  },

  /** A thumbnail, and the statistics that heads are sorted by. */
  async dataThumbnail(rapt, {head, cell}) {
    const now = current();
    const {queries, keys} = now.subject;
    const map = await now.map({head, queries: [0, queries], keys: [0, keys], cell});
    now.samples ??= new Map();
    const rows = [];
    for (const query of sampled(queries, 64)) rows.push(await now.row(head, query));
    now.samples.set(head, rows);
    return {...map, ...statistics(rows, sampled(queries, 64), keys - queries), transfer: [map.values.buffer]};
  },

  /** The similarity of every head to a given one: the weight that both put on the same keys, from 0 to 1. */
  dataSimilarity(rapt, {head}) {
    const samples = current().samples ?? new Map();
    const own = samples.get(head);
    return own ? [...samples].map(([other, rows]) => [other, overlap(own, rows)]) : [];
  },

  async dataCsv(rapt, {region, labels}) {
    const map = await current().map(region);
    return csvOf(map, labels);
  },
};
