#include <fmt/format.h>

#include "cli/exit_code.h"
#include "cli/files/statistics.h"
#include "cli/run/steps.h"
#include "rapt/multi_head_attention.h"

namespace rapt::cli {

InputFiles::InputFiles(const RunOptions& options, ArrayFiles& files) {
  const bool one = !options.input.empty();
  query = read(files, options, one ? "--input" : "--query", one ? options.input : options.query);
  key = options.key.empty() ? query : read(files, options, "--key", options.key);
  value = options.value.empty() ? key : read(files, options, "--value", options.value);
}

ConstTensorView InputFiles::read(ArrayFiles& files, const RunOptions& options, const std::string& option,
                                 const std::string& text) {
  const ConstTensorView array = files.read(option, text);
  if (!is_float(array.dtype())) {
    throw Error(fmt::format("{}: {} holds {}; attention takes floating-point numbers: x.astype(\"float32\")", option,
                            text, name_of(array.dtype())));
  }
  if (!options.dtype || *options.dtype == array.dtype()) return array;
  converted_.push_back(Tensor::copy_of(array, *options.dtype));
  return converted_.back().view();
}

namespace {

// The negation of `view`.
Tensor not_of(const ConstTensorView& view) {
  Tensor result = Tensor::copy_of(view);
  for (bool& value : result.values<bool>()) value = !value;
  return result;
}

Mask read_mask(const RunOptions& options, ArrayFiles& files, std::int64_t heads) {
  ConstTensorView view = files.read("--mask", options.mask, {.integers_as = DType::boolean});
  switch (options.mask_of) {
    case MaskOf::batch: view = mask_of_batch(view); break;
    case MaskOf::heads: view = mask_of_heads(view, heads); break;
    case MaskOf::keys: view = mask_of_keys(view); break;
    case MaskOf::unsaid:
      if (view.rank() == 3) {
        throw UsageError(
            fmt::format("--mask: {} has shape {}, which is ambiguous; give --mask-of batch for "
                        "(B, Lq, Lk), or --mask-of heads for (B·H, Lq, Lk)",
                        options.mask, shape_words(view.shape())));
      }
  }
  if (is_float(view.dtype())) {
    if (options.mask_true != MaskTrue::unsaid) {
      throw UsageError(fmt::format(
          "--mask-true: {} holds {}, which is added to the scores; omit --mask-true, or save the mask as bool",
          options.mask, name_of(view.dtype())));
    }
    if (options.mask_fill) {
      throw UsageError(fmt::format(
          "--mask-fill: {} holds {}, which is added to the scores and excludes no keys; save the mask as bool",
          options.mask, name_of(view.dtype())));
    }
    return Mask::add(view);
  }
  if (options.mask_true == MaskTrue::unsaid) {
    throw UsageError(
        "--mask: the meaning of true must be given: --mask-true keep (true: the query sees the key), or --mask-true "
        "drop (true: the key is masked, as in PyTorch's nn.MultiheadAttention)");
  }
  const bool keep = options.mask_true == MaskTrue::keep;
  if (!options.mask_fill) return keep ? Mask::keep(view) : Mask::drop(view);
  return Mask::fill(keep ? files.keep(not_of(view)) : view, *options.mask_fill);
}

}  // namespace

void read_head_options(const RunOptions& options, ArrayFiles& files, DType sums, std::int64_t heads,
                       AttentionOptions& attention) {
  if (!options.mask.empty()) attention.masks = {read_mask(options, files, heads)};
  if (options.sinks.empty()) return;
  const ConstTensorView sinks = files.read("--sinks", options.sinks);
  if (!is_float(sinks.dtype())) {
    throw Error(
        fmt::format("--sinks: {} holds {}; a sink is a floating-point number", options.sinks, name_of(sinks.dtype())));
  }
  attention.sinks = files.keep(Tensor::copy_of(sinks, sums));
}

}  // namespace rapt::cli
