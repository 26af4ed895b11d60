// Opens files as lists of arrays; only the parts that are shown are read (in a worker).
//
// An array is {file, name, type, shape, blob, offset}: plain data that any worker can read from, without copying the
// file into memory. Arrays that cannot be read directly (compressed, Fortran order, integers) are decoded once by the
// engine into a blob of their own.

const WIDTH = {F64: 8, F32: 4, F16: 2, BF16: 2};
const NUMPY = {'<f8': 'F64', '<f4': 'F32', '<f2': 'F16'};
const ENGINE = {f64: 'F64', f32: 'F32', f16: 'F16', bf16: 'BF16'};
const WHOLE = 1.2e9;  // maximum bytes read at once: the engine has 4 GB, and needs some arrays twice

export const count = (shape) => shape.reduce((all, size) => all * size, 1);

const bytesOf = async (blob) => new Uint8Array(await blob.arrayBuffer());

// Reads the headers that NumPy itself writes, in row-major order; all others go through the engine.
async function plainNpy(name, blob) {
  const begin = await bytesOf(blob.slice(0, 12));
  if (begin.length < 12 || begin[0] !== 0x93 || begin[6] > 3) return undefined;
  const view = new DataView(begin.buffer);
  const [at, size] = begin[6] === 1 ? [10, view.getUint16(8, true)] : [12, view.getUint32(8, true)];
  if (size > 4096) return undefined;
  const header = new TextDecoder('latin1').decode(await bytesOf(blob.slice(at, at + size)));
  const said = /^\{'descr': '(<f[248])', 'fortran_order': False, 'shape': \(([\d, ]*)\), \} *\n$/.exec(header);
  if (!said) return undefined;
  const shape = said[2].split(',').map((each) => each.trim()).filter(Boolean).map(Number);
  const type = NUMPY[said[1]];
  if (blob.size !== at + size + count(shape) * WIDTH[type]) return undefined;
  return [{file: name, name: '', type, shape, blob, offset: at + size}];
}

function requireMemory(name, bytes) {
  if (bytes > WHOLE) throw Object.assign(new Error(`${name}: ${bytes} bytes`), {name: 'TooLarge'});
}

async function throughEngine(rapt, name, blob) {
  requireMemory(name, blob.size);
  const file = await rapt.open(name, await bytesOf(blob));
  try {
    const arrays = file.entries().map((entry) => {
      const tensor = file.tensor(entry.name);
      const {dtype} = tensor;
      // Written again by the engine: little-endian, row-major.
      const bytes = ENGINE[dtype] ? tensor.npy() : new Uint8Array();
      tensor.free();
      const type = ENGINE[dtype] ?? entry.type;
      const offset = ENGINE[dtype] ? bytes.length - count(entry.shape) * WIDTH[type] : 0;
      return {file: name, name: entry.name, type, shape: entry.shape, blob: new Blob([bytes]), offset};
    });
    return {arrays, layers: file.layers(), metadata: {}};
  } finally {
    file.free();
  }
}

async function safetensors(rapt, name, blob) {
  const begin = await bytesOf(blob.slice(0, 8));
  const size = begin.length === 8 ? Number(new DataView(begin.buffer).getBigUint64(0, true)) : 0;
  const file = rapt.openHeader(name, await bytesOf(blob.slice(0, Math.min(8 + size, 100_000_008))), blob.size);
  try {
    const arrays = file.entries().map((entry) => ({
      file: name, name: entry.name, type: entry.type, shape: entry.shape, blob, offset: entry.bytes[0],
    }));
    return {arrays, layers: file.layers(), metadata: file.metadata()};
  } finally {
    file.free();
  }
}

/** {arrays, layers, metadata} of one file. Errors have the engine's messages. */
export async function openFile(rapt, name, blob) {
  const end = name.slice(name.lastIndexOf('.')).toLowerCase();
  const named = name.slice(0, name.length - end.length) + end;  // the engine expects lowercase extensions
  if (end === '.safetensors') return safetensors(rapt, named, blob);
  const plain = end === '.npy' ? await plainNpy(named, blob) : undefined;
  if (plain) return {arrays: plain, layers: [], metadata: {}};
  return throughEngine(rapt, named, blob);
}

export const readable = (array) => array.type in WIDTH;

/** Elements [begin, begin + many) of an array in row-major order, as f32. */
export async function numbersOf(rapt, array, begin, many) {
  const width = WIDTH[array.type];
  requireMemory(array.file, many * width);
  const from = array.offset + begin * width;
  const bytes = await array.blob.slice(from, from + many * width).arrayBuffer();
  if (array.type === 'F32') return new Float32Array(bytes);
  if (array.type === 'F64') return Float32Array.from(new Float64Array(bytes));
  const tensor = rapt.tensor(new Uint16Array(bytes), [many], array.type === 'F16' ? 'f16' : 'bf16');
  const numbers = tensor.values();
  tensor.free();
  return numbers;
}

export async function partOf(rapt, array, begin, shape) {
  return rapt.tensor(await numbersOf(rapt, array, begin, count(shape)), shape);
}
