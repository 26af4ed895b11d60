// Types of rapt.mjs. include/rapt/attention.h describes the options; errors are RaptError, with the library's message.

export type Numbers = Float32Array | Float64Array | Uint8Array | Uint16Array;
export type Stage = 'raw' | 'capped' | 'masked' | 'weights' | 'droppedWeights';

/** Numbers in the engine's memory. Views of a tensor share its memory; free() releases only the view itself. */
export interface Tensor {
  readonly shape: number[];
  readonly strides: number[];
  readonly dtype: 'f32' | 'f64' | 'bf16' | 'f16' | 'bool' | 'i8';
  /** A copy in row-major order: Float64Array for f64, Uint8Array for bool, otherwise Float32Array. */
  values(): Float32Array | Float64Array | Uint8Array;
  transpose(a: number, b: number): Tensor;
  slice(dim: number, begin: number, end: number): Tensor;
  select(dim: number, index: number): Tensor;
  /** Copies if the strides do not allow a view. */
  reshape(shape: number[]): Tensor;
  splitHeads(heads: number): Tensor;
  combineHeads(): Tensor;
  /** The bytes of a .npy file. */
  npy(): Uint8Array;
  free(): void;
}

export type Mask =
  | {kind: 'keep' | 'drop' | 'add'; tensor: Tensor}
  | {kind: 'fill'; tensor: Tensor; value: number};

/** A query at position i sees keys i - left to i + right; null means no limit. The first `first` keys stay visible. */
export interface Window {
  left?: number | null;
  right?: number | null;
  first?: number;
}

export interface AttentionOptions {
  scale?: number;
  softcap?: number;
  masks?: Mask[];
  causal?: boolean;
  /** [left, right] is short for {left, right}. */
  window?: [number | null, number | null] | Window;
  alignment?: 'topLeft' | 'bottomRight' | number | number[];
  keyLengths?: number[];
  alibiSlopes?: number[];
  sinks?: Tensor;
  dropout?: {rate: number; seed?: number};
  engine?: 'automatic' | 'reference' | 'cpu';
}

export interface Capture {
  stage: Stage;
  heads?: number[];
  queries?: number[];
  mean?: boolean;
}

export interface AttentionResult {
  out: Tensor;
  lse?: Tensor;
  captures?: Tensor[];
}

export interface MapOptions extends Pick<AttentionOptions,
  'scale' | 'softcap' | 'causal' | 'window' | 'alignment' | 'engine'> {
  batch?: number;
  head?: number;
  queries?: [number, number];
  keys?: [number, number];
  rows?: number;
  columns?: number;
  /** Instead of rows and columns: each number covers this many queries and keys; the last ones may cover fewer. */
  cell?: number;
}

export interface LayerConfig {
  embedSize: number;
  heads: number;
  kvHeads?: number;
  bias?: boolean;
  batchFirst?: boolean;
  contextLength?: number;
  seed?: number;
}

export interface Layer {
  readonly config: Required<Omit<LayerConfig, 'seed'>> & {headSize: number; outputSize: number};
  parameters(): Record<string, Tensor>;
  forward(x: Tensor, options?: AttentionOptions & {weights?: 'none' | 'mean' | 'perHead'}): LayerResult;
  forwardOf(query: Tensor, key?: Tensor, value?: Tensor,
    options?: AttentionOptions & {weights?: 'none' | 'mean' | 'perHead'}): LayerResult;
  free(): void;
}

export interface LayerResult {
  out: Tensor;
  weights?: Tensor;
}

export interface FoundLayer {
  prefix: string;
  family: string;
  embedSize: number;
  keySize: number;
  possibleHeads: number[];
  /** Width of q, and of k: the number of heads times the head size. */
  queryWidth: number;
  keyWidth: number;
  /** Length of a stored causal mask; 0 if there is none. */
  contextLength: number;
  /** The layer has bias_k and bias_v, a learned key and value. */
  addsKeys: boolean;
  /** Weights are (inputs, outputs). */
  transposed: boolean;
  /** Names in the file, by role: 'weight of q', 'bias of q, k and v', 'causal mask', … */
  tensors: Record<string, string>;
}

/** A .safetensors, .npz or .npy file in the engine's memory. */
export interface TensorFile {
  /** In the file's order; the array of a .npy has no name. Only safetensors has `bytes`, [begin, end]. */
  entries(): {name: string; type: string; shape: number[]; bytes?: [number, number]}[];
  metadata(): Record<string, string>;
  layers(): FoundLayer[];
  tensor(name?: string): Tensor;
  layer(options: {prefix?: string; heads?: number; kvHeads?: number; batchFirst?: boolean}): Layer;
  free(): void;
}

