#include "cases/case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string_view>
#include <type_traits>

#include "rapt/random.h"

namespace rapt::cases {

namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

void fill(const TensorView& view, double value) {
  // A tensor of one element, broadcast.
  const ConstTensorView one(&value, Dims{});
  copy(one.expand(view.shape()), view);
}

// Fills a view of any rank with values from `next`, in row-major order, through one f64 copy.
template <class Next>
void generate(const TensorView& view, const Next& next) {
  Tensor values(view.shape(), DType::f64);
  for (double& value : values.values<double>()) value = next();
  copy(values, view);
}

}  // namespace

double Stream::uniform() {
  const PhiloxCounter counter = {static_cast<std::uint32_t>(count_ / 4), static_cast<std::uint32_t>(count_ / 4 >> 32),
                                 number_, 0x72617074U};
  const std::uint32_t word = philox4x32_10(counter, philox_key(seed_))[count_ % 4];
  ++count_;
  return static_cast<double>(word) * 0x1p-32;
}

std::int64_t Stream::integer(std::int64_t first, std::int64_t last) {
  return first + static_cast<std::int64_t>(uniform() * static_cast<double>(last - first + 1));
}

void CaseSpec::put_in_pages(std::int64_t size) {
  page_size = size;
  if (key_lengths.empty()) key_lengths.assign(static_cast<std::size_t>(batch), keys);
  keys = std::max<std::int64_t>(1, (keys + size - 1) / size) * size;
}

bool CaseSpec::sums_swallow() const {
  return query_type != DType::f64 && std::any_of(masks.begin(), masks.end(), [](const MaskSpec& mask) {
           return mask.kind == Mask::Kind::add && std::isfinite(mask.special) && std::abs(mask.special) > 1e4;
         });
}

DType CaseSpec::type_of(Stage stage) const {
  if (query_type == DType::f64) return DType::f64;
  const bool weights = stage == Stage::weights || stage == Stage::dropped_weights;
  return weights && narrow_weights ? query_type : DType::f32;
}

Buffer make_buffer(MemoryLayout layout, const Dims& shape, DType dtype) {
  const std::int64_t b = shape[0], h = shape[1], l = shape[2], d = shape[3];
  Buffer buffer;
  buffer.layout = layout;
  const auto allocate = [&](const Dims& whole) {
    buffer.memory = Tensor(whole, dtype);
    if (dtype != DType::boolean) fill(buffer.memory.view(), is_float(dtype) ? kNaN : 99.0);
    return buffer.memory.view();
  };
  switch (layout) {
    case MemoryLayout::bhld: buffer.view = allocate(shape); break;
    case MemoryLayout::packed_qkv:
    case MemoryLayout::blhd: buffer.view = allocate({b, l, h, d}).transpose(1, 2); break;
    case MemoryLayout::lbhd: buffer.view = allocate({l, b, h, d}).permute({1, 2, 0, 3}); break;
    case MemoryLayout::gaps:
      buffer.view = allocate({b, h, l + 1, d + 1, 2}).select(4, 0).slice(3, 0, d).slice(2, 0, l);
      break;
    case MemoryLayout::backwards: {
      const TensorView forwards = allocate({b, h, l, d});
      const std::int64_t last = l > 0 ? (l - 1) * d : 0;
      auto* data = static_cast<std::byte*>(forwards.data());
      buffer.view = TensorView(data == nullptr ? data : data + last * static_cast<std::int64_t>(size_of(dtype)), dtype,
                               shape, Dims{h * l * d, l * d, -d, 1});
      break;
    }
    case MemoryLayout::shifted:
      buffer.view = allocate({b * h * l * d + 1}).slice(0, 1, b * h * l * d + 1).reshape(shape);
      break;
  }
  return buffer;
}

Dims capture_shape(const CaseSpec& spec, const Selection& of) {
  const auto chosen = [](const std::vector<std::int64_t>& list, std::int64_t all) {
    return list.empty() ? all : static_cast<std::int64_t>(list.size());
  };
  if (of.mean_over_heads) return {spec.batch, chosen(of.queries, spec.queries), spec.keys};
  return {spec.batch, chosen(of.heads, spec.query_heads), chosen(of.queries, spec.queries), spec.keys};
}

