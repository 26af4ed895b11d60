import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';

import {ROOT, heads, largestDifference, rapt} from './support.mjs';

const same = (a, b) => assert.deepEqual([...a.values()], [...b.values()]);

test('the first call of the README', () => {
  const x = rapt.tensor(new Float32Array([1, 0, 0, 1]), [1, 1, 2, 2]);
  const {out} = rapt.attention(x, x, x, {causal: true});
  assert.deepEqual([...out.values()].map((value) => value.toFixed(4)), ['1.0000', '0.0000', '0.3302', '0.6698']);
  assert.deepEqual(out.shape, [1, 1, 2, 2]);
});

test('the vectors are 128 bits wide', () => {
  assert.deepEqual(rapt.instructionSets(), ['wasm']);
  assert.match(rapt.version, /^\d+\.\d+\.\d+$/);
});

test('both engines agree, with every option a page can pass', () => {
  const [q, k, v] = [1, 2, 3].map((seed) => heads(2, 4, 9, 8, seed));
  const mask = rapt.tensor(Uint8Array.from({length: 81}, (_, n) => n % 3), [9, 9]);
  const bias = heads(1, 4, 9, 9, 7);
  const all = [
    {}, {causal: true}, {scale: 0.3}, {softcap: 2}, {window: [2, 1]}, {window: [3, null], causal: true},
    {window: {left: 1, right: 0, first: 2}},
    {keyLengths: [5, 9]}, {alibiSlopes: [0.5, 0.25, 0.125, 0.0625]}, {dropout: {rate: 0.3, seed: 5}},
    {sinks: rapt.tensor(new Float32Array([0, 1, 2, 3]), [4])}, {causal: true, alignment: 'bottomRight'},
    {causal: true, alignment: [3, 4]}, {masks: [{kind: 'keep', tensor: mask}]},
    {masks: [{kind: 'drop', tensor: mask}, {kind: 'add', tensor: bias}]},
    {masks: [{kind: 'fill', tensor: mask, value: -1e9}]},
  ];
  const outputs = all.map((options, n) => {
    const one = rapt.attention(q, k, v, {...options, engine: 'cpu', lse: true, captures: [{stage: 'weights'}]});
    const two = rapt.attention(q, k, v, {...options, engine: 'reference', lse: true, captures: [{stage: 'weights'}]});
    for (const name of ['out', 'lse']) {
      assert.ok(largestDifference(one[name].values(), two[name].values()) < 2e-6, `option ${n}`);
    }
    assert.ok(largestDifference(one.captures[0].values(), two.captures[0].values()) < 1e-6);
    return [...one.out.values()].join();
  });
  assert.equal(new Set(outputs).size, all.length - 1, 'each option changes the result, but that an alignment of equals');
});

