// The number of heads in the config.json of a model; the shapes of a layer do not determine it. The command reads the
// same names (cli/files/model_heads.cc).

const HEADS = ['num_attention_heads', 'n_head', 'num_heads', 'n_heads'];
const KV_HEADS = 'num_key_value_heads';

/** An error whose words are in strings.mjs: `said` is the key and its parts. */
class Refused extends Error {
  constructor(...said) {
    super(said.join(' '));
    this.said = said;
  }
}

// The value of a key; 0 if it is absent or null.
function countIn(name, config, key) {
  const value = config[key] ?? 0;
  const isCount = Number.isInteger(value) && value > 0 && value < 2 ** 31;
  if (!isCount && (config[key] ?? null) !== null) {
    throw new Refused('data.config.noCount', name, key, JSON.stringify(value).slice(0, 40));
  }
  return value;
}

/** {name, heads, key, kvHeads, kvKey}; kvHeads is 0 if it is not stated. Throws an error with `said`. */
export function headsIn(name, text) {
  let config;
  try {
    config = JSON.parse(text);
  } catch {
    throw new Refused('data.config.noJson', name);
  }
  const isObject = typeof config === 'object' && config !== null && !Array.isArray(config);
  if (!isObject) throw new Refused('data.config.noJson', name);
  const stated = HEADS.map((key) => ({key, heads: countIn(name, config, key)})).filter(({heads}) => heads);
  if (!stated.length) throw new Refused('data.config.noHeads', name, HEADS.join(', '));
  const [one] = stated, other = stated.find(({heads}) => heads !== one.heads);
  if (other) throw new Refused('data.config.twice', name, one.key, one.heads, other.key, other.heads);
  return {name, ...one, kvHeads: countIn(name, config, KV_HEADS), kvKey: KV_HEADS};
}