bool Buffer::is_untouched() const {
  const Buffer fresh = make_buffer(layout, view.shape(), view.dtype());
  Tensor copy_of_memory = memory.clone();
  // Fills the corresponding view of the copy with NaN, like a buffer that has just been created.
  const auto distance =
      static_cast<const std::byte*>(view.data()) - static_cast<const std::byte*>(memory.view().data());
  if (memory.count() == 0) return true;
  auto* data = static_cast<std::byte*>(copy_of_memory.view().data()) + distance;
  fill(TensorView(data, view.dtype(), view.shape(), view.strides()), kNaN);
  const auto bytes = static_cast<std::size_t>(memory.count()) * size_of(view.dtype());
  return std::memcmp(fresh.memory.view().data(), std::as_const(copy_of_memory).view().data(), bytes) == 0;
}

Case::Case(CaseSpec from) : spec(std::move(from)) {
  options.causal = spec.causal;
  options.window = spec.window;
  options.alignment = spec.alignment;
  options.key_lengths = spec.key_lengths;
  options.packed = spec.packed;
  options.softcap = spec.softcap;
  options.dropout = spec.dropout;
  if (spec.has_scale) options.scale = spec.scale;
  make_inputs();
  make_masks();
  if (spec.alibi) {
    for (std::int64_t h = 0; h < spec.query_heads; ++h) {
      options.alibi_slopes.push_back(
          std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(spec.query_heads)));
    }
  }
  if (spec.sinks) {
    Stream stream(spec.seed, 8);
    Tensor& sinks = memory_.emplace_back(Dims{spec.query_heads}, spec.query_type);
    generate(sinks.view(), [&] { return 4.0 * stream.uniform() - 2.0; });
    options.sinks = sinks.view();
  }
}

TensorView Case::own(const Dims& shape, DType dtype) {
  Buffer buffer = make_buffer(spec.layout, shape, dtype);
  memory_.push_back(std::move(buffer.memory));
  return buffer.view;
}

// A few more pages than needed, in random order. Table entries past the key length are invalid page numbers.
void Case::make_page_table() {
  Stream stream(spec.seed, 9);
  const std::int64_t per_row = pages_per_row();
  std::vector<std::int32_t> shuffled;
  for (std::int64_t page = 0; page < spec.batch * per_row + 3; ++page) {
    shuffled.push_back(static_cast<std::int32_t>(page));
    std::swap(shuffled.back(), shuffled[static_cast<std::size_t>(stream.integer(0, page))]);
  }
  for (std::int64_t b = 0; b < spec.batch; ++b) {
    for (std::int64_t n = 0; n < per_row; ++n) {
      const bool used = n * spec.page_size < spec.key_lengths[static_cast<std::size_t>(b)];
      page_table_.push_back(used ? shuffled[static_cast<std::size_t>(b * per_row + n)] : -7);
    }
  }
  options.pages = {page_table_, per_row};
}

