// An engine: one row of functions, and what they are given.
//
// A call is resolved into a problem, planned, given the memory that the plan asks for, and run, each of it once.
// src/attention does that for the public functions; a layer does it for the problems that it resolves itself.
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

// Bytes of workspace, by memory.
struct Sizes {
  std::size_t host = 0;
  std::size_t device = 0;
};

// Memory for a plan: as much as its sizes say, aligned to 64 bytes.
struct Buffers {
  std::span<std::byte> host{};
  std::span<std::byte> device{};
};

// How an engine divides one problem, decided once, and the workspace that takes. Only the engine reads its decisions.
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
  std::string (*cannot)(const AttentionProblem& problem);  // empty: it can; else the reason, in words
  Plan (*plan)(const ForwardProblem& problem);
  void (*run)(const ForwardProblem& problem, const Plan& plan, const Buffers& buffers);
  Plan (*plan_backward)(const BackwardProblem& problem);
  void (*run_backward)(const BackwardProblem& problem, const Plan& plan, const Buffers& buffers);
};

struct ProductOps {
  std::string (*cannot)(DType dtype);  // that the matrix is stored in
  std::size_t (*packed_bytes)(const PackedWeights& weights);
  void (*pack)(const ConstTensorView& from, const PackedWeights& to, const Workers& workers);
  Plan (*plan)(const ProductProblem& problem);
  void (*run)(const ProductProblem& problem, const Plan& plan, const Buffers& buffers);
};

struct EngineRow {
  Engine engine;  // as a caller asks for it; automatic: it is chosen for its device alone
  const char* name;
  Device::Kind device;  // whose memory it reads and writes
  const char* device_name;
  // Which variant of the engine is in use now, where there are several (instruction sets): a call and a packed matrix
  // keep to the one that they began with.
  const void* (*variant)();
  AttentionOps attention;
  ProductOps product;
  // What belongs to the device rather than to one engine of it: the first row of a device has them, others share them.
  const LayerOps* layer;
  const MemoryOps* memory;
};

// All engines of this build, the fastest of each device first (src/attention/engines.cc).
std::span<const EngineRow* const> engines();

// The first engine of a device; null: no engine of this build reads its memory.
const EngineRow* find_device(Device device);
// The same, for the device of a validated tensor.
const EngineRow& device_row(Device device);

// Adds a row, for as long as the process runs: for a test that brings a device of its own. Not while a call runs.
void register_engine(const EngineRow& row);

}  // namespace rapt
