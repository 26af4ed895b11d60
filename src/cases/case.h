// A test case: one attention call described in a few numbers, with inputs made from a seed.
//
// Every engine, every instruction set and the C API run the same list (list.h). A case is data, so that it can be
// printed, repeated and shrunk.
#pragma once

#include <cstdint>
#include <deque>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cases/placed.h"
#include "rapt/attention.h"

namespace rapt::cases {

// Memory layout of q, k, v and out. All are (B, H, L, D) views.
enum class MemoryLayout : std::uint8_t {
  bhld,        // contiguous
  blhd,        // the heads of a token are contiguous
  lbhd,        // batch second
  packed_qkv,  // one (B, L, 3, H, D) tensor; blhd if q, k and v differ in shape or type
  gaps,        // a last stride of 2, and gaps between rows
  backwards,   // keys and queries in reverse order: negative strides
  shifted,     // contiguous, beginning one element past an aligned address
};

struct MaskSpec {
  Mask::Kind kind = Mask::Kind::keep;
  // Which dimensions are broadcast (size 1); with plane_only the mask is (Lq, Lk).
  bool one_batch = false, one_head = false, one_query = false, one_key = false, plane_only = false;
  DType dtype = DType::f32;  // of a Mask::add
  double value = -1e9;       // of a Mask::fill
  double chance = 0.3;       // of a key to be dropped or filled, or of a bias to be `special`
  double special = 0.0;      // an occasional value of a Mask::add: −inf, −1e9, …; 0: none
};

struct CaseSpec {
  std::string name;
  std::int64_t batch = 2, query_heads = 2, kv_heads = 2, queries = 7, keys = 7, head_size = 8, value_size = 8;
  DType query_type = DType::f32, kv_type = DType::f32;  // i8: each key has a scale, from its largest element
  std::int64_t page_size = 0;                           // shuffled pages, if not 0: see put_in_pages
  MemoryLayout layout = MemoryLayout::bhld;
  double spread = 1.0;  // q and k are uniform in ±1.7 · spread, v in ±1

  bool has_scale = false;
  double scale = 0.0;
  double softcap = 0.0;
  std::vector<MaskSpec> masks{};
  bool causal = false;
  Window window{};
  Alignment alignment{};
  std::vector<std::int64_t> key_lengths{};
  PackedSequences packed{};
  bool alibi = false;
  bool sinks = false;
  Dropout dropout{};

  bool lse = true;
  std::vector<std::pair<Stage, Selection>> captures{};
  bool narrow_weights = false;  // weights in the query's type; scores, which may exceed its range, stay in f32
  std::uint64_t seed = 1;

  // Cuts k and v into pages: `keys` becomes a multiple of the page size, and the key lengths say how many keys there
  // are.
  void put_in_pages(std::int64_t size);
  // Whether a mask adds numbers so large that f32 loses the score: −1e9 + score is −1e9 in f32 but not in f64. Such a
  // case is compared with a result in its own type.
  bool sums_swallow() const;
  // The type that a capture is written in.
  DType type_of(Stage stage) const;
};

std::string describe(const CaseSpec& spec);
inline void PrintTo(const CaseSpec& spec, std::ostream* stream) { *stream << describe(spec); }  // for GoogleTest

// The inputs of a case, and their memory. Everything outside the views, and keys past a key length, is NaN (in i8: 99,
// with scales of NaN).
struct Case {
  explicit Case(CaseSpec from);
  Case(const Case&) = delete;
  Case& operator=(const Case&) = delete;

  CaseSpec spec;
  ConstTensorView query, key, value;
  AttentionOptions options;
  Device device{};  // where calls run; each call copies its inputs there and its results back

  // The inputs and options of a call on the device of `placed`.
  struct Inputs {
    ConstTensorView query, key, value;
    AttentionOptions options;
  };
  Inputs inputs(Placed& placed) const;

 private:
  std::deque<Tensor> memory_;  // a deque: views stay valid as it grows
  std::vector<std::int32_t> page_table_;
  void make_inputs();
  void make_page_table();
  TensorView own(const Dims& shape, DType dtype);
  // Stores (B, Hkv, Lk, width) numbers as k or v; only existing keys are read and stored.
  void store_keys(const Tensor& numbers, const TensorView& to, ConstTensorView& scales);
  std::int64_t pages_per_row() const { return spec.page_size > 0 ? spec.keys / spec.page_size : 1; }
  void make_masks();
};

// The outputs of a call, each as a contiguous f64 tensor.
struct Answer {
  Tensor out, lse;
  std::vector<Tensor> captures;
};

// Runs a case with its current options on its device. If given, `untouched` is set to whether the memory around `out`
// is unchanged, and, on devices other than the CPU, the memory around the workspace.
Answer run(const Case& test, bool* untouched = nullptr);

// The expected result: the same call on the same inputs in f64, or in its own type if sums_swallow(), by the reference
// engine.
Answer truth(const Case& test);

// Whether a case has gradients: k and v are neither in pages nor in i8.
bool has_backward(const CaseSpec& spec);

// Which results of forward a case passes to backward. The choice depends on the seed.
enum class Handed : std::uint8_t { nothing, lse, out_and_lse };
Handed handed_to_backward(const CaseSpec& spec);

// A gradient that backward wrote, as a contiguous f64 tensor, and the type in which it was written.
struct Gradient {
  std::string name;
  DType written = DType::f32;
  Tensor values;
};
using Gradients = std::vector<Gradient>;

// The gradients of all inputs of a case, for random upstream gradients of out, of lse and of the requested weights.
// `untouched` is as for run(), with the memory around dq, dk and dv.
Gradients run_backward(const Case& test, bool* untouched = nullptr);
// The expected gradients, computed in the same way as truth().
Gradients true_gradients(const Case& test);

// The shape of weights or scores of the selected heads and queries.
Dims capture_shape(const CaseSpec& spec, const Selection& of);

// Memory for a (B, H, L, D) tensor in some layout, filled with NaN, or in i8 with 99; the view is within `memory`.
struct Buffer {
  Tensor memory;
  TensorView view;
  MemoryLayout layout = MemoryLayout::bhld;

  // Whether all memory around the view is unchanged.
  bool is_untouched() const;
};
Buffer make_buffer(MemoryLayout layout, const Dims& shape, DType dtype);

// A stream of uniform numbers in [0, 1), the same on every machine.
class Stream {
 public:
  explicit Stream(std::uint64_t seed, std::uint32_t number = 0) : seed_(seed), number_(number) {}
  double uniform();
  std::int64_t integer(std::int64_t first, std::int64_t last);  // both included
  bool chance(double probability) { return uniform() < probability; }

 private:
  std::uint64_t seed_;
  std::uint32_t number_;
  std::uint64_t count_ = 0;
};

}  // namespace rapt::cases
