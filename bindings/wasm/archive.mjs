// numpy.savez_compressed deflates its members, and the engine is built without zlib. So the platform inflates them here
// (DecompressionStream), and the archive is passed on with its members stored. An archive that looks broken is passed
// on unchanged; the engine reports what is wrong.

const DIRECTORY_END = 0x06054b50;
const DIRECTORY = 0x02014b50;
const LOCAL = 0x04034b50;
const STORED = 0;
const DEFLATED = 8;

async function inflate(bytes, size) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  const result = new Uint8Array(size);
  let filled = 0;
  const reader = stream.getReader();
  for (;;) {
    const {done, value} = await reader.read();
    if (done) break;
    if (filled + value.length > size) throw new RangeError('more than the directory says');
    result.set(value, filled);
    filled += value.length;
  }
  if (filled !== size) throw new RangeError('less than the directory says');
  return result;
}

// The members of an archive, or undefined if it cannot be rewritten: zip64, or broken.
function membersOf(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let end = bytes.length - 22;
  while (end >= 0 && view.getUint32(end, true) !== DIRECTORY_END) --end;
  if (end < 0) return undefined;
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  const members = [];
  for (let n = 0; n < count; ++n) {
    if (at + 46 > end || view.getUint32(at, true) !== DIRECTORY) return undefined;
    const [nameSize, extraSize, commentSize] = [28, 30, 32].map((place) => view.getUint16(at + place, true));
    const local = view.getUint32(at + 42, true);
    if (local + 30 > bytes.length || view.getUint32(local, true) !== LOCAL) return undefined;
    const begin = local + 30 + view.getUint16(local + 26, true) + view.getUint16(local + 28, true);
    const member = {
      flags: view.getUint16(at + 8, true),
      method: view.getUint16(at + 10, true),
      crc: view.getUint32(at + 16, true),
      size: view.getUint32(at + 24, true),
      name: bytes.subarray(at + 46, at + 46 + nameSize),
      data: bytes.subarray(begin, begin + view.getUint32(at + 20, true)),
    };
    if (member.size === 0xffffffff || local === 0xffffffff) return undefined;
    members.push(member);
    at += 46 + nameSize + extraSize + commentSize;
  }
  return members;
}

function header(size, mark, numbers) {
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, mark, true);
  for (const [place, width, number] of numbers) {
    if (width === 2) view.setUint16(place, number, true);
    else view.setUint32(place, number, true);
  }
  return bytes;
}

// An archive of stored members, in the same order.
function pack(members) {
  const parts = [];
  let size = 0;
  const add = (bytes) => {
    parts.push(bytes);
    size += bytes.length;
  };
  for (const member of members) {
    member.local = size;
    const {crc, name, data} = member;
    add(header(30, LOCAL, [[4, 2, 20], [14, 4, crc], [18, 4, data.length], [22, 4, data.length], [26, 2, name.length]]));
    add(name);
    add(data);
  }
  const directory = size;
  for (const {crc, name, data, local} of members) {
    add(header(46, DIRECTORY, [[4, 2, 20], [6, 2, 20], [16, 4, crc], [20, 4, data.length], [24, 4, data.length],
      [28, 2, name.length], [42, 4, local]]));
    add(name);
  }
  const count = members.length;
  add(header(22, DIRECTORY_END, [[8, 2, count], [10, 2, count], [12, 4, size - directory], [16, 4, directory]]));
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The archive with its deflated members stored instead. */
export async function stored(bytes) {
  const members = membersOf(bytes);
  if (!members || !members.some((member) => member.method === DEFLATED)) return bytes;
  try {
    for (const member of members) {
      if (member.method === DEFLATED) member.data = await inflate(member.data, member.size);
      else if (member.method !== STORED) return bytes;
    }
  } catch {
    return bytes;
  }
  return pack(members);
}
