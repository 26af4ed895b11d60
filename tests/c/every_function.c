// Calls every function of rapt.h from C99, with inputs whose results can be computed by hand. Scores are equal
// wherever possible, so that outputs are means.
//   every_function FOLDER     writes its files there
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rapt/rapt.h"

static int failures = 0;

#define EXPECT(truth)                                                     \
  do {                                                                    \
    if (!(truth)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #truth); \
      ++failures;                                                         \
    }                                                                     \
  } while (0)
#define GOOD(call)                                                                      \
  do {                                                                                  \
    if ((call) != RAPT_OK) {                                                            \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, rapt_last_error()); \
      ++failures;                                                                       \
    }                                                                                   \
  } while (0)
#define REFUSED(call, words)                          \
  do {                                                \
    EXPECT((call) == RAPT_BAD_ARGUMENT);              \
    EXPECT(strstr(rapt_last_error(), words) != NULL); \
  } while (0)

static int near(double a, double b) { return fabs(a - b) < 1e-6; }

static DLTensor f32(float* data, int32_t ndim, int64_t* shape) {
  DLTensor tensor = {data, {kDLCPU, 0}, ndim, {kDLFloat, 32, 1}, shape, NULL, 0};
  return tensor;
}

static const float* floats(const DLTensor* tensor) { return (const float*)tensor->data; }

// ---------------------------------------------------------------- machine

static void machine(void) {
  int32_t threads = 0;
  GOOD(rapt_set_thread_count(3));
  GOOD(rapt_thread_count(&threads));
  EXPECT(threads == 3);
  GOOD(rapt_set_thread_count(0));
  GOOD(rapt_thread_count(&threads));
  EXPECT(threads >= 1);
  EXPECT(strcmp(rapt_version(), EXPECTED_VERSION) == 0);

  size_t count = 0, in_use = 0;
  GOOD(rapt_instruction_set_count(&count));
  for (size_t n = 0; n < count; ++n) {
    rapt_instruction_set set;
    GOOD(rapt_instruction_set_init(&set, sizeof set));
    GOOD(rapt_instruction_set_at(&set, n));
    EXPECT(set.name[0] != '\0');
    if (!set.in_use) continue;
    ++in_use;
    EXPECT(set.runs_here);
    GOOD(rapt_use_instruction_set(set.name));
  }
  EXPECT(in_use == 1);
  GOOD(rapt_use_instruction_set(""));
  REFUSED(rapt_use_instruction_set("abacus"), "instruction set: unknown name abacus; this build has ");

  // The first of Random123's known answers for philox4x32 of 10 rounds.
  const uint32_t counter[4] = {0, 0, 0, 0}, key[2] = {0, 0};
  uint32_t random[4];
  GOOD(rapt_philox4x32_10(random, counter, key));
  EXPECT(random[0] == 0x6627e8d5U && random[1] == 0xe169c58dU && random[2] == 0xbc57ac4cU && random[3] == 0x9b00dbd8U);
}

// ---------------------------------------------------------------- attention

static int64_t tasks_run = 0;

static void backwards(void* context, int64_t count, rapt_task task, void* task_context) {
  *(int64_t*)context += count;
  for (int64_t n = count; n > 0; --n) task(task_context, n - 1);
}

