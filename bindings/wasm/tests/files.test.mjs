import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import {test} from 'node:test';
import zlib from 'node:zlib';

import {stored} from '../archive.mjs';
import {heads, largestDifference, rapt, ROOT} from './support.mjs';

const read = (...parts) => new Uint8Array(fs.readFileSync(path.join(ROOT, ...parts)));
const layers = path.join('tests', 'data', 'layers');

test('layers that PyTorch saved give what they gave in PyTorch', async () => {
  let tried = 0;
  for (const name of fs.readdirSync(path.join(ROOT, layers))) {
    const file = await rapt.open(name, read(layers, name));
    const names = new Set(file.entries().map((entry) => entry.name));
    if (!names.has('answer') || !names.has('input') || file.layers().length !== 1) continue;
    const [{prefix, possibleHeads, embedSize, keySize}] = file.layers();
    if (keySize !== embedSize) continue;  // its keys are not the input
    assert.ok(possibleHeads.includes(4), name);
    const layer = file.layer({prefix, heads: 4});
    const {out} = layer.forward(file.tensor('input'));
    assert.ok(largestDifference(out.values(), file.tensor('answer').values()) < 5e-6, name);
    ++tried;
  }
  assert.ok(tried >= 10, `${tried} layers`);
});

// An archive of one .npy file, as numpy.savez_compressed (method 8) or numpy.savez (method 0) writes it.
function archive(name, npy, method) {
  const data = method === 8 ? zlib.deflateRawSync(npy) : Buffer.from(npy);
  const crc = crc32(npy);
  const header = (mark, size, numbers) => {
    const bytes = Buffer.alloc(size);
    bytes.writeUInt32LE(mark, 0);
    for (const [place, width, number] of numbers) bytes.writeUIntLE(number, place, width);
    return bytes;
  };
  const words = Buffer.from(`${name}.npy`);
  const common = [[0, 2, 0], [2, 2, method], [8, 4, crc], [12, 4, data.length], [16, 4, npy.length], [20, 2, words.length]];
  const shifted = (by) => common.map(([place, width, number]) => [place + by, width, number]);
  const local = Buffer.concat([header(0x04034b50, 30, [[4, 2, 20], ...shifted(6)]), words, data]);
  const directory = Buffer.concat([header(0x02014b50, 46, [[4, 2, 20], [6, 2, 20], ...shifted(8)]), words]);
  const end = header(0x06054b50, 22, [[8, 2, 1], [10, 2, 1], [12, 4, directory.length], [16, 4, local.length]]);
  return new Uint8Array(Buffer.concat([local, directory, end]));
}

function crc32(bytes) {
  let crc = ~0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; ++bit) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

test('arrays go out as .npy and come back, deflated or not', async () => {
  const x = heads(1, 2, 30, 4, 5);
  const npy = x.npy();
  const plain = await rapt.open('x.npy', npy);
  assert.deepEqual(plain.entries(), [{name: '', type: 'float32', shape: [1, 2, 30, 4]}]);
  assert.deepEqual([...plain.tensor().values()], [...x.values()]);
  for (const method of [0, 8]) {
    const file = await rapt.open('x.npz', archive('x', npy, method));
    assert.deepEqual(file.entries().map((entry) => entry.name), ['x']);
    assert.deepEqual([...file.tensor('x').values()], [...x.values()]);
  }
});

test('an archive whose checksum is wrong is refused', async () => {
  const bytes = archive('x', heads(1, 1, 3, 4).npy(), 8);
  bytes[14] ^= 1;             // in the member
  bytes[bytes.length - 22 - 51 + 16] ^= 1;  // and in the directory
  const file = await rapt.open('x.npz', bytes);
  assert.throws(() => file.tensor('x'), {name: 'RaptError', message: /checksum/});
});

test('broken files are refused with a message, and the engine keeps working', async () => {
  let refused = 0;
  for (const kind of ['npy', 'npz', 'safetensors']) {
    const folder = path.join('fuzz', 'corpus', kind);
    for (const name of fs.readdirSync(path.join(ROOT, folder))) {
      const bytes = read(folder, name);
      try {
        const file = await rapt.open(`${name}.${kind}`, bytes);
        for (const entry of file.entries()) file.tensor(entry.name).free();
        file.layers();
        file.free();
      } catch (error) {
        assert.equal(error.name, 'RaptError', `${name}: ${error.stack}`);
        assert.ok(error.message.length > 20, error.message);
        ++refused;
      }
    }
  }
  assert.ok(refused > 100, `${refused} refused`);
  await assert.rejects(rapt.open('x.txt', new Uint8Array(3)), {message: /unknown file extension; expected \.safetensors, \.npz or \.npy/});
  await assert.rejects(rapt.open('x.npz', new Uint8Array(0)), {name: 'RaptError'});
});

test('an archive that nothing can be done with is given on as it came', async () => {
  const bytes = archive('x', heads(1, 1, 3, 4).npy(), 8);
  bytes[35] = 0xff;  // an invalid type of deflate block
  assert.ok((await stored(bytes)) === bytes);
});

test('a header tells what the whole file does, and no more', async () => {
  const folder = path.join('tests', 'data', 'layers');
  for (const name of fs.readdirSync(path.join(ROOT, folder)).filter((each) => each.endsWith('.safetensors'))) {
    const bytes = read(folder, name);
    const size = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
    const file = rapt.openHeader(name, bytes.subarray(0, 8 + size), bytes.length);
    const whole = await rapt.open(name, bytes);
    assert.deepEqual(file.entries(), whole.entries());
    assert.deepEqual(file.layers(), whole.layers());
    for (const {tensors, queryWidth} of file.layers()) {
      assert.ok(queryWidth > 0 && ('weight of q' in tensors || 'weight of q, k and v' in tensors), name);
    }
    assert.throws(() => file.tensor(file.entries()[0].name), {name: 'RaptError', message: /for its header only/});
    assert.throws(() => rapt.openHeader(name, bytes.subarray(0, 7 + size), bytes.length), {message: /whole header/});
    assert.throws(() => rapt.openHeader(name, bytes.subarray(0, 8 + size), bytes.length - 1), {name: 'RaptError'});
    assert.throws(() => rapt.openHeader(name, bytes.subarray(0, 8 + size), 4e9), {message: /the limit is/});
    const {name: first, bytes: [begin, end], shape} = file.entries()[0];
    if (file.entries()[0].type === 'F32') {
      const values = new Float32Array(bytes.slice(begin, end).buffer);
      assert.deepEqual([...values], [...whole.tensor(first).values()]);
      assert.equal(values.length, shape.reduce((all, each) => all * each, 1));
    }
  }
});

test('headers of broken files are refused with a message', () => {
  for (const name of fs.readdirSync(path.join(ROOT, 'fuzz', 'corpus', 'safetensors'))) {
    const bytes = read('fuzz', 'corpus', 'safetensors', name);
    try {
      rapt.openHeader(name, bytes, bytes.length).free();
    } catch (error) {
      assert.equal(error.name, 'RaptError', `${name}: ${error.stack}`);
    }
  }
});
