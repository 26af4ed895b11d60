// Types of rapt.mjs. Options mean what include/rapt/attention.h says; errors are RaptError, in the library's words.

export type Numbers = Float32Array | Float64Array | Uint8Array | Uint16Array;
export type Stage = 'raw' | 'capped' | 'masked' | 'weights' | 'droppedWeights';

/** Numbers in the engine's memory. Views share it; free() gives this one's part back. */
export interface Tensor {
  readonly shape: number[];
  readonly strides: number[];
  readonly dtype: 'f32' | 'f64' | 'bf16' | 'f16' | 'bool' | 'i8';
  /** A copy, row by row: Float64Array of f64, Uint8Array of bool, else Float32Array. */
  values(): Float32Array | Float64Array | Uint8Array;
  transpose(a: number, b: number): Tensor;
  slice(dim: number, begin: number, end: number): Tensor;
  select(dim: number, index: number): Tensor;
  /** Copies where strides do not allow a view. */
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

export interface AttentionOptions {
  scale?: number;
  softcap?: number;
  masks?: Mask[];
  causal?: boolean;
  /** [left, right]; null leaves a side open. */
  window?: [number | null, number | null];
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
  /** In the place of rows and columns: each number stands for so many queries and keys, the last for what is left. */
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
  /** Numbers of q, and of k: heads times the size of a head. */
  queryWidth: number;
  keyWidth: number;
  /** Of a stored causal mask; 0 where there is none. */
  contextLength: number;
  /** There are bias_k and bias_v, a key and a value beside those of the tokens. */
  addsKeys: boolean;
  /** Weights are (inputs, outputs). */
  transposed: boolean;
  /** Names in the file, by what they are: 'weight of q', 'bias of q, k and v', 'causal mask', … */
  tensors: Record<string, string>;
}

/** A .safetensors, .npz or .npy file in the engine's memory. */
export interface TensorFile {
  /** In the file's order; the one array of a .npy has no name. `bytes`, [begin, end], of safetensors alone. */
  entries(): {name: string; type: string; shape: number[]; bytes?: [number, number]}[];
  metadata(): Record<string, string>;
  layers(): FoundLayer[];
  tensor(name?: string): Tensor;
  layer(options: {prefix?: string; heads?: number; kvHeads?: number; batchFirst?: boolean}): Layer;
  free(): void;
}

/** What a model says of a sequence: logits (1, L, V), and the weights of each layer, (1, H, L, L). */
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
  /** One step; true where it ended with an evaluation. */
  step(): boolean;
  /** For the steps to come. */
  setRate(rate: number): void;
  setCausal(causal: boolean): void;
  /** As the model is now; `causal`: with the future hidden, whatever it is trained with. */
  evaluation(options?: {causal?: boolean}): {
    loss: number; measures: {key: string; words: string; value: number; goal?: number}[];
  };
  /** Tokens of a row that no batch holds. */
  example(seed: number): number[];
  read(tokens: number[]): Reading;
  free(): void;
}

export interface WalkStep {
  step: string;
  name?: string;
  shape?: number[];
  strides?: number[];
  /** Nested as `shape` says; null is a hidden score. */
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
  /** Copies. Uint8Array is bool; Uint16Array takes a dtype, 'bf16' or 'f16', whose bits it has. */
  tensor(numbers: Numbers, shape: number[], dtype?: 'bf16' | 'f16'): Tensor;
  attention(query: Tensor, key: Tensor, value: Tensor,
    options?: AttentionOptions & {lse?: boolean; captures?: Capture[]}): AttentionResult;
  /** The weights of one head, or a part of them, at most `rows` by `columns`: each the largest of what it stands for. */
  weightsMap(query: Tensor, key: Tensor, options?: MapOptions): Tensor;
  linear(x: Tensor, weight: Tensor, bias?: Tensor): Tensor;
  layerNorm(x: Tensor, weight: Tensor, bias?: Tensor): Tensor;
  /** (B, H, L, D) turned by position, from 0 on: rotary embedding, as include/rapt/rotary.h has it. */
  rotary(x: Tensor, options?: {base?: number; pairs?: 'halfSplit' | 'interleaved'}): Tensor;
  layer(config: LayerConfig): Layer;
  open(name: string, bytes: Uint8Array): Promise<TensorFile>;
  /** A safetensors file by its header (8 bytes that say how long it is, and that), for entries, metadata and layers:
      the page reads what it wants of the rest by itself. */
  openHeader(name: string, beginning: Uint8Array, size: number): TensorFile;
  /** What `rapt explain --json` prints. */
  walk(text: string, options?: {heads?: number; causal?: boolean}): Walk;
  /** The questions of `rapt explain --questions`. */
  questions(lang: 'en' | 'zh'): Exhibit[];
  /** What `rapt explain --question N --json` prints. */
  exhibit(number: number, options?: {lang?: 'en' | 'zh'; settings?: Record<string, string>}): Exhibit;
  builtinModel(): Model;
  train(task: 'induction' | 'reverse', seed?: number): Training;
  /** Frees every tensor made in `work` but what it returns. */
  scope<Result>(work: () => Result): Result;
}

/** The engine: `module` is what rapt_engine.js defines, `code` the bytes of rapt_engine.wasm, or what they compiled to. */
export function load(module: (settings?: object) => Promise<object>,
  code: BufferSource | WebAssembly.Module): Promise<Rapt>;
