// An engine: a table of functions, and their arguments.
//
// Every call takes four steps, each once: its arguments are resolved into a problem, an engine plans the problem, the
// memory that the plan requires is provided, and the engine runs the plan. src/attention does this for the public
// functions; a layer does it for the problems that it resolves itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "core/layer_ops.h"
#include "core/memory_ops.h"
#include "core/problem.h"
#include "core/product.h"

namespace rapt {

// Workspace sizes in bytes, for host and device memory.
struct Sizes {
  std::size_t host = 0;
  std::size_t device = 0;
};

// Memory for a plan, of the sizes that it requires, aligned to 64 bytes.
struct Buffers {
  std::span<std::byte> host{};
  std::span<std::byte> device{};
};

// How an engine divides one problem, decided once, and the sizes of the workspace that it needs. Only the engine reads
// decisions().
class Plan {
 public:
  Plan() = default;
  explicit Plan(const Sizes& needed) : sizes(needed) {}
  template <class Decisions>
  Plan(const Decisions& decisions, const Sizes& needed) : sizes(needed) {
    static_assert(std::is_trivially_copyable_v<Decisions> && sizeof(Decisions) <= kBytes);
    std::memcpy(decisions_.data(), &decisions, sizeof(Decisions));
  }

  template <class Decisions>
  const Decisions& decisions() const {
    static_assert(std::is_trivially_copyable_v<Decisions> && sizeof(Decisions) <= kBytes);
    return *reinterpret_cast<const Decisions*>(decisions_.data());
  }

  Sizes sizes;

 private:
  static constexpr std::size_t kBytes = 128;
  alignas(16) std::array<std::byte, kBytes> decisions_{};
};

struct AttentionOps {
  std::string (*cannot)(const AttentionProblem& problem);  // empty if supported; otherwise the reason, as text
  Plan (*plan)(const ForwardProblem& problem);
  void (*run)(const ForwardProblem& problem, const Plan& plan, const Buffers& buffers);
  Plan (*plan_backward)(const BackwardProblem& problem);
  void (*run_backward)(const BackwardProblem& problem, const Plan& plan, const Buffers& buffers);
};

struct ProductOps {
  std::string (*cannot)(DType dtype);  // the storage type of the matrix
  std::size_t (*packed_bytes)(const PackedWeights& weights);
  void (*pack)(const ConstTensorView& from, const PackedWeights& to, const Workers& workers);
  Plan (*plan)(const ProductProblem& problem);
  void (*run)(const ProductProblem& problem, const Plan& plan, const Buffers& buffers);
};

struct EngineRow {
  Engine engine;  // the value that requests it; automatic: it is chosen by device only
  const char* name;
  Device::Kind device;  // the device whose memory it reads and writes
  const char* device_name;
  const char* absent = nullptr;  // why this build has no such engine, as text; null: the build has it
  // The variant of the engine that is currently in use, if there are several (instruction sets). A call keeps the
  // variant that it started with, and a packed matrix the variant that packed it.
  const void* (*variant)();
  AttentionOps attention;
  ProductOps product;
  // Operations that belong to the device rather than to one engine: the first row of a device holds them, and they are
  // null in its other rows.
  const LayerOps* layer;
  const MemoryOps* memory;
};

// All engines of this build, for each device the fastest first (src/attention/engines.cc).
std::span<const EngineRow* const> engines();

// The first engine of a device; null if no engine of this build supports it.
const EngineRow* find_device(Device device);
// Like find_device, but for the device of a validated tensor, which always has an engine.
const EngineRow& device_row(Device device);

// Adds a row for the lifetime of the process, for tests with a device of their own. Must not be called while a call
// runs.
void register_engine(const EngineRow& row);

}  // namespace rapt
