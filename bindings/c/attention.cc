#include "rapt/attention.h"

#include "options.h"
#include "status.h"

using rapt::c::Caller;
using rapt::c::guarded;

rapt_status rapt_attention(const rapt_attention_outputs* outputs, const DLTensor* query, const DLTensor* key,
                           const DLTensor* value, const rapt_attention_options* options) {
  return guarded([&] {
    const Caller caller("rapt_attention");
    rapt::attention(attention_outputs(caller, outputs), caller.view({"query"}, query), caller.view({"key"}, key),
                    caller.view({"value"}, value), attention_options(caller, options));
  });
}

rapt_status rapt_attention_workspace_bytes(size_t* bytes, const rapt_attention_outputs* outputs, const DLTensor* query,
                                           const DLTensor* key, const DLTensor* value,
                                           const rapt_attention_options* options) {
  return guarded([&] {
    const Caller caller("rapt_attention_workspace_bytes");
    caller.the("bytes", bytes) = rapt::attention_workspace_bytes(
        attention_outputs(caller, outputs), caller.view({"query"}, query), caller.view({"key"}, key),
        caller.view({"value"}, value), attention_options(caller, options));
  });
}

rapt_status rapt_attention_backward(const rapt_attention_gradients* gradients, const rapt_attention_upstream* upstream,
                                    const DLTensor* query, const DLTensor* key, const DLTensor* value,
                                    const rapt_attention_options* options) {
  return guarded([&] {
    const Caller caller("rapt_attention_backward");
    rapt::attention_backward(attention_gradients(caller, gradients), attention_upstream(caller, upstream),
                             caller.view({"query"}, query), caller.view({"key"}, key), caller.view({"value"}, value),
                             attention_options(caller, options));
  });
}

rapt_status rapt_attention_backward_workspace_bytes(size_t* bytes, const rapt_attention_gradients* gradients,
                                                    const rapt_attention_upstream* upstream, const DLTensor* query,
                                                    const DLTensor* key, const DLTensor* value,
                                                    const rapt_attention_options* options) {
  return guarded([&] {
    const Caller caller("rapt_attention_backward_workspace_bytes");
    caller.the("bytes", bytes) = rapt::attention_backward_workspace_bytes(
        attention_gradients(caller, gradients), attention_upstream(caller, upstream), caller.view({"query"}, query),
        caller.view({"key"}, key), caller.view({"value"}, value), attention_options(caller, options));
  });
}
