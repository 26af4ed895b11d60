// Replaces the CUDA engine in a build without nvcc, or with RAPT_CUDA=OFF.
#include "cuda/engine.h"
#include "rapt/cuda.h"
#include "rapt/tensor_core.h"

namespace rapt {

namespace {

constexpr const char* kAbsent = "this build has no cuda engine";

[[noreturn]] void refuse() { throw Error(kAbsent); }

}  // namespace

constinit const EngineRow kCudaEngine = {
    .engine = Engine::cuda,
    .name = "cuda",
    .device = Device::Kind::cuda,
    .device_name = "cuda",
    .absent = kAbsent,
    .variant = []() -> const void* { return nullptr; },
    .attention = {
        .cannot = [](const AttentionProblem& /*problem*/) { return std::string(kAbsent); },
        .plan = [](const ForwardProblem& /*problem*/) -> Plan { refuse(); },
        .run = [](const ForwardProblem& /*problem*/, const Plan& /*plan*/, const Buffers& /*buffers*/) { refuse(); },
        .plan_backward = [](const BackwardProblem& /*problem*/) -> Plan { refuse(); },
        .run_backward = [](const BackwardProblem& /*problem*/, const Plan& /*plan*/,
                           const Buffers& /*buffers*/) { refuse(); }},
    .product = {
        .cannot = [](DType /*dtype*/) { return std::string(kAbsent); },
        .packed_bytes = [](const PackedWeights& /*weights*/) -> std::size_t { refuse(); },
        .pack = [](const ConstTensorView& /*from*/, const PackedWeights& /*to*/,
                   const Workers& /*workers*/) { refuse(); },
        .plan = [](const ProductProblem& /*problem*/) -> Plan { refuse(); },
        .run = [](const ProductProblem& /*problem*/, const Plan& /*plan*/, const Buffers& /*buffers*/) { refuse(); }},
    .layer = nullptr,  // null: no tensor can be on such a device
    .memory = nullptr,
};

namespace cuda {

std::vector<DeviceInfo> devices() { return {}; }
std::string unavailable_because() { return kAbsent; }
std::string driver() { return {}; }
std::vector<KernelSetInfo> kernel_sets() { return {}; }

TensorCoreReport check_tensor_core(int /*device*/) { throw Error(std::string("tensor-core check: ") + kAbsent); }

Stream::Stream(int /*device*/) { refuse(); }
Stream::Stream(Stream&& other) noexcept : handle_(other.handle_), device_(other.device_), owned_(other.owned_) {}
Stream& Stream::operator=(Stream&& other) noexcept = default;
Stream::~Stream() = default;
void Stream::wait() const { refuse(); }

}  // namespace cuda

}  // namespace rapt