// Queries are zeros, so all visible keys have the same weight. The one head has 3 tokens, with values 3, 5, 10.
static void attention(void) {
  float zeros[3] = {0, 0, 0}, values[3] = {3, 5, 10}, out_memory[3], lse_memory[3], weights_memory[9];
  int64_t shape[4] = {1, 1, 3, 1}, rows[3] = {1, 1, 3}, plane[4] = {1, 1, 3, 3};
  const DLTensor q = f32(zeros, 4, shape), v = f32(values, 4, shape), out = f32(out_memory, 4, shape);
  const DLTensor lse = f32(lse_memory, 3, rows), weights = f32(weights_memory, 4, plane);

  rapt_capture capture;
  GOOD(rapt_capture_init(&capture, sizeof capture));
  capture.to = &weights;
  rapt_attention_outputs outputs;
  GOOD(rapt_attention_outputs_init(&outputs, sizeof outputs));
  outputs.out = &out, outputs.lse = &lse, outputs.captures = &capture, outputs.captures_count = 1;
  rapt_attention_options options;
  GOOD(rapt_attention_options_init(&options, sizeof options));
  options.causal = 1;
  GOOD(rapt_attention(&outputs, &q, &q, &v, &options));
  EXPECT(near(out_memory[0], 3) && near(out_memory[1], 4) && near(out_memory[2], 6));
  EXPECT(near(lse_memory[0], 0) && near(lse_memory[2], log(3.0)));
  EXPECT(near(weights_memory[1], 0) && near(weights_memory[3], 0.5) && near(weights_memory[8], 1.0 / 3));

  // The next call has a mask that drops key 1, the caller's workspace and the caller's pool.
  unsigned char hidden[3] = {0, 1, 0};
  int64_t of_keys[4] = {1, 1, 1, 3};
  const DLTensor drop = {hidden, {kDLCPU, 0}, 4, {kDLBool, 8, 1}, of_keys, NULL, 0};
  rapt_mask mask;
  GOOD(rapt_mask_init(&mask, sizeof mask));
  mask.kind = RAPT_MASK_DROP, mask.view = &drop;
  options.masks = &mask, options.masks_count = 1;
  options.parallel_for = backwards, options.parallel_for_context = &tasks_run, options.threads = 2;
  size_t bytes = 0;
  GOOD(rapt_attention_workspace_bytes(&bytes, &outputs, &q, &q, &v, &options));
  options.workspace = malloc(bytes), options.workspace_bytes = bytes;
  GOOD(rapt_attention(&outputs, &q, &q, &v, &options));
  EXPECT(near(out_memory[1], 3) && near(out_memory[2], 6.5));
  EXPECT(tasks_run > 0);
  options.workspace_bytes = bytes - 1;
  REFUSED(rapt_attention(&outputs, &q, &q, &v, &options), "attention: workspace has ");
  free(options.workspace);
}

// dout is all ones, so dv_j is the total weight of token j. dweights is 1 for key 0 only.
static void gradients(void) {
  float zeros[3] = {0, 0, 0}, values[3] = {3, 5, 10}, ones[3] = {1, 1, 1}, bias_memory[9] = {0}, dv_memory[3];
  float dbias_memory[9], dweights_memory[9] = {1, 0, 0, 1, 0, 0, 1, 0, 0};
  int64_t shape[4] = {1, 1, 3, 1}, plane[4] = {1, 1, 3, 3};
  const DLTensor q = f32(zeros, 4, shape), v = f32(values, 4, shape), dout = f32(ones, 4, shape);
  const DLTensor dv = f32(dv_memory, 4, shape), bias = f32(bias_memory, 4, plane), dbias = f32(dbias_memory, 4, plane);
  const DLTensor arriving = f32(dweights_memory, 4, plane);

  rapt_mask mask;
  GOOD(rapt_mask_init(&mask, sizeof mask));
  mask.kind = RAPT_MASK_ADD, mask.view = &bias;
  rapt_attention_options options;
  GOOD(rapt_attention_options_init(&options, sizeof options));
  options.causal = 1, options.masks = &mask, options.masks_count = 1;
  rapt_mask_gradient dmask;
  GOOD(rapt_mask_gradient_init(&dmask, sizeof dmask));
  dmask.mask = 0, dmask.to = &dbias;
  rapt_attention_gradients wanted;
  GOOD(rapt_attention_gradients_init(&wanted, sizeof wanted));
  wanted.dvalue = &dv, wanted.dmasks = &dmask, wanted.dmasks_count = 1;
  rapt_attention_upstream upstream;
  GOOD(rapt_attention_upstream_init(&upstream, sizeof upstream));
  upstream.dout = &dout;
  GOOD(rapt_attention_backward(&wanted, &upstream, &q, &q, &v, &options));
  EXPECT(near(dv_memory[0], 11.0 / 6) && near(dv_memory[1], 5.0 / 6) && near(dv_memory[2], 2.0 / 6));
  EXPECT(near(dbias_memory[3], 0.5 * (3 - 4)) && near(dbias_memory[8], (10.0 - 6) / 3));

  rapt_weights_gradient dweights;
  GOOD(rapt_weights_gradient_init(&dweights, sizeof dweights));
  dweights.stage = RAPT_STAGE_WEIGHTS, dweights.from = &arriving;
  upstream.dout = NULL, upstream.dweights = &dweights, upstream.dweights_count = 1;
  size_t bytes = 0;
  GOOD(rapt_attention_backward_workspace_bytes(&bytes, &wanted, &upstream, &q, &q, &v, &options));
  options.workspace = malloc(bytes), options.workspace_bytes = bytes;
  GOOD(rapt_attention_backward(&wanted, &upstream, &q, &q, &v, &options));
  EXPECT(near(dv_memory[0], 0) && near(dbias_memory[3], 0.25) && near(dbias_memory[4], -0.25));
  free(options.workspace);
}