test('the engine knows the options that its types declare, and no other', () => {
  const types = fs.readFileSync(path.join(ROOT, 'bindings/wasm/rapt.d.ts'), 'utf8').replace(/\/\*\*.*?\*\//gs, '');
  const fields = (name) => [...types.match(new RegExp(`interface ${name} \\{(.*?)\\n\\}`, 's'))[1]
    .matchAll(/^  (\w+)\??:/gm)].map((found) => found[1]);
  const [q, k, v] = [1, 2, 3].map((seed) => heads(1, 2, 5, 4, seed));
  const values = {
    scale: 0.3, softcap: 2, masks: [], causal: true, window: [1, 1], alignment: 0, keyLengths: [4],
    alibiSlopes: [1, 0.5], sinks: rapt.tensor(new Float32Array(2), [2]), dropout: {rate: 0.5}, engine: 'reference',
  };
  assert.deepEqual(fields('AttentionOptions').sort(), Object.keys(values).sort());
  for (const [name, value] of Object.entries(values)) rapt.attention(q, k, v, {[name]: value});
  assert.throws(() => rapt.attention(q, k, v, {sharpness: 1}), /unknown option "sharpness"/);

  const window = Object.fromEntries(fields('Window').map((name) => [name, 1]));
  same(rapt.attention(q, k, v, {window: {left: 1, right: 1}}).out, rapt.attention(q, k, v, {window: [1, 1]}).out);
  rapt.attention(q, k, v, {window});
  for (const name of Object.keys(window)) {
    assert.throws(() => rapt.attention(q, k, v, {window: {[name]: -1}}), new RegExp(`window\\.${name} is -1`));
  }
  assert.throws(() => rapt.attention(q, k, v, {window: {width: 1}}), /window has no "width"/);
  assert.throws(() => rapt.attention(q, k, v, {window: {first: 2.7}}), /window\.first must be an integer/);
  assert.throws(() => rapt.attention(q, k, v, {window: [1.5, 1]}), /window\.left must be an integer/);
  same(rapt.attention(q, k, v, {window: new Int32Array([2, 1])}).out, rapt.attention(q, k, v, {window: [2, 1]}).out);
});

test('captures: stages, heads, queries, and a mean', () => {
  const [q, k, v] = [1, 2, 3].map((seed) => heads(1, 3, 5, 4, seed));
  const {captures} = rapt.attention(q, k, v, {causal: true, captures: [
    {stage: 'raw'}, {stage: 'masked', heads: [2]}, {stage: 'weights', queries: [4, 0]},
    {stage: 'droppedWeights', mean: true}]});
  assert.deepEqual(captures.map((each) => each.shape), [[1, 3, 5, 5], [1, 1, 5, 5], [1, 3, 2, 5], [1, 5, 5]]);
  assert.equal(captures[1].values()[1], -Infinity);
  const rows = captures[2].values();
  assert.ok(Math.abs(rows.slice(0, 5).reduce((sum, value) => sum + value) - 1) < 1e-6);
});

test('a map has the largest weight of what each of its numbers stands for', () => {
  const [q, k] = [heads(2, 4, 100, 8, 1), heads(2, 2, 70, 8, 2)];
  const v = heads(2, 2, 70, 8, 3);
  for (const options of [{}, {causal: true, alignment: 'topLeft'}, {causal: true, alignment: [0, 5]},
    {window: [9, 9], alignment: 'bottomRight'}]) {
    const weights = rapt.attention(q, k, v, {...options, captures: [{stage: 'weights'}]}).captures[0]
      .select(0, 1).select(0, 3).values();
    const part = {batch: 1, head: 3, queries: [10, 90], keys: [5, 68], rows: 8, columns: 9};
    const map = rapt.weightsMap(q, k, {...options, ...part});
    assert.deepEqual(map.shape, [8, 9]);
    const wanted = new Float32Array(72);
    for (let i = 10; i < 90; ++i) {
      for (let j = 5; j < 68; ++j) {
        const place = Math.floor((i - 10) / 10) * 9 + Math.floor((j - 5) / 7);
        wanted[place] = Math.max(wanted[place], weights[i * 70 + j]);
      }
    }
    assert.ok(largestDifference(map.values(), wanted) < 1e-6, JSON.stringify(options));
  }
  const whole = rapt.weightsMap(q, k, {rows: 100, columns: 70}).values();
  const cells = rapt.weightsMap(q, k, {cell: 16, queries: [32, 100], keys: [16, 70]});
  assert.deepEqual(cells.shape, [5, 4]);
  const largest = new Float32Array(20);
  for (let i = 32; i < 100; ++i) {
    for (let j = 16; j < 70; ++j) {
      const place = ((i >> 4) - 2) * 4 + (j >> 4) - 1;
      largest[place] = Math.max(largest[place], whole[i * 70 + j]);
    }
  }
  assert.deepEqual([...cells.values()], [...largest], 'cells of one size, the last ones smaller');
  const broken = q.values();
  broken[2 * 8] = NaN;  // query 2 of head 0
  const rows = rapt.weightsMap(rapt.tensor(broken, q.shape), k, {queries: [1, 4], cell: 1}).values();
  assert.deepEqual([0, 70, 140].map((place) => Number.isNaN(rows[place])), [false, true, false], 'its own row alone');
  assert.deepEqual(rapt.weightsMap(q, k, {rows: 1000, columns: 1000}).shape, [100, 70], 'never more than there is');
});

test('rotary turns pairs by position', () => {
  const x = heads(1, 2, 5, 6, 4);
  const values = x.values();
  for (const [pairs, place] of [['halfSplit', (d) => [d, d + 3]], ['interleaved', (d) => [2 * d, 2 * d + 1]]]) {
    const wanted = values.slice();
    for (let row = 0; row < 10; ++row) {
      for (let d = 0; d < 3; ++d) {
        const angle = (row % 5) * 500 ** (-2 * d / 6);
        const [one, two] = place(d).map((each) => row * 6 + each);
        wanted[one] = values[one] * Math.cos(angle) - values[two] * Math.sin(angle);
        wanted[two] = values[two] * Math.cos(angle) + values[one] * Math.sin(angle);
      }
    }
    assert.ok(largestDifference(rapt.rotary(x, {base: 500, pairs}).values(), wanted) < 1e-6, pairs);
  }
  assert.throws(() => rapt.rotary(x, {pairs: 'both'}), {name: 'RaptError', message: /must be halfSplit or interleaved/});
});

test('views are views', () => {
  const x = rapt.tensor(Float32Array.from({length: 24}, (_, n) => n), [1, 4, 6]);
  const q = x.splitHeads(2);
  assert.deepEqual([q.shape, q.strides], [[1, 2, 4, 3], [24, 3, 6, 1]]);
  same(q.combineHeads(), x);
  assert.deepEqual([...x.transpose(1, 2).slice(1, 0, 1).values()], [0, 6, 12, 18]);
  assert.deepEqual([...q.select(1, 1).reshape([12]).values()], [3, 4, 5, 9, 10, 11, 15, 16, 17, 21, 22, 23]);
});

test('types', () => {
  const half = rapt.tensor(new Uint16Array([0x3f80, 0xbf80]), [2], 'bf16');
  assert.deepEqual([half.dtype, ...half.values()], ['bf16', 1, -1]);
  assert.ok(rapt.tensor(new Float64Array([1, 2]), [2]).values() instanceof Float64Array);
  assert.deepEqual([...rapt.tensor(new Uint8Array([0, 7]), [2]).values()], [0, 1]);
});

test('what is wrong is said', () => {
  const x = heads(1, 1, 2, 2);
  const wrong = [
    [() => rapt.attention(x, x, x, {casual: true}), /unknown option "casual"/],
    [() => rapt.attention(x, x, x, {softcap: -1}), /softcap is -1; it must be positive, or 0 for none/],
    [() => rapt.attention(x, x), /value must be a tensor/],
    [() => rapt.attention(x, x, x, {window: 3}), /window must be \[left, right\]/],
    [() => rapt.attention(x, x, x, {masks: [{kind: 'hide', tensor: x}]}), /it must be keep, drop, add or fill/],
    [() => rapt.attention(x, x, x, {captures: [{stage: 'soft'}]}), /unknown stage "soft"/],
    [() => rapt.attention(x.select(0, 0), x, x), /query has shape \(1, 2, 2\); it must be \(B, H, L, D\)/],
    [() => rapt.tensor(new Float32Array(3), [2, 2]), /shape \(2, 2\) has 4 numbers, 3 were given/],
    [() => rapt.tensor(new Int32Array(3), [3]), /Int32Array is not one of/],
    [() => rapt.tensor(new Float32Array(1), [1.5]), /shape must be a list of integers/],
    [() => rapt.tensor(new Float32Array(1), [65536, 65536]), /more bytes than a 64-bit integer can count|numbers/],
    [() => x.transpose(0, 9), /dimension 9/],
    [() => rapt.weightsMap(x, x, {head: 1}), /there is no head 1/],
    [() => rapt.weightsMap(x, x, {queries: [1, 5]}), /queries must be \[begin, end\] within 0 … 2/],
    [() => rapt.layer({embedSize: 10, heads: 3}), /10/],
  ];
  for (const [call, words] of wrong) assert.throws(call, {name: 'RaptError', message: words});
  rapt.attention(x, x, x);  // the engine still works
});

test('a scope frees all but what it returns', () => {
  const kept = rapt.scope(() => {
    const x = heads(1, 1, 2, 2);
    const inner = rapt.scope(() => ({both: [rapt.attention(x, x, x).out, x]}));
    assert.equal(inner.both[1].shape.length, 4);
    return inner.both[0];
  });
  assert.equal(kept.values().length, 4);
  kept.free();
  assert.throws(() => kept.values(), /this Tensor was freed/);
});