void Case::store_keys(const Tensor& numbers, const TensorView& to, ConstTensorView& scales) {
  const bool packed = !spec.packed.key_starts.empty();
  const TensorView all_scales =
      to.dtype() == DType::i8 ? own({to.size(0), to.size(1), to.size(2), 1}, DType::f32).select(3, 0) : TensorView();
  const auto store = [&](std::int64_t b, std::int64_t from, std::int64_t until) {
    for (std::int64_t j = from; j < until; ++j) {
      const std::int64_t page =
          spec.page_size > 0 ? page_table_[static_cast<std::size_t>(b * pages_per_row() + j / spec.page_size)] : b;
      const std::int64_t place = spec.page_size > 0 ? j % spec.page_size : j;
      const ConstTensorView row = numbers.view().select(0, b).select(1, j);  // (Hkv, width)
      const TensorView stored = to.select(0, page).select(1, place);
      if (to.dtype() != DType::i8) {
        copy(row, stored);
        continue;
      }
      for (std::int64_t h = 0; h < spec.kv_heads; ++h) {
        double largest = 0.0;
        for (std::int64_t d = 0; d < row.size(1); ++d) largest = std::max(largest, std::abs(row.at<double>(h, d)));
        const auto scale = static_cast<float>(largest / 127.0);
        all_scales.at<float>(page, h, place) = scale;
        Tensor quotients({row.size(1)}, DType::f64);
        for (std::int64_t d = 0; d < row.size(1) && scale > 0.0F; ++d) {
          quotients.view().at<double>(d) = row.at<double>(h, d) / static_cast<double>(scale);
        }
        copy(quotients, stored.select(0, h));
      }
    }
  };
  // Memory past a key length stays NaN, in k and v or in their scales.
  for (std::int64_t b = 0; b < (packed ? 0 : spec.batch); ++b) {
    store(b, 0, spec.key_lengths.empty() ? spec.keys : spec.key_lengths[static_cast<std::size_t>(b)]);
  }
  for (std::size_t n = 0; packed && n + 1 < spec.packed.key_starts.size(); ++n) {
    const std::int64_t begin = spec.packed.key_starts[n], end = spec.packed.key_starts[n + 1];
    store(0, begin, spec.key_lengths.empty() ? end : begin + spec.key_lengths[n]);
  }
  scales = all_scales;
}

void Case::make_inputs() {
  const bool paged = spec.page_size > 0;
  if (paged) make_page_table();
  const std::int64_t rows = paged ? spec.batch * pages_per_row() + 3 : spec.batch;
  const std::int64_t length = paged ? spec.page_size : spec.keys;
  const Dims query_shape{spec.batch, spec.query_heads, spec.queries, spec.head_size};
  const Dims key_shape{rows, spec.kv_heads, length, spec.head_size};
  const Dims value_shape{rows, spec.kv_heads, length, spec.value_size};
  TensorView q, k, v;

  const bool one_tensor = spec.layout == MemoryLayout::packed_qkv && query_shape == key_shape &&
                          key_shape == value_shape && spec.query_type == spec.kv_type;
  if (one_tensor) {
    Tensor& packed =
        memory_.emplace_back(Dims{spec.batch, spec.queries, 3, spec.query_heads, spec.head_size}, spec.query_type);
    fill(packed.view(), kNaN);
    const TensorView parts = packed.view().permute({2, 0, 3, 1, 4});  // (3, B, H, L, D)
    q = parts.select(0, 0), k = parts.select(0, 1), v = parts.select(0, 2);
  } else {
    q = own(query_shape, spec.query_type), k = own(key_shape, spec.kv_type), v = own(value_shape, spec.kv_type);
  }

  const auto values = [&](const TensorView& view, std::uint32_t number, double spread) {
    Stream stream(spec.seed, number);
    generate(view, [&] { return spread * (2.0 * stream.uniform() - 1.0); });
  };
  Tensor keys({spec.batch, spec.kv_heads, spec.keys, spec.head_size}, DType::f64);
  Tensor all_values({spec.batch, spec.kv_heads, spec.keys, spec.value_size}, DType::f64);
  values(q, 1, spec.spread * 1.7);
  values(keys, 2, spec.spread * 1.7);
  values(all_values, 3, 1.0);
  store_keys(keys, k, options.key_scales);
  store_keys(all_values, v, options.value_scales);
  query = q, key = k, value = v;
}

void Case::make_masks() {
  std::uint32_t number = 16;
  for (const MaskSpec& mask : spec.masks) {
    Stream stream(spec.seed, number++);
    const auto size = [](bool one, std::int64_t whole) { return one ? std::int64_t{1} : whole; };
    const Dims plane{size(mask.one_query, spec.queries), size(mask.one_key, spec.keys)};
    const Dims shape = mask.plane_only ? plane
                                       : Dims{size(mask.one_batch, spec.batch), size(mask.one_head, spec.query_heads),
                                              plane[0], plane[1]};
    const bool is_add = mask.kind == Mask::Kind::add;
    Tensor& tensor = memory_.emplace_back(shape, is_add ? mask.dtype : DType::boolean);
    generate(tensor.view(), [&] {
      const bool hit = stream.chance(mask.chance);
      if (is_add) return hit && mask.special != 0.0 ? mask.special : 2.0 * stream.uniform() - 1.0;
      return hit == (mask.kind != Mask::Kind::keep) ? 1.0 : 0.0;
    });
    options.masks.push_back({mask.kind, tensor.view(), mask.value});
  }
}