// ---------------------------------------------------------------- cache

static void cache(void) {
  rapt_kv_cache_config config;
  GOOD(rapt_kv_cache_config_init(&config, sizeof config));
  config.head_size = 1, config.sequences = 2, config.page_size = 16, config.pages = 4;
  rapt_kv_cache* cache = NULL;
  GOOD(rapt_kv_cache_create(&cache, &config));
  GOOD(rapt_kv_cache_get_config(cache, &config));
  EXPECT(config.value_size == 1 && config.length == 64);

  float values[3] = {3, 5, 10}, zero[1] = {0}, out_memory[1];
  int64_t shape[4] = {1, 1, 3, 1}, one[4] = {1, 1, 1, 1}, id = -1, fork = -1, number = 0;
  const DLTensor kv = f32(values, 4, shape), q = f32(zero, 4, one), out = f32(out_memory, 4, one);
  GOOD(rapt_kv_cache_add(cache, &id));
  const int64_t counts[1] = {2};
  GOOD(rapt_kv_cache_append(cache, &id, 1, &kv, &kv, NULL));
  GOOD(rapt_kv_cache_append(cache, &id, 1, &kv, &kv, counts));
  GOOD(rapt_kv_cache_length(cache, id, &number));
  EXPECT(number == 5);
  GOOD(rapt_kv_cache_room(cache, id, &number));
  EXPECT(number == 59);
  GOOD(rapt_kv_cache_fork(cache, id, 3, &fork));
  GOOD(rapt_kv_cache_sequence_count(cache, &number));
  EXPECT(number == 2);
  GOOD(rapt_kv_cache_free_pages(cache, &number));
  EXPECT(number == 3);
  size_t bytes = 0;
  GOOD(rapt_kv_cache_bytes(cache, &bytes));
  EXPECT(bytes == 2 * 4 * 16 * sizeof(float));

  rapt_attention_outputs outputs;
  GOOD(rapt_attention_outputs_init(&outputs, sizeof outputs));
  outputs.out = &out;
  GOOD(rapt_kv_cache_attention(cache, &fork, 1, &outputs, &q, NULL));
  EXPECT(near(out_memory[0], 6));
  GOOD(rapt_kv_cache_truncate(cache, fork, 2));
  GOOD(rapt_kv_cache_attention(cache, &fork, 1, &outputs, &q, NULL));
  EXPECT(near(out_memory[0], 4));
  GOOD(rapt_kv_cache_remove(cache, fork));
  EXPECT(rapt_kv_cache_length(cache, fork, &number) == RAPT_BAD_ARGUMENT);
  rapt_kv_cache_destroy(cache);
}

// ---------------------------------------------------------------- layer

