#include "support/fake_device.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <sys/mman.h>

#include "core/engine.h"

namespace rapt::test {

namespace {

// ---------------------------------------------------------------- memory

constexpr std::size_t kBytes = std::size_t{256} << 20;
constexpr std::size_t kAlignment = 64;

class Memory {
 public:
  Memory() {
    void* mapped = mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(mapped);
    free_[0] = kBytes;
  }

  std::byte* allocate(std::size_t bytes) {
    const std::lock_guard guard(mutex_);
    const std::size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    for (auto gap = free_.begin(); gap != free_.end(); ++gap) {
      const auto [offset, room] = *gap;
      if (room < size) continue;
      free_.erase(gap);
      if (room > size) free_[offset + size] = room - size;
      used_[offset] = size;
      return begin_ + offset;
    }
    throw std::bad_alloc();
  }
  void free(std::byte* memory) {
    const std::lock_guard guard(mutex_);
    const auto found = used_.find(static_cast<std::size_t>(memory - begin_));
    if (found == used_.end()) return;
    auto [offset, size] = *found;
    used_.erase(found);
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && next->first == offset + size) size += next->second, next = free_.erase(next);
    if (next != free_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += size;
        return;
      }
    }
    free_[offset] = size;
  }

  bool holds(const void* memory) const {
    return std::less_equal<>()(static_cast<const void*>(begin_), memory) &&
           std::less<>()(memory, static_cast<const void*>(begin_ + kBytes));
  }

  void open() {
    const std::lock_guard guard(mutex_);
    if (open_++ == 0) protect(PROT_READ | PROT_WRITE);
  }
  void close() {
    const std::lock_guard guard(mutex_);
    if (--open_ == 0) protect(PROT_NONE);
  }

 private:
  void protect(int how) const {
    if (mprotect(begin_, kBytes, how) != 0) std::abort();
  }

  std::mutex mutex_;
  std::byte* begin_ = nullptr;
  int open_ = 0;
  std::map<std::size_t, std::size_t> free_, used_;  // offset, size
};

Memory& memory() {
  static Memory& the_memory = *new Memory;  // tensors of static objects may outlive the tests
  return the_memory;
}

// The device's memory may be touched while this exists.
struct Open {
  Open() { memory().open(); }
  ~Open() { memory().close(); }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
};

constexpr MemoryOps kMemory = {
    .allocate = [](int /*device*/, std::size_t bytes) { return memory().allocate(bytes); },
    .free = [](int /*device*/, std::byte* given) noexcept { memory().free(given); },
    .allocate_for_call = [](int /*device*/, std::size_t bytes,
                            StreamHandle /*stream*/) { return memory().allocate(bytes); },
    .free_after_call = [](int /*device*/, std::byte* given, StreamHandle /*stream*/) noexcept { memory().free(given); },
    .copy =
        [](int /*device*/, void* to, const void* from, std::size_t bytes, CopyDirection direction) {
          const bool from_host = direction == CopyDirection::from_host, to_host = direction == CopyDirection::to_host;
          if (memory().holds(to) == to_host || memory().holds(from) == from_host) {
            throw std::logic_error("fake device: a copy that does not go where it says");
          }
          const Open open;
          std::memcpy(to, from, bytes);
        },
    .zero =
        [](int /*device*/, void* given, std::size_t bytes) {
          const Open open;
          std::memset(given, 0, bytes);
        },
    .wait = [](int /*device*/) {},
};

// ---------------------------------------------------------------- the memory that functions are given

void require_own(const void* data) {
  if (data != nullptr && !memory().holds(data)) throw std::logic_error("fake device: memory that is not its own");
}
void require_own(const ConstTensorView& view) {
  if (view.defined() && view.count() > 0) require_own(view.data());
}
void require_own(const TensorView& view) { require_own(ConstTensorView(view)); }
void require_own(const RotaryProblem& p) { require_own(p.from), require_own(p.to), require_own(p.table); }
void require_own(const AppendProblem& p) { require_own(p.from), require_own(p.to), require_own(p.scales); }
void require_own(const OutputDropoutProblem& p) { require_own(p.x); }
void require_own(const NormProblem& p) {
  require_own(p.y), require_own(p.x), require_own(p.weight), require_own(p.bias);
}
void require_own(const NormBackwardProblem& p) {
  for (const ConstTensorView& view : {ConstTensorView(p.dx), ConstTensorView(p.dweight), ConstTensorView(p.dbias)}) {
    require_own(view);
  }
  require_own(p.dy), require_own(p.x), require_own(p.weight);
}
void require_own(const CrossEntropyProblem& p) { require_own(p.dlogits), require_own(p.logits); }
void require_own(const AdamProblem& p) {
  require_own(p.parameter), require_own(p.first), require_own(p.second), require_own(p.gradient);
}
void require_own(const ProductProblem& p) {
  require_own(p.weights.data), require_own(p.x), require_own(p.bias), require_own(p.start), require_own(p.y);
}
void require_own(const AttentionProblem& p) {
  require_own(p.query), require_own(p.key), require_own(p.value), require_own(p.sinks);
  require_own(p.key_scales), require_own(p.value_scales);
  for (const Mask& mask : p.masks) require_own(mask.view);
}
// Lists and numbers are in host memory.
template <class Other>
void require_own(const Other& /*not memory*/) {}

