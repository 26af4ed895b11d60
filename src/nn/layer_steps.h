// What the steps of forward and backward share: the layer, the call, and the options for attention.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "attention/call_workers.h"
#include "nn/activations.h"
#include "nn/layer_call.h"
#include "nn/layer_workspace.h"
#include "nn/projections.h"
#include "nn/rotary_state.h"

namespace rapt::nn {

// References to a layer, for the duration of a call.
struct LayerParts {
  const Parameters& parameters;
  const Projections& projections;
  const std::optional<Rotary>& rotary;
};

class LayerSteps {
 public:
  LayerSteps(const LayerCall& call, const LayerParts& layer, LayerWorkspace::Memory& memory)
      : call_(call),
        layer_(layer),
        memory_(memory),
        workers_(call_workers(Checks(kForward), call.options.attention.threads, call.options.attention.parallel_for)),
        ops_(*device_row(call.device()).layer) {}

 protected:
  // The caller's options, restricted to the heads of this slice, with the layer's own additions.
  AttentionOptions& attention_options();
  // Rotary embedding (step 2 of forward), or its inverse for gradients. Added keys have no position and are not
  // rotated.
  void rotate(const Activations& activations, bool back);

  const LayerCall& call_;
  const LayerParts& layer_;
  LayerWorkspace::Memory& memory_;
  const Workers workers_;
  const LayerOps& ops_;  // of the call's device
  const LayerProducts products_{workers_, memory_.scratch};

 private:
  void take_own_heads(AttentionOptions& options) const;
  RotaryPositions positions(const std::vector<std::int64_t>& starts, std::int64_t length);
};

}  // namespace rapt::nn