// The projections of q and k are zero, and those of v and the output are the identity, so out is the mean of the tokens
// plus the bias.
static rapt_layer* layer_of_means(void) {
  rapt_rotary_options rotary;
  GOOD(rapt_rotary_options_init(&rotary, sizeof rotary));
  rapt_layer_config config;
  GOOD(rapt_layer_config_init(&config, sizeof config));
  config.embed_size = 2, config.heads = 1, config.batch_first = 1, config.rotary = &rotary;
  rapt_layer* layer = NULL;
  GOOD(rapt_layer_create(&layer, &config, 1));
  float in[12] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 1}, bias[2] = {0.5F, 0};
  int64_t in_shape[2] = {6, 2}, out_shape[2] = {2, 2}, bias_shape[1] = {2};
  const DLTensor in_proj = f32(in, 2, in_shape), out_proj = f32(in + 8, 2, out_shape),
                 out_bias = f32(bias, 1, bias_shape);
  GOOD(rapt_layer_set_parameter(layer, "in_proj_weight", &in_proj));
  GOOD(rapt_layer_set_parameter(layer, "out_proj.weight", &out_proj));
  GOOD(rapt_layer_set_parameter(layer, "out_proj.bias", &out_bias));
  REFUSED(rapt_layer_set_parameter(layer, "W_q", &in_proj), "there is no parameter \"W_q\"; this layer has in_proj_w");
  return layer;
}

static void expect_means(const rapt_layer* layer) {
  float x_memory[4] = {1, 2, 3, 6}, out_memory[4], weights_memory[4];
  int64_t shape[3] = {1, 2, 2};
  const DLTensor x = f32(x_memory, 3, shape), out = f32(out_memory, 3, shape), weights = f32(weights_memory, 3, shape);
  rapt_layer_outputs outputs;
  GOOD(rapt_layer_outputs_init(&outputs, sizeof outputs));
  outputs.out = &out, outputs.weights = &weights;
  rapt_layer_options options;
  GOOD(rapt_layer_options_init(&options, sizeof options));
  options.weights = RAPT_WEIGHTS_MEAN;
  GOOD(rapt_layer_forward(layer, &outputs, &x, NULL, NULL, &options));
  EXPECT(near(out_memory[0], 2.5) && near(out_memory[1], 4) && near(out_memory[2], 2.5) &&
         near(weights_memory[1], 0.5));
}

