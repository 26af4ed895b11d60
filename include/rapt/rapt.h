// The C API (C99): attention forward and backward, the layer, the KV cache, and files.
//
//   rapt_attention_options options;
//   rapt_attention_options_init(&options, sizeof options);
//   options.causal = 1;
//   if (rapt_attention(&outputs, &q, &k, &v, &options) != RAPT_OK) fprintf(stderr, "%s\n", rapt_last_error());
//
// Options have the same names and meanings as in C++: rapt/attention.h, rapt/multi_head_attention.h, rapt/kv_cache.h,
// rapt/layer_names.h, rapt/safetensors.h, rapt/npy.h. C++ maps to C as follows:
//
//   window.left               window_left: a dot becomes an underscore
//   std::vector, std::span    `name` and `name_count`
//   std::optional             `has_name` and `name`; an absent struct or string is null
//   a tensor                  const DLTensor*; null: undefined. The caller owns its memory, as in C++
//   bool                      int32_t: 0 is false, anything else is true
//   rapt::Error               a status, with the same message from rapt_last_error()
//
// Structs start with their size. Initialize each with its init function, which sets the size and every default; pass it
// sizeof the struct. A program compiled against an older, shorter struct keeps working: fields that the program does
// not know have their defaults. A struct longer than the library's is rejected. All structs in an array must have the
// same size.
//
// No function throws, aborts or prints, and there is nothing to shut down. Functions that create a handle write it to
// their first argument (rapt_layer_slice: to its last). Functions that end in _destroy or _close release a handle, and
// accept null. Several threads may use one handle at once as long as none modifies it.
#ifndef RAPT_RAPT_H
#define RAPT_RAPT_H

// NOLINTBEGIN(modernize-*): C has neither `using` nor <cstdint>
#include <stddef.h>
#include <stdint.h>

// ---------------------------------------------------------------- tensors (DLPack)

// Include <dlpack/dlpack.h> before this header to use DLPack's definitions; the layout is the same. (Old versions lack
// kDLBool, which is 6.)
#ifndef DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1, kDLCUDA = 2 } DLDeviceType;
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

typedef enum { kDLInt = 0, kDLUInt = 1, kDLFloat = 2, kDLBfloat = 4, kDLBool = 6 } DLDataTypeCode;
typedef struct {
  uint8_t code;  // f32, f64 and f16 are kDLFloat, bf16 is kDLBfloat, bool is kDLBool of 8 bits, i8 is kDLInt
  uint8_t bits;
  uint16_t lanes;  // 1
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;  // 0 to 8
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: contiguous, row-major
  uint64_t byte_offset;
} DLTensor;
#endif

