// The CUDA engine: checks what depends on the device, builds the arguments of kernels and launches them. Everything is
// checked before anything is enqueued.
#include "cuda/engine.h"

#include <algorithm>
#include <cuda_runtime_api.h>
#include <vector>

#include "core/text.h"
#include "cuda/build_arguments.h"
#include "cuda/device.h"
#include "cuda/errors.h"
#include "cuda/kernel_sets.h"
#include "cuda/memory.h"
#include "cuda/plain.h"
#include "cuda/small.h"

namespace rapt::cuda {

namespace {

// ---------------------------------------------------------------- checks

// Checks that the stream belongs to this GPU. cudaStreamIsCapturing is also the first call that can report an error of
// earlier work.
void check_stream(const Launch& launch) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  require(cudaStreamIsCapturing(launch.stream, &status), "cudaStreamIsCapturing", launch.device);
  const bool is_default =
      launch.stream == nullptr || launch.stream == cudaStreamLegacy || launch.stream == cudaStreamPerThread;
  if (is_default) return;  // default streams belong to the current GPU
  // The device of a stream that is being captured cannot be queried, because the query would end the capture. A launch
  // on another GPU's stream fails anyway.
  if (status != cudaStreamCaptureStatusNone) return;
  int device = launch.device;
  require(cudaStreamGetDevice(launch.stream, &device), "cudaStreamGetDevice", launch.device);
  if (device != launch.device) {
    throw Error(text("the tensors are on cuda:", launch.device, ", the stream belongs to cuda:", device,
                     "; both must belong to the same GPU"));
  }
}

class MemoryCheck {
 public:
  explicit MemoryCheck(int device) : device_(device) {}

  // Checks that the GPU can read and write the memory of a tensor.
  void operator()(const char* name, const ConstTensorView& view) const {
    if (!view.defined() || view.count() == 0) return;
    cudaPointerAttributes found{};
    require(cudaPointerGetAttributes(&found, view.data()), "cudaPointerGetAttributes", device_);
    switch (found.type) {
      case cudaMemoryTypeManaged:
      case cudaMemoryTypeHost: return;  // managed and pinned memory: every GPU can use it
      case cudaMemoryTypeDevice:
        if (found.device == device_) return;
        throw Error(
            text(name, " was passed as a tensor on cuda:", device_, ", but its memory is on cuda:", found.device));
      default:
        throw Error(text(name, " was passed as a tensor on cuda:", device_,
                         ", but it is in host memory (or was freed); the GPU cannot read it"));
    }
  }

