#include "attention/engines.h"

#include <array>
#include <atomic>
#include <string>

#include "cpu/engine.h"
#include "cuda/engine.h"
#include "reference/engine.h"

namespace rapt {

namespace {

struct Rows {
  std::array<const EngineRow*, 8> list = {&kCpuEngine, &kReferenceEngine, &kCudaEngine};
  std::atomic<std::size_t> count = 3;
};
constinit Rows rows;

template <class Cannot>
const EngineRow& choose(const Checks& checks, Engine wanted, Device device, const Cannot& cannot) {
  std::string reason;  // why the last engine tried on this device cannot
  for (const EngineRow* row : engines()) {
    if (wanted != Engine::automatic && wanted != row->engine) continue;
    checks.require(wanted == Engine::automatic || row->absent == nullptr, row->absent);
    if (row->device != device.kind) {
      checks.require(wanted == Engine::automatic, "the ", row->name, " engine reads ", row->device_name,
                     " memory; the tensors are on ", device);
      continue;
    }
    reason = cannot(*row);
    if (reason.empty()) return *row;
    checks.require(wanted == Engine::automatic, reason);
  }
  checks.fail(reason.empty() ? "no engine of this build can compute this call" : reason);
}

}  // namespace

std::span<const EngineRow* const> engines() {
  return std::span(rows.list).first(rows.count.load(std::memory_order_acquire));
}

const EngineRow* find_device(Device device) {
  if (device.kind == Device::Kind::cpu) return &kCpuEngine;
  for (const EngineRow* row : engines()) {
    if (row->device == device.kind && row->memory != nullptr) return row;
  }
  return nullptr;
}

const EngineRow& device_row(Device device) {
  const EngineRow* row = find_device(device);
  if (row == nullptr) throw Error(text("no engine of this build reads the memory of ", device));
  return *row;
}

void register_engine(const EngineRow& row) {
  const std::size_t count = rows.count.load(std::memory_order_relaxed);
  if (count == rows.list.size()) throw Error("register_engine: there is no room for another engine");
  rows.list[count] = &row;
  rows.count.store(count + 1, std::memory_order_release);
}

const EngineRow& choose_engine(const Checks& checks, Engine wanted, AttentionProblem& problem) {
  const EngineRow& row = choose(checks, wanted, problem.query.device(),
                                [&](const EngineRow& each) { return each.attention.cannot(problem); });
  problem.variant = row.variant();
  return row;
}

const EngineRow& choose_engine(const Checks& checks, Engine wanted, DType dtype, Device device) {
  return choose(checks, wanted, device, [&](const EngineRow& each) { return each.product.cannot(dtype); });
}

}  // namespace rapt