#if defined(__cplusplus)
extern "C" {
#endif

// ---------------------------------------------------------------- status codes and enumerations

typedef enum rapt_status {
  RAPT_OK = 0,
  RAPT_BAD_ARGUMENT = 1,   // rejected before anything was written; also a failure of a GPU
  RAPT_FILE_ERROR = 2,     // a file cannot be opened, read or written, or is corrupt
  RAPT_OUT_OF_MEMORY = 3,  // outputs may be partially written
  RAPT_INTERNAL_ERROR = 4  // a bug in rapt, or a system error
} rapt_status;

// Structs store enumeration values as int32_t; unknown values are rejected.

// Element types, for fields named `dtype`.
enum { RAPT_F32 = 0, RAPT_F64 = 1, RAPT_BF16 = 2, RAPT_F16 = 3, RAPT_BOOL = 4, RAPT_I8 = 5 };
// rapt_mask.kind
enum { RAPT_MASK_KEEP = 0, RAPT_MASK_DROP = 1, RAPT_MASK_ADD = 2, RAPT_MASK_FILL = 3 };
// alignment_kind; offsets are in alignment_values: one for all batch rows, or one per row.
enum {
  RAPT_ALIGNMENT_UNNAMED = 0,
  RAPT_ALIGNMENT_TOP_LEFT = 1,
  RAPT_ALIGNMENT_BOTTOM_RIGHT = 2,
  RAPT_ALIGNMENT_OFFSET = 3
};
// engine
enum { RAPT_ENGINE_AUTOMATIC = 0, RAPT_ENGINE_REFERENCE = 1, RAPT_ENGINE_CPU = 2, RAPT_ENGINE_CUDA = 3 };
// stage
enum {
  RAPT_STAGE_RAW = 0,
  RAPT_STAGE_CAPPED = 1,
  RAPT_STAGE_MASKED = 2,
  RAPT_STAGE_WEIGHTS = 3,
  RAPT_STAGE_DROPPED_WEIGHTS = 4
};
// rapt_layer_options.weights
enum { RAPT_WEIGHTS_NONE = 0, RAPT_WEIGHTS_MEAN = 1, RAPT_WEIGHTS_PER_HEAD = 2 };
// rapt_rotary_options.pairs and .scaling_kind
enum { RAPT_ROTARY_HALF_SPLIT = 0, RAPT_ROTARY_INTERLEAVED = 1 };
enum {
  RAPT_ROTARY_NONE = 0,
  RAPT_ROTARY_LINEAR = 1,
  RAPT_ROTARY_NTK = 2,
  RAPT_ROTARY_DYNAMIC = 3,
  RAPT_ROTARY_YARN = 4,
  RAPT_ROTARY_LLAMA3 = 5
};
// family: a naming scheme (rapt/layer_names.h).
enum {
  RAPT_NAMES_TORCH = 0,
  RAPT_NAMES_W_Q = 1,
  RAPT_NAMES_W_QUERY = 2,
  RAPT_NAMES_Q_LINEAR = 3,
  RAPT_NAMES_WQ = 4,
  RAPT_NAMES_Q_PROJ = 5,
  RAPT_NAMES_QUERY = 6,
  RAPT_NAMES_TO_Q = 7,
  RAPT_NAMES_QKV = 8,
  RAPT_NAMES_C_ATTN = 9
};

// A caller's thread pool. It must call task(task_context, 0) … task(task_context, count − 1), each exactly once, in any
// order and on any threads, and return when all are done. `context` is parallel_for_context from the options.
typedef void (*rapt_task)(void* task_context, int64_t index);
typedef void (*rapt_parallel_for)(void* context, int64_t count, rapt_task task, void* task_context);

// ---------------------------------------------------------------- attention structs

typedef struct rapt_mask {
  size_t struct_size;
  int32_t kind;
  int32_t reserved;      // 0
  const DLTensor* view;  // (Lq, Lk), or rank 4 that broadcasts to (B, Hq, Lq, Lk)
  double value;          // for RAPT_MASK_FILL
} rapt_mask;

typedef struct rapt_attention_options {
  size_t struct_size;
  int32_t has_scale;
  int32_t causal;
  double scale;
  double softcap;
  const rapt_mask* masks;
  size_t masks_count;
  int32_t has_window_left;
  int32_t has_window_right;
  int64_t window_left;
  int64_t window_right;
  int32_t alignment_kind;
  int32_t engine;
  const int64_t* alignment_values;
  size_t alignment_values_count;
  const int64_t* key_lengths;
  size_t key_lengths_count;
  const int64_t* packed_query_starts;
  size_t packed_query_starts_count;
  const int64_t* packed_key_starts;
  size_t packed_key_starts_count;
  const int32_t* pages_table;
  size_t pages_table_count;
  int64_t pages_per_row;
  int64_t pages_keys;
  const DLTensor* key_scales;
  const DLTensor* value_scales;
  const double* alibi_slopes;
  size_t alibi_slopes_count;
  const DLTensor* sinks;
  double dropout_rate;
  uint64_t dropout_seed;
  int64_t dropout_batch_start;
  int64_t dropout_head_start;
  int64_t dropout_query_start;
  int32_t threads;
  int32_t reserved;  // 0
  rapt_parallel_for parallel_for;
  void* parallel_for_context;
  void* workspace;
  size_t workspace_bytes;
  int64_t window_first;
} rapt_attention_options;

typedef struct rapt_capture {
  size_t struct_size;
  int32_t stage;
  int32_t of_mean_over_heads;
  const DLTensor* to;
  const int64_t* of_heads;  // empty: all
  size_t of_heads_count;
  const int64_t* of_queries;  // empty: all
  size_t of_queries_count;
} rapt_capture;

typedef struct rapt_attention_outputs {
  size_t struct_size;
  const DLTensor* out;
  const DLTensor* lse;
  const rapt_capture* captures;
  size_t captures_count;
} rapt_attention_outputs;

typedef struct rapt_weights_gradient {
  size_t struct_size;
  int32_t stage;
  int32_t of_mean_over_heads;
  const DLTensor* from;
  const int64_t* of_heads;
  size_t of_heads_count;
  const int64_t* of_queries;
  size_t of_queries_count;
} rapt_weights_gradient;

typedef struct rapt_attention_upstream {
  size_t struct_size;
  const DLTensor* dout;
  const DLTensor* dlse;
  const rapt_weights_gradient* dweights;
  size_t dweights_count;
  const DLTensor* out;
  const DLTensor* lse;
} rapt_attention_upstream;

typedef struct rapt_mask_gradient {
  size_t struct_size;
  size_t mask;  // index into the options' masks
  const DLTensor* to;
} rapt_mask_gradient;

typedef struct rapt_attention_gradients {
  size_t struct_size;
  const DLTensor* dquery;
  const DLTensor* dkey;
  const DLTensor* dvalue;
  const DLTensor* dsinks;
  const rapt_mask_gradient* dmasks;
  size_t dmasks_count;
} rapt_attention_gradients;

// ---------------------------------------------------------------- cache and layer structs

typedef struct rapt_kv_cache_config {
  size_t struct_size;
  int64_t kv_heads;
  int64_t head_size;
  int64_t value_size;
  int32_t dtype;
  int32_t reserved;  // 0
  int64_t sequences;
  int64_t length;
  int64_t page_size;
  int64_t pages;
} rapt_kv_cache_config;

typedef struct rapt_rotary_options {
  size_t struct_size;
  double base;
  int64_t size;
  int32_t pairs;
  int32_t scaling_kind;
  double scaling_factor;
  int64_t scaling_original_length;
  int64_t scaling_length;
  double scaling_ramp_beta_fast;
  double scaling_ramp_beta_slow;
  int32_t has_scaling_ramp_attention_factor;
  int32_t scaling_ramp_truncate;
  double scaling_ramp_attention_factor;
  double scaling_low_freq_factor;
  double scaling_high_freq_factor;
  int64_t max_positions;
  int32_t threads;
  int32_t reserved;  // 0
  rapt_parallel_for parallel_for;
  void* parallel_for_context;
} rapt_rotary_options;

typedef struct rapt_layer_config {
  size_t struct_size;
  int64_t embed_size;
  int64_t heads;
  int64_t kv_heads;
  int64_t head_size;
  int64_t key_size;
  int64_t value_size;
  int64_t output_size;
  int32_t bias;
  int32_t has_output_bias;
  int32_t output_bias;
  int32_t separate_projections;
  int32_t add_bias_kv;
  int32_t add_zero_attention;
  double dropout;
  double output_dropout;
  int32_t batch_first;
  int32_t dtype;
  int64_t context_length;
  const rapt_rotary_options* rotary;  // null: none
  int64_t slice_index;
  int64_t slice_count;
} rapt_layer_config;

typedef struct rapt_layer rapt_layer;                              // rapt::MultiHeadAttention
typedef struct rapt_kv_cache rapt_kv_cache;                        // rapt::KvCache
typedef struct rapt_layer_workspace rapt_layer_workspace;          // rapt::LayerWorkspace
typedef struct rapt_layer_activations rapt_layer_activations;      // rapt::LayerActivations
typedef struct rapt_parameter_gradients rapt_parameter_gradients;  // rapt::LayerGradients::parameters
typedef struct rapt_safetensors rapt_safetensors;                  // rapt::SafetensorsFile
typedef struct rapt_npz rapt_npz;                                  // rapt::NpzFile
typedef struct rapt_array rapt_array;                              // rapt::NpyArray

typedef struct rapt_layer_options {
  size_t struct_size;
  const rapt_attention_options* attention;  // null: defaults
  int32_t weights;
  int32_t training;
  int64_t position;
  rapt_kv_cache* cache;
  const int64_t* sequences;
  size_t sequences_count;
  rapt_layer_workspace* workspace;
  rapt_layer_activations* keep;
} rapt_layer_options;

typedef struct rapt_layer_outputs {
  size_t struct_size;
  const DLTensor* out;
  const DLTensor* weights;
  const DLTensor* lse;
  const rapt_capture* captures;
  size_t captures_count;
} rapt_layer_outputs;

typedef struct rapt_layer_upstream {
  size_t struct_size;
  const DLTensor* dout;
  const DLTensor* dweights;
} rapt_layer_upstream;

typedef struct rapt_layer_gradients {
  size_t struct_size;
  const DLTensor* dquery;
  const DLTensor* dkey;
  const DLTensor* dvalue;
  rapt_parameter_gradients* parameters;  // accumulated; null: skipped
  const DLTensor* dsinks;
  const rapt_mask_gradient* dmasks;
  size_t dmasks_count;
} rapt_layer_gradients;

typedef struct rapt_load_options {
  size_t struct_size;
  const char* prefix;  // null: ""
  int64_t heads;
  int64_t kv_heads;
  int32_t batch_first;
  int32_t add_zero_attention;
  double dropout;
  const rapt_rotary_options* rotary;  // null: none
  int32_t has_dtype;
  int32_t dtype;
} rapt_load_options;

typedef struct rapt_save_options {
  size_t struct_size;
  const char* prefix;  // null: ""
  int32_t family;
  int32_t reserved;  // 0
  int32_t has_packed;
  int32_t packed;
  int32_t has_dtype;
  int32_t dtype;
} rapt_save_options;

// A tensor in a file and its role in the layer: "weight of q", "causal mask".
typedef struct rapt_tensor_role {
  const char* tensor;
  const char* role;
} rapt_tensor_role;

// What rapt_layer_load found in a file. Every pointer is valid as long as the layer.
typedef struct rapt_found_layer {
  size_t struct_size;
  const char* prefix;
  const rapt_tensor_role* tensors;
  size_t tensors_count;
  const char* const* left_over;
  size_t left_over_count;
  const char* const* missing;
  size_t missing_count;
  int32_t family;
  int32_t transposed;
  const char* text;  // human-readable summary, in lines
} rapt_found_layer;

// ---------------------------------------------------------------- file and machine structs

typedef struct rapt_named_tensor {
  const char* name;
  const DLTensor* value;
} rapt_named_tensor;

typedef struct rapt_text_pair {
  const char* key;
  const char* value;
} rapt_text_pair;

typedef struct rapt_safetensors_entry {
  size_t struct_size;
  const char* name;   // valid while the file is open, like `type` and `shape`
  const char* type;   // the type's name in the file: "F32", "I64"
  int32_t has_dtype;  // 0: rapt does not support the type
  int32_t dtype;
  const int64_t* shape;  // the rank may be higher than a tensor supports
  size_t shape_count;
  uint64_t begin;
  uint64_t end;
} rapt_safetensors_entry;

typedef struct rapt_npy_options {
  size_t struct_size;
  int32_t has_integers_as;
  int32_t integers_as;
} rapt_npy_options;

typedef struct rapt_instruction_set {
  size_t struct_size;
  char name[16];
  int32_t runs_here;
  int32_t in_use;
} rapt_instruction_set;

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

// ---------------------------------------------------------------- errors, version, machine

// The message of this thread's last failed call; "" if none has failed. Valid until the next failed call of this
// thread.
const char* rapt_last_error(void);
const char* rapt_version(void);  // "0.1.0"

rapt_status rapt_thread_count(int32_t* threads);
rapt_status rapt_set_thread_count(int32_t threads);
// Instruction sets this build has kernels for, best first.
rapt_status rapt_instruction_set_count(size_t* count);
rapt_status rapt_instruction_set_at(rapt_instruction_set* set, size_t index);  // `set` must be initialized
rapt_status rapt_use_instruction_set(const char* name);                        // "": the default
// Philox 4x32-10, the generator of dropout (rapt/random.h).
rapt_status rapt_philox4x32_10(uint32_t random[4], const uint32_t counter[4], const uint32_t key[2]);

// ---------------------------------------------------------------- defaults

// Each sets struct_size and every default. `struct_size` is sizeof the struct; an unknown size is rejected, and nothing
// is written.
rapt_status rapt_mask_init(rapt_mask* mask, size_t struct_size);
rapt_status rapt_attention_options_init(rapt_attention_options* options, size_t struct_size);
rapt_status rapt_capture_init(rapt_capture* capture, size_t struct_size);
rapt_status rapt_attention_outputs_init(rapt_attention_outputs* outputs, size_t struct_size);
rapt_status rapt_weights_gradient_init(rapt_weights_gradient* gradient, size_t struct_size);
rapt_status rapt_attention_upstream_init(rapt_attention_upstream* upstream, size_t struct_size);
rapt_status rapt_mask_gradient_init(rapt_mask_gradient* gradient, size_t struct_size);
rapt_status rapt_attention_gradients_init(rapt_attention_gradients* gradients, size_t struct_size);
rapt_status rapt_kv_cache_config_init(rapt_kv_cache_config* config, size_t struct_size);
rapt_status rapt_rotary_options_init(rapt_rotary_options* options, size_t struct_size);
rapt_status rapt_layer_config_init(rapt_layer_config* config, size_t struct_size);
rapt_status rapt_layer_options_init(rapt_layer_options* options, size_t struct_size);
rapt_status rapt_layer_outputs_init(rapt_layer_outputs* outputs, size_t struct_size);
rapt_status rapt_layer_upstream_init(rapt_layer_upstream* upstream, size_t struct_size);
rapt_status rapt_layer_gradients_init(rapt_layer_gradients* gradients, size_t struct_size);
rapt_status rapt_load_options_init(rapt_load_options* options, size_t struct_size);
rapt_status rapt_save_options_init(rapt_save_options* options, size_t struct_size);
rapt_status rapt_found_layer_init(rapt_found_layer* found, size_t struct_size);
rapt_status rapt_safetensors_entry_init(rapt_safetensors_entry* entry, size_t struct_size);
rapt_status rapt_npy_options_init(rapt_npy_options* options, size_t struct_size);
rapt_status rapt_instruction_set_init(rapt_instruction_set* set, size_t struct_size);

// ---------------------------------------------------------------- attention

// Null options mean the defaults, here and below.
rapt_status rapt_attention(const rapt_attention_outputs* outputs, const DLTensor* query, const DLTensor* key,
                           const DLTensor* value, const rapt_attention_options* options);
rapt_status rapt_attention_backward(const rapt_attention_gradients* gradients, const rapt_attention_upstream* upstream,
                                    const DLTensor* query, const DLTensor* key, const DLTensor* value,
                                    const rapt_attention_options* options);
// The size in bytes that options.workspace needs for exactly this call. The workspace need not be aligned.
rapt_status rapt_attention_workspace_bytes(size_t* bytes, const rapt_attention_outputs* outputs, const DLTensor* query,
                                           const DLTensor* key, const DLTensor* value,
                                           const rapt_attention_options* options);
rapt_status rapt_attention_backward_workspace_bytes(size_t* bytes, const rapt_attention_gradients* gradients,
                                                    const rapt_attention_upstream* upstream, const DLTensor* query,
                                                    const DLTensor* key, const DLTensor* value,
                                                    const rapt_attention_options* options);

// ---------------------------------------------------------------- the cache

rapt_status rapt_kv_cache_create(rapt_kv_cache** cache, const rapt_kv_cache_config* config);
void rapt_kv_cache_destroy(rapt_kv_cache* cache);
rapt_status rapt_kv_cache_add(rapt_kv_cache* cache, int64_t* id);
rapt_status rapt_kv_cache_remove(rapt_kv_cache* cache, int64_t id);
// Creates a sequence that starts with the first `length` tokens of `of`; −1: all of them.
rapt_status rapt_kv_cache_fork(rapt_kv_cache* cache, int64_t of, int64_t length, int64_t* id);
rapt_status rapt_kv_cache_truncate(rapt_kv_cache* cache, int64_t id, int64_t length);
// Row b of key and value goes to sequence ids[b]. `counts` gives the number of tokens to append from each row; null:
// all tokens.
rapt_status rapt_kv_cache_append(rapt_kv_cache* cache, const int64_t* ids, size_t ids_count, const DLTensor* key,
                                 const DLTensor* value, const int64_t* counts);
rapt_status rapt_kv_cache_length(const rapt_kv_cache* cache, int64_t id, int64_t* length);
rapt_status rapt_kv_cache_room(const rapt_kv_cache* cache, int64_t id, int64_t* room);
rapt_status rapt_kv_cache_free_pages(const rapt_kv_cache* cache, int64_t* pages);
rapt_status rapt_kv_cache_sequence_count(const rapt_kv_cache* cache, int64_t* count);
rapt_status rapt_kv_cache_bytes(const rapt_kv_cache* cache, size_t* bytes);
rapt_status rapt_kv_cache_get_config(const rapt_kv_cache* cache, rapt_kv_cache_config* config);
// Attention over the cached keys and values: batch row b of the query attends to sequence ids[b]. Key lengths, pages
// and scales come from the cache, and are rejected in the options.
rapt_status rapt_kv_cache_attention(const rapt_kv_cache* cache, const int64_t* ids, size_t ids_count,
                                    const rapt_attention_outputs* outputs, const DLTensor* query,
                                    const rapt_attention_options* options);

// ---------------------------------------------------------------- the layer

rapt_status rapt_layer_create(rapt_layer** layer, const rapt_layer_config* config, uint64_t seed);
rapt_status rapt_layer_load(rapt_layer** layer, const char* path, const rapt_load_options* options);
rapt_status rapt_layer_load_safetensors(rapt_layer** layer, const rapt_safetensors* file,
                                        const rapt_load_options* options);
rapt_status rapt_layer_save(const rapt_layer* layer, const char* path, const rapt_save_options* options);
rapt_status rapt_layer_slice(const rapt_layer* layer, int64_t index, int64_t count, rapt_layer** part);
void rapt_layer_destroy(rapt_layer* layer);

// What load found: the role of each tensor, and the tensors that were left over. Fails for a layer that was not loaded.
rapt_status rapt_layer_found(const rapt_layer* layer, rapt_found_layer* found);
// With every default filled in. `rotary` is valid as long as the layer.
rapt_status rapt_layer_get_config(const rapt_layer* layer, rapt_layer_config* config);

// Parameters in PyTorch's order and with its names. The layer owns the tensor's memory, including its shape, so the
// tensor is valid as long as the layer. Change a parameter with rapt_layer_set_parameter only.
rapt_status rapt_layer_parameter_count(const rapt_layer* layer, size_t* count);
rapt_status rapt_layer_parameter_name(const rapt_layer* layer, size_t index, const char** name);
rapt_status rapt_layer_parameter(const rapt_layer* layer, const char* name, DLTensor* value);
rapt_status rapt_layer_set_parameter(rapt_layer* layer, const char* name, const DLTensor* value);

// A null key means the query, and a null value means the key.
rapt_status rapt_layer_forward(const rapt_layer* layer, const rapt_layer_outputs* outputs, const DLTensor* query,
                               const DLTensor* key, const DLTensor* value, const rapt_layer_options* options);
// The gradients of a forward call that had `kept` as options.keep, given the same inputs and options.
rapt_status rapt_layer_backward(const rapt_layer* layer, const rapt_layer_gradients* gradients,
                                const rapt_layer_upstream* upstream, const rapt_layer_activations* kept,
                                const DLTensor* query, const DLTensor* key, const DLTensor* value,
                                const rapt_layer_options* options);

// The gradients of a layer's parameters, initially zero; backward accumulates into them. The handle owns the tensors;
// the caller may modify them.
rapt_status rapt_parameter_gradients_create(rapt_parameter_gradients** gradients, const rapt_layer* layer);
void rapt_parameter_gradients_destroy(rapt_parameter_gradients* gradients);
rapt_status rapt_parameter_gradients_set_zero(rapt_parameter_gradients* gradients);
rapt_status rapt_parameter_gradients_at(const rapt_parameter_gradients* gradients, const char* name, DLTensor* value);

rapt_status rapt_layer_workspace_create(rapt_layer_workspace** workspace);
rapt_status rapt_layer_workspace_bytes(const rapt_layer_workspace* workspace, size_t* bytes);
void rapt_layer_workspace_destroy(rapt_layer_workspace* workspace);
rapt_status rapt_layer_activations_create(rapt_layer_activations** activations);
rapt_status rapt_layer_activations_bytes(const rapt_layer_activations* activations, size_t* bytes);
void rapt_layer_activations_destroy(rapt_layer_activations* activations);

// ---------------------------------------------------------------- files

rapt_status rapt_safetensors_open(rapt_safetensors** file, const char* path);
// A file in memory, which must stay valid until the file is closed; `name` is used in error messages.
rapt_status rapt_safetensors_open_bytes(rapt_safetensors** file, const void* bytes, size_t size, const char* name);
void rapt_safetensors_close(rapt_safetensors* file);
rapt_status rapt_safetensors_count(const rapt_safetensors* file, size_t* count);
rapt_status rapt_safetensors_entry_at(const rapt_safetensors* file, size_t index, rapt_safetensors_entry* entry);
// The tensor with that name, readable while the file is open. An unknown name is an error that lists the names.
rapt_status rapt_safetensors_find(const rapt_safetensors* file, const char* name, DLTensor* value);
rapt_status rapt_safetensors_metadata_count(const rapt_safetensors* file, size_t* count);
rapt_status rapt_safetensors_metadata_at(const rapt_safetensors* file, size_t index, rapt_text_pair* pair);
rapt_status rapt_safetensors_write(const char* path, const rapt_named_tensor* tensors, size_t tensors_count,
                                   const rapt_text_pair* metadata, size_t metadata_count);

rapt_status rapt_npy_read(rapt_array** array, const char* path, const rapt_npy_options* options);
rapt_status rapt_npy_write(const char* path, const DLTensor* tensor);
rapt_status rapt_npz_open(rapt_npz** file, const char* path);
void rapt_npz_close(rapt_npz* file);
rapt_status rapt_npz_count(const rapt_npz* file, size_t* count);
rapt_status rapt_npz_name(const rapt_npz* file, size_t index, const char** name);
rapt_status rapt_npz_read(rapt_array** array, const rapt_npz* file, const char* name, const rapt_npy_options* options);
rapt_status rapt_npz_write(const char* path, const rapt_named_tensor* tensors, size_t tensors_count, int32_t compress);
// The array's tensor. The caller may read and modify it until the array is destroyed.
rapt_status rapt_array_tensor(const rapt_array* array, DLTensor* value);
void rapt_array_destroy(rapt_array* array);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#if defined(__cplusplus)
}
#endif
// NOLINTEND(modernize-*)

#endif