// ---------------------------------------------------------------- the engine

const EngineRow& cpu() { return device_row(Device{}); }

template <auto kStep>
struct OnCpu;
template <class Result, class... Given, Result (*LayerOps::*kStep)(Given...)>
struct OnCpu<kStep> {
  static Result run(Given... given) {
    (require_own(given), ...);
    const Open open;
    return (cpu().layer->*kStep)(given...);
  }
};

constexpr LayerOps kLayer = {
    .copy = OnCpu<&LayerOps::copy>::run,
    .fill = OnCpu<&LayerOps::fill>::run,
    .rotate = OnCpu<&LayerOps::rotate>::run,
    .fill_rotary_table = OnCpu<&LayerOps::fill_rotary_table>::run,
    .append = OnCpu<&LayerOps::append>::run,
    .find_not_finite = OnCpu<&LayerOps::find_not_finite>::run,
    .drop_output = OnCpu<&LayerOps::drop_output>::run,
    .add = OnCpu<&LayerOps::add>::run,
    .add_row_sums = OnCpu<&LayerOps::add_row_sums>::run,
    .norm = OnCpu<&LayerOps::norm>::run,
    .norm_backward = OnCpu<&LayerOps::norm_backward>::run,
    .gelu = OnCpu<&LayerOps::gelu>::run,
    .gelu_backward = OnCpu<&LayerOps::gelu_backward>::run,
    .embed = OnCpu<&LayerOps::embed>::run,
    .embed_backward = OnCpu<&LayerOps::embed_backward>::run,
    .cross_entropy = OnCpu<&LayerOps::cross_entropy>::run,
    .add_squares = OnCpu<&LayerOps::add_squares>::run,
    .scale = OnCpu<&LayerOps::scale>::run,
    .adam = OnCpu<&LayerOps::adam>::run,
};

// This engine requires as device memory what the CPU engine requires as host memory, plus a little host memory.
constexpr std::size_t kHostBytes = 64;
Plan on_device(Plan plan) {
  plan.sizes = {.host = kHostBytes, .device = plan.sizes.host};
  return plan;
}
Buffers on_host(const Plan& plan, const Buffers& buffers) {
  if (buffers.host.size() < kHostBytes || memory().holds(buffers.host.data()) ||
      buffers.device.size() < plan.sizes.device) {
    throw std::logic_error("fake device: not the workspace that was asked for");
  }
  std::memset(buffers.host.data(), 0xFF, kHostBytes);
  require_own(static_cast<const void*>(buffers.device.data()));
  return {.host = buffers.device, .device = {}};
}

constexpr EngineRow kRow = {
    .engine = Engine::automatic,
    .name = "fake",
    .device = Device::Kind::extension,
    .device_name = "fake",
    .variant = [] { return cpu().variant(); },
    .attention = {.cannot = [](const AttentionProblem& problem) { return cpu().attention.cannot(problem); },
                  .plan = [](const ForwardProblem& problem) { return on_device(cpu().attention.plan(problem)); },
                  .run =
                      [](const ForwardProblem& problem, const Plan& plan, const Buffers& buffers) {
                        require_own(static_cast<const AttentionProblem&>(problem));
                        require_own(problem.outputs.out), require_own(problem.outputs.lse);
                        for (const Capture& capture : problem.outputs.captures) require_own(capture.to);
                        const Open open;
                        cpu().attention.run(problem, plan, on_host(plan, buffers));
                      },
                  .plan_backward =
                      [](const BackwardProblem& problem) { return on_device(cpu().attention.plan_backward(problem)); },
                  .run_backward =
                      [](const BackwardProblem& problem, const Plan& plan, const Buffers& buffers) {
                        require_own(static_cast<const AttentionProblem&>(problem));
                        require_own(problem.upstream.dout), require_own(problem.gradients.dquery);
                        const Open open;
                        cpu().attention.run_backward(problem, plan, on_host(plan, buffers));
                      }},
    .product = {.cannot = [](DType dtype) { return cpu().product.cannot(dtype); },
                .packed_bytes = [](const PackedWeights& weights) { return cpu().product.packed_bytes(weights); },
                .pack =
                    [](const ConstTensorView& from, const PackedWeights& to, const Workers& workers) {
                      require_own(from), require_own(static_cast<const void*>(to.data));
                      const Open open;
                      cpu().product.pack(from, to, workers);
                    },
                .plan = [](const ProductProblem& problem) { return on_device(cpu().product.plan(problem)); },
                .run =
                    [](const ProductProblem& problem, const Plan& plan, const Buffers& buffers) {
                      require_own(problem);
                      const Open open;
                      cpu().product.run(problem, plan, on_host(plan, buffers));
                    }},
    .layer = &kLayer,
    .memory = &kMemory,
};

}  // namespace

Device fake_device() {
  static const bool kAdded = [] {
    register_engine(kRow);
    return true;
  }();
  (void)kAdded;
  return {Device::Kind::extension, 0};
}

}  // namespace rapt::test