static void layer(void) {
  rapt_layer* layer = layer_of_means();
  expect_means(layer);
  rapt_layer_config config;
  GOOD(rapt_layer_config_init(&config, sizeof config));
  GOOD(rapt_layer_get_config(layer, &config));
  EXPECT(config.head_size == 2 && config.output_size == 2 && config.rotary != NULL && config.rotary->base == 10000.0);

  size_t count = 0;
  const char* name = NULL;
  DLTensor parameter;
  GOOD(rapt_layer_parameter_count(layer, &count));
  EXPECT(count == 4);
  GOOD(rapt_layer_parameter_name(layer, 3, &name));
  EXPECT(strcmp(name, "out_proj.bias") == 0);
  REFUSED(rapt_layer_parameter_name(layer, 4, &name), "index is 4; there are 4");
  GOOD(rapt_layer_parameter(layer, name, &parameter));
  EXPECT(parameter.ndim == 1 && parameter.shape[0] == 2 && near(floats(&parameter)[0], 0.5));

  // Forward and backward: dout is one for two tokens, so the gradient of the output bias is 2, and 4 after two calls.
  rapt_layer_activations* kept = NULL;
  rapt_layer_workspace* workspace = NULL;
  rapt_parameter_gradients* dparameters = NULL;
  GOOD(rapt_layer_activations_create(&kept));
  GOOD(rapt_layer_workspace_create(&workspace));
  GOOD(rapt_parameter_gradients_create(&dparameters, layer));
  float x_memory[4] = {1, 2, 3, 6}, out_memory[4], ones[4] = {1, 1, 1, 1}, dx_memory[4];
  int64_t shape[3] = {1, 2, 2};
  const DLTensor x = f32(x_memory, 3, shape), out = f32(out_memory, 3, shape), dout = f32(ones, 3, shape);
  const DLTensor dx = f32(dx_memory, 3, shape);
  rapt_layer_outputs outputs;
  GOOD(rapt_layer_outputs_init(&outputs, sizeof outputs));
  outputs.out = &out;
  rapt_layer_options options;
  GOOD(rapt_layer_options_init(&options, sizeof options));
  options.keep = kept, options.workspace = workspace;
  rapt_layer_upstream upstream;
  GOOD(rapt_layer_upstream_init(&upstream, sizeof upstream));
  upstream.dout = &dout;
  rapt_layer_gradients wanted;
  GOOD(rapt_layer_gradients_init(&wanted, sizeof wanted));
  wanted.dquery = &dx, wanted.parameters = dparameters;
  GOOD(rapt_layer_forward(layer, &outputs, &x, NULL, NULL, &options));
  GOOD(rapt_layer_backward(layer, &wanted, &upstream, kept, &x, NULL, NULL, &options));
  GOOD(rapt_layer_backward(layer, &wanted, &upstream, kept, &x, NULL, NULL, &options));
  GOOD(rapt_parameter_gradients_at(dparameters, "out_proj.bias", &parameter));
  EXPECT(near(floats(&parameter)[0], 4) && near(dx_memory[0], 1));
  GOOD(rapt_parameter_gradients_set_zero(dparameters));
  EXPECT(floats(&parameter)[0] == 0);
  size_t bytes = 0;
  GOOD(rapt_layer_activations_bytes(kept, &bytes));
  EXPECT(bytes > 0);
  GOOD(rapt_layer_workspace_bytes(workspace, &bytes));
  EXPECT(bytes > 0);
  rapt_parameter_gradients_destroy(dparameters);
  rapt_layer_workspace_destroy(workspace);
  rapt_layer_activations_destroy(kept);

  rapt_layer* part = NULL;
  REFUSED(rapt_layer_slice(layer, 0, 2, &part), "slice.count 2 does not divide heads 1");
  GOOD(rapt_layer_slice(layer, 0, 1, &part));
  expect_means(part);
  rapt_layer_destroy(part);
  rapt_layer_destroy(layer);
}

// ---------------------------------------------------------------- files

static void layer_files(const char* path) {
  rapt_layer *saved = layer_of_means(), *loaded = NULL;
  rapt_save_options save;
  GOOD(rapt_save_options_init(&save, sizeof save));
  save.family = RAPT_NAMES_W_Q, save.prefix = "encoder.0";
  GOOD(rapt_layer_save(saved, path, &save));
  rapt_layer_destroy(saved);

  rapt_load_options load;
  GOOD(rapt_load_options_init(&load, sizeof load));
  load.batch_first = 1;
  GOOD(rapt_layer_load(&loaded, path, &load));
  expect_means(loaded);
  rapt_found_layer found;
  GOOD(rapt_found_layer_init(&found, sizeof found));
  GOOD(rapt_layer_found(loaded, &found));
  EXPECT(found.family == RAPT_NAMES_W_Q && strcmp(found.prefix, "encoder.0.") == 0 && found.tensors_count == 8);
  EXPECT(strstr(found.text, "encoder.0.W_q.weight: weight of q\n") != NULL);
  rapt_layer_destroy(loaded);

  rapt_safetensors* file = NULL;
  GOOD(rapt_safetensors_open(&file, path));
  GOOD(rapt_layer_load_safetensors(&loaded, file, &load));
  rapt_safetensors_close(file);
  expect_means(loaded);
  rapt_layer_destroy(loaded);
}