namespace {

Answer call(const CaseSpec& spec, const ConstTensorView& query, const ConstTensorView& key,
            const ConstTensorView& value, const AttentionOptions& given, Placed& placed, bool* untouched) {
  const DType sums = query.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Dims out_shape{spec.batch, spec.query_heads, spec.queries, spec.value_size};
  Buffer out = make_buffer(spec.layout, out_shape, query.dtype());
  Tensor lse(Dims{spec.batch, spec.query_heads, spec.queries}, sums);
  std::vector<Tensor> captures;
  AttentionOutputs outputs{.out = placed.output(out.memory, out.view)};
  if (spec.lse) outputs.lse = placed.output(lse, lse);
  for (const auto& [stage, of] : spec.captures) {
    captures.emplace_back(capture_shape(spec, of), sums == DType::f64 ? DType::f64 : spec.type_of(stage));
    outputs.captures.push_back({stage, captures.back(), of});
  }
  // A Tensor's memory does not move when the vector grows, so the views above stay valid.
  for (std::size_t n = 0; n < captures.size(); ++n) {
    outputs.captures[n].to = placed.output(captures[n], outputs.captures[n].to);
  }
  AttentionOptions options = given;
  GuardedWorkspace workspace(placed.device());
  if (!placed.on_cpu()) {
    options.workspace = workspace.of_bytes(attention_workspace_bytes(outputs, query, key, value, options));
  }
  attention(outputs, query, key, value, options);
  placed.bring_back();

  Answer answer{Tensor::copy_of(out.view, DType::f64), lse.to(DType::f64), {}};
  for (const Tensor& capture : captures) answer.captures.push_back(capture.to(DType::f64));
  if (untouched != nullptr) *untouched = out.is_untouched() && workspace.is_untouched();
  return answer;
}

// k or v as one (B, Hkv, Lk, width) tensor in f64, without pages and scales; NaN where there is no key.
Tensor plain(const Case& test, const ConstTensorView& from, const ConstTensorView& scales) {
  if (from.dtype() != DType::i8 && test.spec.page_size == 0) return Tensor::copy_of(from, DType::f64);
  const std::int64_t size = test.spec.page_size > 0 ? test.spec.page_size : std::max<std::int64_t>(1, test.spec.keys);
  Tensor to({test.spec.batch, from.size(1), test.spec.keys, from.size(3)}, DType::f64);
  fill(to.view(), kNaN);
  for (std::int64_t b = 0; b < test.spec.batch; ++b) {
    for (std::int64_t first = 0; first < test.spec.keys; first += size) {
      const std::int64_t place = b * (test.spec.keys / size) + first / size;
      const std::int64_t page = test.spec.page_size > 0 ? test.options.pages.table[static_cast<std::size_t>(place)] : b;
      if (page < 0) continue;
      const TensorView part = to.view().select(0, b).slice(1, first, first + size);  // (Hkv, size, width)
      copy(from.select(0, page), part);
      for (std::int64_t h = 0; scales.defined() && h < part.size(0); ++h) {
        for (std::int64_t j = 0; j < size; ++j) {
          for (std::int64_t d = 0; d < part.size(2); ++d) {
            double& number = part.at<double>(h, j, d);
            number = static_cast<double>(static_cast<float>(number) * scales.at<float>(page, h, j));
          }
        }
      }
    }
  }
  return to;
}

}  // namespace

