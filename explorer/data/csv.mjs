// A map as comma-separated values: one column per key, one row per query. (Runs in a worker: a large map takes a
// while.)

const quoted = (text) => (/[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

// The label of a cell that covers several tokens: "16-31".
function name(first, cell, end, labels) {
  const last = Math.min(first + cell, end) - 1;
  if (last > first) return `${first}-${last}`;
  return labels?.[first] === undefined ? String(first) : quoted(`${first} ${labels[first]}`);
}

export function csvOf({values, rows, columns, queries, keys, cell}, labels = {}) {
  const lines = [];
  const head = ['query'];
  for (let column = 0; column < columns; ++column) head.push(name(keys[0] + column * cell, cell, keys[1], labels.keys));
  lines.push(head.join(','));
  for (let row = 0; row < rows; ++row) {
    const line = [name(queries[0] + row * cell, cell, queries[1], labels.queries)];
    // The shortest decimal that parses back to the same f32.
    for (let column = 0; column < columns; ++column) line.push(Number(values[row * columns + column].toPrecision(9)));
    lines.push(line.join(','));
  }
  return `${lines.join('\n')}\n`;
}
