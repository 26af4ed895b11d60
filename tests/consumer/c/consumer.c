// Uses the installed package from C, and returns 0 only if the result is correct.
#include <stdio.h>
#include <string.h>

#include <rapt/rapt.h>

static int near(float a, float b) { return a - b < 1e-6F && b - a < 1e-6F; }

int main(void) {
  // One head, two tokens of size 1. Causal: token 0 sees itself; token 1 sees both with equal scores.
  float query[2] = {1.0F, 0.0F}, values[2] = {3.0F, 5.0F}, results[2] = {0.0F, 0.0F};
  int64_t shape[4] = {1, 1, 2, 1};
  const DLTensor q = {query, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, NULL, 0};
  const DLTensor v = {values, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, NULL, 0};
  const DLTensor out = {results, {kDLCPU, 0}, 4, {kDLFloat, 32, 1}, shape, NULL, 0};
  rapt_attention_outputs outputs;
  rapt_attention_options options;
  rapt_attention_outputs_init(&outputs, sizeof outputs);
  rapt_attention_options_init(&options, sizeof options);
  outputs.out = &out;
  options.causal = 1;
  if (rapt_attention(&outputs, &q, &q, &v, &options) != RAPT_OK) {
    printf("consumer: %s\n", rapt_last_error());
    return 1;
  }
  if (!near(results[0], 3.0F) || !near(results[1], 4.0F)) {
    printf("consumer: got %g and %g, expected 3 and 4\n", (double)results[0], (double)results[1]);
    return 1;
  }

  // An exception inside the library becomes a status.
  options.softcap = -1.0;
  if (rapt_attention(&outputs, &q, &q, &v, &options) != RAPT_BAD_ARGUMENT ||
      strcmp(rapt_last_error(), "attention: softcap is -1; it must be positive, or 0 for none") != 0) {
    printf("consumer: a softcap of -1 was taken, or refused in other words: %s\n", rapt_last_error());
    return 1;
  }
  printf("consumer: right answer from rapt %s; refused as it should be: %s\n", rapt_version(), rapt_last_error());
  return 0;
}