/** The output of a model for a sequence: logits (1, L, V), and the weights of each layer, (1, H, L, L). */
export interface Reading {
  logits: Tensor;
  weights: Tensor[];
}

export interface Model {
  readonly config: {
    vocabulary: number; context: number; width: number; layers: number; heads: number; characters: string;
  };
  parameters(): Record<string, Tensor>;
  read(tokens: number[]): Reading;
  free(): void;
}

export interface Training {
  readonly state: {step: number; steps: number; loss: number; done: boolean; reached: boolean; rate: number};
  readonly characters: string;
  /** Runs one step; true if it ended with an evaluation. */
  step(): boolean;
  /** Sets the learning rate of the following steps. */
  setRate(rate: number): void;
  setCausal(causal: boolean): void;
  /** Evaluates the current model; `causal`: with a causal mask, even if training has none. */
  evaluation(options?: {causal?: boolean}): {
    loss: number; measures: {key: string; words: string; value: number; goal?: number}[];
  };
  /** Tokens of a row that is not in any batch. */
  example(seed: number): number[];
  read(tokens: number[]): Reading;
  free(): void;
}

export interface WalkStep {
  step: string;
  name?: string;
  shape?: number[];
  strides?: number[];
  /** Nested according to `shape`; null is a masked score. */
  values?: unknown[];
}

export interface Walk {
  tokens: string[];
  ids: number[];
  sizes: {B: number; L: number; E: number; H: number; D: number};
  causal: boolean;
  parameters: Record<string, WalkStep>;
  steps: WalkStep[];
  heads: {head: number; habit: string; share: number; keys_in_sight: number; weights: number[][]}[];
  scale: Record<string, number>;
  checks: {row_sum_error: number; output_error: number; good: boolean};
}

export interface Exhibit {
  number: number;
  question: string;
  answer: string;
  switches: {key: string; label: string; choices: {value: string; label: string}[]; chosen: string}[];
  /** Each with a `kind`: prose, matrix, table, chart or code, and the fields of src/exhibits/exhibit.h. */
  blocks: ({kind: string} & Record<string, unknown>)[];
}

export interface Rapt {
  readonly version: string;
  instructionSets(): string[];
  /** Copies the numbers. Uint8Array is bool; Uint16Array holds the bits of `dtype`, 'bf16' or 'f16'. */
  tensor(numbers: Numbers, shape: number[], dtype?: 'bf16' | 'f16'): Tensor;
  attention(query: Tensor, key: Tensor, value: Tensor,
    options?: AttentionOptions & {lse?: boolean; captures?: Capture[]}): AttentionResult;
  /** The weights of one head, or a part of them, at most `rows` by `columns`: each is the largest weight in its cell. */
  weightsMap(query: Tensor, key: Tensor, options?: MapOptions): Tensor;
  linear(x: Tensor, weight: Tensor, bias?: Tensor): Tensor;
  layerNorm(x: Tensor, weight: Tensor, bias?: Tensor): Tensor;
  /** Rotary embedding of (B, H, L, D), with positions from 0; see include/rapt/rotary.h. */
  rotary(x: Tensor, options?: {base?: number; pairs?: 'halfSplit' | 'interleaved'}): Tensor;
  layer(config: LayerConfig): Layer;
  open(name: string, bytes: Uint8Array): Promise<TensorFile>;
  /** A safetensors file from its header (8 bytes with its length, then the header), for entries, metadata and layers:
      the page reads the rest itself. */
  openHeader(name: string, beginning: Uint8Array, size: number): TensorFile;
  /** What `rapt explain --json` prints. */
  walk(text: string, options?: {heads?: number; causal?: boolean}): Walk;
  /** The questions of `rapt explain --questions`. */
  questions(lang: 'en' | 'zh'): Exhibit[];
  /** What `rapt explain --question N --json` prints. */
  exhibit(number: number, options?: {lang?: 'en' | 'zh'; settings?: Record<string, string>}): Exhibit;
  builtinModel(): Model;
  train(task: 'induction' | 'reverse', seed?: number): Training;
  /** Frees every tensor created in `work` except what it returns. */
  scope<Result>(work: () => Result): Result;
}

/** Loads the engine: `module` is what rapt_engine.js defines, `code` the bytes of rapt_engine.wasm, or the module
    compiled from them. */
export function load(module: (settings?: object) => Promise<object>,
  code: BufferSource | WebAssembly.Module): Promise<Rapt>;
