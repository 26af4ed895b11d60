// Statistics of a head, from the exact weights of some of its queries.

/** At most `most` of `all` indices, evenly spaced. */
export function sampled(all, most) {
  const many = Math.min(all, most);
  return Array.from({length: many}, (_, n) => (many === 1 ? 0 : Math.round(n * (all - 1) / (many - 1))));
}

/** Whether a row looks like weights: non-negative, with a sum of 1. Undefined if all are 0: a fully masked query. */
export function rowLooksLikeWeights(row) {
  let sum = 0;
  for (const weight of row) {
    if (!(weight >= 0 && weight <= 1.01)) return false;
    sum += weight;
  }
  if (sum === 0) return undefined;
  return Math.abs(sum - 1) < 0.02;  // 16-bit weights are rounded, with a relative error of up to 1/256
}

/** Means over rows: `entropy` in nats, `distance` |i − j| in tokens. Query i is at key position i + offset. */
export function statistics(rows, queries, offset = 0) {
  let entropy = 0, distance = 0, seen = 0;
  rows.forEach((row, n) => {
    let own = 0, far = 0, sum = 0;
    for (let key = 0; key < row.length; ++key) {
      const weight = row[key];
      if (!(weight > 0)) continue;
      sum += weight;
      own -= weight * Math.log(weight);
      far += weight * Math.abs(queries[n] + offset - key);
    }
    if (sum === 0) return;
    entropy += own;
    distance += far;
    ++seen;
  });
  return seen ? {entropy: entropy / seen, distance: distance / seen} : {entropy: 0, distance: 0};
}

/** The weight that two heads put on the same keys: Σ min(a, b), the mean over rows. */
export function overlap(a, b) {
  let all = 0;
  a.forEach((row, n) => {
    const other = b[n];
    for (let key = 0; key < row.length; ++key) all += Math.min(row[key], other[key]);
  });
  return a.length ? all / a.length : 0;
}
