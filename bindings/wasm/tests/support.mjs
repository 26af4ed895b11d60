// What several test files share: the engine, created once, and the locations of files.
import fs from 'node:fs';
import {createRequire} from 'node:module';
import path from 'node:path';
import {fileURLToPath} from 'node:url';

import {load} from '../rapt.mjs';

export const ROOT = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');
const engine = process.env.RAPT_ENGINE ?? path.join(ROOT, 'build/wasm/rapt_engine.js');

export const rapt = await load(createRequire(import.meta.url)(engine), fs.readFileSync(engine.replace(/js$/, 'wasm')));

/** Numbers between -1 and 1, the same every time. */
export function numbers(count, seed = 1) {
  let state = seed;
  return Float32Array.from({length: count}, () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state / 2 ** 31;
  });
}

export function heads(batch, count, length, size, seed) {
  return rapt.tensor(numbers(batch * count * length * size, seed), [batch, count, length, size]);
}

export function largestDifference(a, b) {
  if (a.length !== b.length) return Infinity;
  return a.reduce((most, value, n) => Math.max(most, Math.abs(value - b[n])), 0);
}
