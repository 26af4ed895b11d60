// Rotary embedding. The constructor validates its options, and computes the frequencies and the table. A call validates
// its tensors, resolves the positions and rotates.
#include "rapt/rotary.h"

#include <utility>

#include "attention/call_workers.h"
#include "attention/checks.h"
#include "attention/overlap.h"
#include "core/call_counts.h"
#include "nn/rotary_frequencies.h"
#include "nn/rotary_state.h"

namespace rapt {

namespace {

constexpr std::int64_t kMaxPosition = std::int64_t{1} << 53;  // a double represents every position up to this exactly
constexpr std::int64_t kMaxTable = std::int64_t{1} << 31;

std::int64_t checked_size(const Checks& checks, std::int64_t head_size, std::int64_t size) {
  checks.require(head_size > 0, "head size is ", head_size, "; it must be positive");
  if (size == 0) {
    checks.require(head_size % 2 == 0, "head size is ", head_size,
                   ", and rotary embedding rotates pairs; give an even head size, or an even options.size below it");
    return head_size;
  }
  checks.require(size > 0 && size % 2 == 0 && size <= head_size, "size is ", size,
                 "; it must be even, from 2 to the head size ", head_size, ", or 0 for all of it");
  return size;
}

// One call's tensors, under the names of its arguments.
struct Tensors {
  const ConstTensorView from, to;
  const char* from_name;
  const char* to_name;
};

void check_tensors(const Checks& checks, std::int64_t head_size, const Tensors& tensors) {
  core::count_call(&core::CallCounts::rotary);
  const auto& [from, to, from_name, to_name] = tensors;
  checks.usable(from_name, from);
  checks.require(from.rank() == 4, from_name, " has shape ", from.shape(),
                 "; it must be (B, H, L, D); split_heads(x, heads) converts a (B, L, E) tensor");
  checks.require(from.size(3) == head_size, from_name, " has head size ", from.size(3), ", this Rotary was made for ",
                 head_size, "; they must be equal");
  checks.typed(from_name, from, {DType::f32, DType::f64, DType::bf16, DType::f16});
  checks.shaped(to_name, to, from.shape(), "(B, H, L, D)");
  checks.typed(to_name, to, {DType::f32, DType::f64, DType::bf16, DType::f16});
  checks.require((from.dtype() == DType::f64) == (to.dtype() == DType::f64), to_name, " is ", to.dtype(), ", ",
                 from_name, " is ", from.dtype(), "; f64 does not mix with other types");
  checks.writable(to_name, to);
  const bool same = from.data() == to.data() && from.dtype() == to.dtype() && from.strides() == to.strides();
  checks.require(same || !overlap(from, to), to_name, " overlaps ", from_name,
                 " partially; it must be the same tensor, or have separate memory");
}

// Checks the positions given for `rows` batch rows, each of `length` tokens, and returns the position of each token as
// a rule.
PositionRule resolved(const Checks& checks, const RotaryPositions& positions, std::int64_t rows, std::int64_t length) {
  const std::span<const std::int64_t> given = positions.given();
  const auto check_all = [&](const char* list, std::int64_t following) {
    for (std::size_t n = 0; n < given.size(); ++n) {
      checks.require(given[n] >= 0 && given[n] <= kMaxPosition - following, list, "[", n, "] is ", given[n],
                     "; positions go from 0 to 2^53");
    }
  };
  const auto count = static_cast<std::int64_t>(given.size());
  switch (positions.kind()) {
    case RotaryPositions::Kind::offset: break;
    case RotaryPositions::Kind::rows:
      checks.require(count == rows, "offsets has ", count, " entries; it must have one for each batch row, ", rows);
      check_all("offsets", length);
      return {.given = given.data(), .row_stride = 1, .token_stride = 0, .step = 1};
    case RotaryPositions::Kind::tokens:
      checks.require(count == rows * length, "positions has ", count,
                     " entries; it must have one for each token: (B, L) = ", Dims{rows, length}, ", ", rows * length,
                     " in all");
      check_all("positions", 0);
      return {.given = given.data(), .row_stride = length, .token_stride = 1, .step = 0};
  }
  checks.require(positions.offset() >= 0 && positions.offset() <= kMaxPosition - length, "offset is ",
                 positions.offset(), "; positions go from 0 to 2^53");
  return {.offset = positions.offset()};
}

}  // namespace

void Rotary::State::rotate(const Checks& checks, const ConstTensorView& from, const TensorView& to,
                           const RotaryPositions& given, bool back, const Workers& workers) const {
  const PositionRule positions = resolved(checks, given, to.size(0), to.size(2));
  device_row(to.device())
      .layer->rotate({.angles = {frequencies, attention_factor},
                      .back = back,
                      .pairs = pairs,
                      .table = static_cast<const float*>(table.view().data()),
                      .table_positions = max_positions,
                      .positions = positions,
                      .from = from,
                      .to = to},
                     workers);
}

Rotary::Rotary(std::int64_t head_size, const RotaryOptions& options) {
  const Checks checks("rotary");
  const std::int64_t size = checked_size(checks, head_size, options.size);
  nn::check_scaling(checks, options.base, size, options.scaling);
  checks.require(options.max_positions >= 0 && options.max_positions <= kMaxTable, "max_positions is ",
                 options.max_positions, "; it must be from 0 to ", kMaxTable);
  const Workers workers = call_workers(checks, options.threads, options.parallel_for);

  State state{.head_size = head_size,
              .pairs = options.pairs,
              .frequencies = nn::rotary_frequencies(options.base, size, options.scaling),
              .attention_factor = nn::rotary_attention_factor(options.scaling),
              .max_positions = options.max_positions,
              .table = Tensor({options.max_positions, 2, size / 2})};
  device_row({}).layer->fill_rotary_table({state.frequencies, state.attention_factor}, state.max_positions,
                                          static_cast<float*>(state.table.view().data()), workers);
  state_ = std::make_shared<const State>(std::move(state));
}

Rotary Rotary::to(Device device) const {
  State state{.head_size = state_->head_size,
              .pairs = state_->pairs,
              .frequencies = state_->frequencies,
              .attention_factor = state_->attention_factor,
              .max_positions = state_->max_positions,
              .table = state_->table.to(device)};
  Rotary moved = *this;
  moved.state_ = std::make_shared<const State>(std::move(state));
  return moved;
}

std::int64_t Rotary::head_size() const { return state_->head_size; }
std::int64_t Rotary::size() const { return static_cast<std::int64_t>(2 * state_->frequencies.size()); }
std::span<const double> Rotary::frequencies() const { return state_->frequencies; }
double Rotary::attention_factor() const { return state_->attention_factor; }
std::int64_t Rotary::max_positions() const { return state_->max_positions; }

void Rotary::apply(const TensorView& x, const RotaryPositions& positions, const RotaryCall& call) const {
  const Checks checks("rotary", state_->table.device());
  check_tensors(checks, state_->head_size, {x, x, "x", "x"});
  state_->rotate(checks, x, x, positions, call.back, call_workers(checks, call.threads, call.parallel_for));
}

void Rotary::apply(const ConstTensorView& from, const TensorView& to, const RotaryPositions& positions,
                   const RotaryCall& call) const {
  const Checks checks("rotary", state_->table.device());
  check_tensors(checks, state_->head_size, {from, to, "from", "to"});
  state_->rotate(checks, from, to, positions, call.back, call_workers(checks, call.threads, call.parallel_for));
}

}  // namespace rapt
