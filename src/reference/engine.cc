#include "reference/engine.h"

#include "reference/passes.h"

namespace rapt {

constinit const EngineRow kReferenceEngine = {
    .engine = Engine::reference,
    .name = "reference",
    .device = Device::Kind::cpu,
    .device_name = "cpu",
    .variant = []() -> const void* { return nullptr; },
    .attention = {.cannot = [](const AttentionProblem&) { return std::string(); },
                  .plan = reference::plan_forward,
                  .run = reference::forward,
                  .plan_backward = reference::plan_backward,
                  .run_backward = reference::backward},
    .product = {.cannot = [](DType) { return std::string(); },
                .packed_bytes = reference::packed_bytes,
                .pack = reference::pack,
                .plan = reference::plan_product,
                .run = reference::multiply},
    .layer = nullptr,  // the CPU engine's functions support f64 too
    .memory = nullptr,
};

}  // namespace rapt