static void safetensors(const char* path) {
  float numbers[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[2] = {2, 3};
  const DLTensor x = f32(numbers, 2, shape);
  const rapt_named_tensor tensors[1] = {{"x", &x}};
  const rapt_text_pair words[1] = {{"made", "by hand"}};
  GOOD(rapt_safetensors_write(path, tensors, 1, words, 1));

  FILE* raw = fopen(path, "rb");
  char bytes[512];
  const size_t size = raw == NULL ? 0 : fread(bytes, 1, sizeof bytes, raw);
  if (raw != NULL) fclose(raw);
  for (int from_memory = 0; from_memory < 2; ++from_memory) {
    rapt_safetensors* file = NULL;
    size_t count = 0;
    rapt_text_pair pair = {NULL, NULL};
    rapt_safetensors_entry entry;
    DLTensor found;
    GOOD(from_memory ? rapt_safetensors_open_bytes(&file, bytes, size, "memory") : rapt_safetensors_open(&file, path));
    GOOD(rapt_safetensors_count(file, &count));
    EXPECT(count == 1);
    GOOD(rapt_safetensors_entry_init(&entry, sizeof entry));
    GOOD(rapt_safetensors_entry_at(file, 0, &entry));
    EXPECT(strcmp(entry.name, "x") == 0 && strcmp(entry.type, "F32") == 0 && entry.has_dtype &&
           entry.dtype == RAPT_F32 && entry.shape_count == 2 && entry.shape[1] == 3 && entry.end - entry.begin == 24);
    GOOD(rapt_safetensors_find(file, "x", &found));
    EXPECT(found.ndim == 2 && found.shape[0] == 2 && found.strides == NULL && floats(&found)[5] == 6);
    EXPECT(rapt_safetensors_find(file, "y", &found) == RAPT_FILE_ERROR);
    GOOD(rapt_safetensors_metadata_count(file, &count));
    EXPECT(count == 1);
    GOOD(rapt_safetensors_metadata_at(file, 0, &pair));
    EXPECT(strcmp(pair.key, "made") == 0 && strcmp(pair.value, "by hand") == 0);
    rapt_safetensors_close(file);
  }
}

static void arrays(const char* npy, const char* npz) {
  float numbers[6] = {1, 2, 3, 4, 5, 6};
  int64_t shape[2] = {3, 2}, strides[2] = {1, 3};
  DLTensor x = f32(numbers, 2, shape), read;
  x.strides = strides;  // columns
  rapt_array* array = NULL;
  rapt_npy_options options;
  GOOD(rapt_npy_options_init(&options, sizeof options));
  GOOD(rapt_npy_write(npy, &x));
  GOOD(rapt_npy_read(&array, npy, &options));
  GOOD(rapt_array_tensor(array, &read));
  EXPECT(read.ndim == 2 && read.shape[0] == 3 && floats(&read)[1] == 4);
  rapt_array_destroy(array);

  const rapt_named_tensor tensors[2] = {{"x", &x}, {"again", &x}};
  rapt_npz* file = NULL;
  size_t count = 0;
  const char* name = NULL;
  GOOD(rapt_npz_write(npz, tensors, 2, 0));
  GOOD(rapt_npz_open(&file, npz));
  GOOD(rapt_npz_count(file, &count));
  EXPECT(count == 2);
  GOOD(rapt_npz_name(file, 1, &name));
  EXPECT(strcmp(name, "again") == 0);
  GOOD(rapt_npz_read(&array, file, name, NULL));
  GOOD(rapt_array_tensor(array, &read));
  EXPECT(floats(&read)[5] == 6);
  rapt_array_destroy(array);
  rapt_npz_close(file);
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fprintf(stderr, "usage: every_function FOLDER\n");
    return 2;
  }
  char paths[4][1024];
  const char* names[4] = {"layer.safetensors", "x.safetensors", "x.npy", "x.npz"};
  for (int n = 0; n < 4; ++n) snprintf(paths[n], sizeof paths[n], "%s/%s", argv[1], names[n]);
  EXPECT(strcmp(rapt_last_error(), "") == 0);
  machine();
  attention();
  gradients();
  cache();
  layer();
  layer_files(paths[0]);
  safetensors(paths[1]);
  arrays(paths[2], paths[3]);
  printf("%d failures\n", failures);
  return failures == 0 ? 0 : 1;
}
