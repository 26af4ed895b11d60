// The C interface, from C99: attention on your data, which is not copied, its weights and gradients, and a layer.
#include <stdio.h>
#include <stdlib.h>

#include "rapt/rapt.h"

enum { kTokens = 4, kHeads = 2, kSize = 8, kEmbed = kHeads * kSize };

// Every call returns a status; the message says what was requested, what was found and what would work.
static void check(rapt_status status) {
  if (status == RAPT_OK) return;
  fprintf(stderr, "%s\n", rapt_last_error());
  exit(EXIT_FAILURE);
}

// A DLPack tensor: your memory, with shape and strides. If strides is NULL, the tensor is row-major.
static DLTensor tensor(float* data, int32_t ndim, int64_t* shape, int64_t* strides) {
  DLTensor t = {data, {kDLCPU, 0}, ndim, {kDLFloat, 32, 1}, shape, strides, 0};
  return t;
}

static void attend(float* x) {
  // x is (B, L, E), the output of a projection; attention takes (B, H, L, D): only the strides differ.
  int64_t shape[] = {1, kHeads, kTokens, kSize}, strides[] = {kTokens * kEmbed, kSize, kEmbed, 1};
  const DLTensor qkv = tensor(x, 4, shape, strides);
  float out_memory[kTokens * kEmbed], weights_memory[kHeads * kTokens * kTokens];
  int64_t weights_shape[] = {1, kHeads, kTokens, kTokens};
  const DLTensor out = tensor(out_memory, 4, shape, strides), weights = tensor(weights_memory, 4, weights_shape, NULL);

  // Structs start with their size; init functions set the size and every default.
  rapt_attention_options options;
  check(rapt_attention_options_init(&options, sizeof options));
  options.causal = 1;
  rapt_capture capture;
  check(rapt_capture_init(&capture, sizeof capture));
  capture.stage = RAPT_STAGE_WEIGHTS;
  capture.to = &weights;
  rapt_attention_outputs outputs;
  check(rapt_attention_outputs_init(&outputs, sizeof outputs));
  outputs.out = &out;
  outputs.captures = &capture;
  outputs.captures_count = 1;
  check(rapt_attention(&outputs, &qkv, &qkv, &qkv, &options));
  for (int i = 0; i < kTokens; ++i) {
    printf("head 0, token %d looks at:", i);
    for (int j = 0; j < kTokens; ++j) printf("  %.3f", (double)weights_memory[i * kTokens + j]);
    printf("\n");
  }

  // The gradient of the sum of `out`: dout is all ones.
  float ones[kTokens * kEmbed], dvalue_memory[kTokens * kEmbed];
  for (int n = 0; n < kTokens * kEmbed; ++n) ones[n] = 1.0F;
  const DLTensor dout = tensor(ones, 4, shape, strides), dvalue = tensor(dvalue_memory, 4, shape, strides);
  rapt_attention_upstream upstream;
  check(rapt_attention_upstream_init(&upstream, sizeof upstream));
  upstream.dout = &dout;
  rapt_attention_gradients gradients;
  check(rapt_attention_gradients_init(&gradients, sizeof gradients));
  gradients.dvalue = &dvalue;
  check(rapt_attention_backward(&gradients, &upstream, &qkv, &qkv, &qkv, &options));
  printf("head 0, token 0 receives a total weight of %.3f\n", (double)dvalue_memory[0]);

  // Errors are reported before anything is written.
  options.softcap = -1.0;
  if (rapt_attention(&outputs, &qkv, &qkv, &qkv, &options) == RAPT_BAD_ARGUMENT) printf("%s\n", rapt_last_error());
}

static void run_layer(float* x) {
  // torch.nn.MultiheadAttention(16, 2, batch_first=True), with parameters drawn from seed 1.
  rapt_layer_config config;
  check(rapt_layer_config_init(&config, sizeof config));
  config.embed_size = kEmbed;
  config.heads = kHeads;
  config.batch_first = 1;
  rapt_layer* layer = NULL;
  check(rapt_layer_create(&layer, &config, 1));

  size_t count = 0;
  check(rapt_layer_parameter_count(layer, &count));
  for (size_t n = 0; n < count; ++n) {
    const char* name = NULL;
    DLTensor parameter;
    check(rapt_layer_parameter_name(layer, n, &name));
    check(rapt_layer_parameter(layer, name, &parameter));
    printf("%s has %d dimensions, the first of size %d\n", name, (int)parameter.ndim, (int)parameter.shape[0]);
  }

  float out_memory[kTokens * kEmbed];
  int64_t shape[] = {1, kTokens, kEmbed};
  const DLTensor in = tensor(x, 3, shape, NULL), out = tensor(out_memory, 3, shape, NULL);
  rapt_layer_outputs outputs;
  check(rapt_layer_outputs_init(&outputs, sizeof outputs));
  outputs.out = &out;
  check(rapt_layer_forward(layer, &outputs, &in, NULL, NULL, NULL));  // self-attention, with every option's default
  printf("the layer's first number is %.4f\n", (double)out_memory[0]);
  rapt_layer_destroy(layer);
}

int main(void) {
  float x[kTokens * kEmbed];
  for (int n = 0; n < kTokens * kEmbed; ++n) x[n] = (float)((n * 37) % 17) / 17.0F;
  printf("rapt %s\n", rapt_version());
  attend(x);
  run_layer(x);
  return 0;
}