 private:
  int device_;
};

void check_inputs(const MemoryCheck& check, const AttentionProblem& problem) {
  check("query", problem.query);
  check("key", problem.key);
  check("value", problem.value);
  check("key_scales", problem.key_scales);
  check("value_scales", problem.value_scales);
  for (const Mask& mask : problem.masks) check("a mask", mask.view);
  check("sinks", problem.sinks);
}

void check_device(const ForwardProblem& problem, const Launch& launch) {
  check_stream(launch);
  const MemoryCheck check(launch.device);
  check_inputs(check, problem);
  check("out", problem.outputs.out);
  check("lse", problem.outputs.lse);
  for (const Capture& capture : problem.outputs.captures) check("a capture", capture.to);
}

void check_device(const BackwardProblem& problem, const Launch& launch) {
  check_stream(launch);
  const MemoryCheck check(launch.device);
  check_inputs(check, problem);
  check("dout", problem.upstream.dout);
  check("dlse", problem.upstream.dlse);
  for (const WeightsGradient& gradient : problem.upstream.dweights) check("a gradient of weights", gradient.from);
  check("dquery", problem.gradients.dquery);
  check("dkey", problem.gradients.dkey);
  check("dvalue", problem.gradients.dvalue);
  check("dsinks", problem.gradients.dsinks);
  for (const MaskGradient& gradient : problem.gradients.dmasks) check("a gradient of a mask", gradient.to);
}

// ---------------------------------------------------------------- plan and run

// What the plan of a call decides for its run. The workspace begins with the lists, unless they are stored inside the
// arguments; the kernels of the call share the rest, one after another.
struct Decisions {
  const KernelSet* kernels = nullptr;
  std::size_t list_bytes = 0;
};

constexpr std::size_t kAlignment = 64;
std::size_t aligned(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// Memory for the lists while a call is planned: host memory only.
class PlannedLists {
 public:
  explicit PlannedLists(std::size_t bytes) : bytes_(bytes) {}
  ListBlock block() { return {bytes_, bytes_.data()}; }

 private:
  std::vector<std::byte> bytes_;
};

Plan plan_forward(const ForwardProblem& problem) {
  const int device = problem.query.device().index;
  const Current current(device);
  Launch launch = launch_on(device, problem.stream);
  check_device(problem, launch);

  const std::size_t lists = list_bytes(problem);
  PlannedLists planned(lists);
  const ForwardCall call = call_of(problem, planned.block());
  launch.host_lists = host_lists(call.arguments, planned.block());
  const KernelSet& kernels = choose_set(call.arguments, launch);
  std::size_t kernel_bytes = kernels.workspace_bytes(call.arguments, launch);
  if (!call.captures.empty()) {
    kernel_bytes = std::max(kernel_bytes, plain_captures_bytes(call.arguments, call.captures));
  }
  return {Decisions{&kernels, lists}, Sizes{.host = lists, .device = aligned(lists) + kernel_bytes}};
}

Plan plan_backward(const BackwardProblem& problem) {
  const int device = problem.query.device().index;
  const Current current(device);
  const Launch launch = launch_on(device, problem.stream);
  check_device(problem, launch);

  const std::size_t lists = list_bytes(problem);
  PlannedLists planned(lists);
  const BackwardCall call = call_of(problem, planned.block());
  return {Decisions{nullptr, lists},
          Sizes{.host = lists, .device = aligned(lists) + plain_backward_bytes(call.arguments, call.masks)}};
}

// A launch with its workspace, and the lists in it.
struct Started {
  Started(const AttentionProblem& problem, const Plan& plan, const Buffers& buffers)
      : launch(launch_on(problem.query.device().index, problem.stream)) {
    const std::size_t lists = plan.decisions<Decisions>().list_bytes;
    block = {buffers.host, buffers.device.data()};
    launch.workspace = buffers.device.subspan(aligned(lists));
  }

  void upload(const Arguments& arguments) {
    launch.host_lists = host_lists(arguments, block);
    if (!block.host.empty()) launch_upload(block.host, const_cast<std::byte*>(block.device), launch);
  }

  Launch launch;
  ListBlock block;
};

void forward(const ForwardProblem& problem, const Plan& plan, const Buffers& buffers) {
  const Current current(problem.query.device().index);
  Started started(problem, plan, buffers);
  const ForwardCall call = call_of(problem, started.block);
  started.upload(call.arguments);
  if (problem.outputs.out.count() > 0) plan.decisions<Decisions>().kernels->forward(call.arguments, started.launch);
  // Captures are written even if `out` is empty: a call without heads still has a mean over heads.
  if (!call.captures.empty()) plain_captures(call.arguments, call.captures, started.launch);
}

void backward(const BackwardProblem& problem, const Plan& plan, const Buffers& buffers) {
  const Current current(problem.query.device().index);
  Started started(problem, plan, buffers);
  const BackwardCall call = call_of(problem, started.block);
  started.upload(call.arguments);
  plain_backward(call.arguments, call.gradients, call.masks, started.launch);
}

constexpr const char* kNoProducts =
    "the cuda engine has no matrix products yet; on a GPU rapt computes attention and its gradients, and copies "
    "tensors";

}  // namespace

}  // namespace rapt::cuda

namespace rapt {

constinit const EngineRow kCudaEngine = {
    .engine = Engine::cuda,
    .name = "cuda",
    .device = Device::Kind::cuda,
    .device_name = "cuda",
    .variant = []() -> const void* { return nullptr; },
    .attention = {.cannot = cuda::cannot,
                  .plan = cuda::plan_forward,
                  .run = cuda::forward,
                  .plan_backward = cuda::plan_backward,
                  .run_backward = cuda::backward},
    .product = {.cannot = [](DType /*dtype*/) { return std::string(cuda::kNoProducts); },
                .packed_bytes = [](const PackedWeights& /*weights*/) -> std::size_t { throw Error(cuda::kNoProducts); },
                .pack = [](const ConstTensorView& /*from*/, const PackedWeights& /*to*/,
                           const Workers& /*workers*/) { throw Error(cuda::kNoProducts); },
                .plan = [](const ProductProblem& /*problem*/) -> Plan { throw Error(cuda::kNoProducts); },
                .run = [](const ProductProblem& /*problem*/, const Plan& /*plan*/,
                          const Buffers& /*buffers*/) { throw Error(cuda::kNoProducts); }},
    .layer = &cuda::kLayer,
    .memory = &cuda::kMemory,
};

}  // namespace rapt