Case::Inputs Case::inputs(Placed& placed) const {
  Inputs inputs{placed.input(memory_, query), placed.input(memory_, key), placed.input(memory_, value), options};
  if (placed.on_cpu()) return inputs;
  for (ConstTensorView* view : {&inputs.options.key_scales, &inputs.options.value_scales, &inputs.options.sinks}) {
    *view = placed.input(memory_, *view);
  }
  for (Mask& mask : inputs.options.masks) mask.view = placed.input(memory_, mask.view);
  return inputs;
}

Answer run(const Case& test, bool* untouched) {
  Placed placed(test.device);
  const Case::Inputs inputs = test.inputs(placed);
  return call(test.spec, inputs.query, inputs.key, inputs.value, inputs.options, placed, untouched);
}

Answer truth(const Case& test) {
  AttentionOptions options = test.options;
  options.engine = Engine::reference;
  options.workspace = {}, options.stream = {};
  Placed here(Device{});
  if (test.spec.sums_swallow()) return call(test.spec, test.query, test.key, test.value, options, here, nullptr);

  const Tensor query = Tensor::copy_of(test.query, DType::f64);
  const Tensor key = plain(test, test.key, options.key_scales);
  const Tensor value = plain(test, test.value, options.value_scales);
  options.pages = {}, options.key_scales = options.value_scales = {};
  Tensor sinks;
  if (options.sinks.defined()) {
    sinks = Tensor::copy_of(options.sinks, DType::f64);
    options.sinks = sinks.view();
  }
  return call(test.spec, query, key, value, options, here, nullptr);
}

std::string describe(const CaseSpec& spec) {
  std::ostringstream s;
  const auto list = [&](const char* name, const std::vector<std::int64_t>& values) {
    if (values.empty()) return;
    s << ' ' << name << '=';
    for (std::size_t n = 0; n < values.size(); ++n) s << (n == 0 ? "" : ",") << values[n];
  };
  s << spec.name << ": seed=" << spec.seed << " b=" << spec.batch << " hq=" << spec.query_heads
    << " hkv=" << spec.kv_heads << " lq=" << spec.queries << " lk=" << spec.keys << " d=" << spec.head_size
    << " dv=" << spec.value_size << " q:" << name_of(spec.query_type) << " kv:" << name_of(spec.kv_type)
    << " layout=" << static_cast<int>(spec.layout) << " spread=" << spec.spread;
  if (spec.page_size > 0) s << " pages=" << spec.page_size;
  if (spec.has_scale) s << " scale=" << spec.scale;
  if (spec.softcap != 0.0) s << " softcap=" << spec.softcap;
  if (spec.causal) s << " causal";
  for_each_field(spec.window, [&](std::string_view name, const auto& field) {
    if constexpr (std::is_same_v<decltype(field), const std::int64_t&>) {
      if (field != 0) s << ' ' << name << '=' << field;
    } else if (field) {
      s << ' ' << name << '=' << *field;
    }
  });
  s << " alignment=" << static_cast<int>(spec.alignment.kind);
  list("offsets", spec.alignment.values);
  list("key_lengths", spec.key_lengths);
  list("query_starts", spec.packed.query_starts);
  list("key_starts", spec.packed.key_starts);
  if (spec.alibi) s << " alibi";
  if (spec.sinks) s << " sinks";
  if (spec.dropout.rate > 0.0) s << " dropout=" << spec.dropout.rate;
  for (const MaskSpec& mask : spec.masks) {
    s << " mask(" << static_cast<int>(mask.kind) << (mask.one_batch ? " 1b" : "") << (mask.one_head ? " 1h" : "")
      << (mask.one_query ? " 1q" : "") << (mask.one_key ? " 1k" : "") << (mask.plane_only ? " plane" : "") << ' '
      << name_of(mask.dtype) << " special=" << mask.special << " value=" << mask.value << ')';
  }
  for (const auto& [stage, of] : spec.captures) {
    s << " capture(" << static_cast<int>(stage) << (of.mean_over_heads ? " mean" : "");
    list("heads", of.heads);
    list("queries", of.queries);
    s << ' ' << name_of(spec.type_of(stage)) << ')';
  }
  return s.str();
}

}  // namespace rapt::cases
