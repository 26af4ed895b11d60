#include "support/bad_calls.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "support/cuda/has_cuda.h"
#include "support/expect_error.h"

namespace rapt::test {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

}  // namespace

// clang-format off
const std::vector<BadCall>& bad_forward_calls() {
  static const std::vector<BadCall> calls = {
    {"QueryMissing", [](AttentionCall& c) { c.query = {}; }, "attention: query is missing; give a tensor"},
    {"KeyMissing", [](AttentionCall& c) { c.key = {}; }, "attention: key is missing; give a tensor"},
    {"ValueMissing", [](AttentionCall& c) { c.value = {}; }, "attention: value is missing; give a tensor"},
    {"QueryWithoutMemory", [](AttentionCall& c) { c.query = ConstTensorView(nullptr, DType::f32, {2, 4, 3, 8}); }, "attention: query of shape (2, 4, 3, 8) has no memory: its pointer is null"},
    {"QueryOnGpu", [](AttentionCall& c) { c.query = c.on_gpu({2, 4, 3, 8}); }, with_cuda("attention: key is on cpu, this call works on cuda:1; all its tensors must be on one device", "attention: query is on cuda:1; the engines of this build read cpu memory")},
    {"QueryRank3", [](AttentionCall& c) { c.query = c.shaped({2, 3, 32}); }, "attention: query has shape (2, 3, 32); it must be (B, Hq, Lq, D); split_heads(x, heads) converts a (B, L, E) tensor"},
    {"KeyRank2", [](AttentionCall& c) { c.key = c.shaped({5, 8}); }, "attention: key has shape (5, 8); it must be (B, Hkv, Lk, D)"},
    {"ValueRank5", [](AttentionCall& c) { c.value = c.shaped({1, 2, 2, 5, 6}); }, "attention: value has shape (1, 2, 2, 5, 6); it must be (B, Hkv, Lk, Dv)"},
    {"QueryBool", [](AttentionCall& c) { c.query = c.shaped({2, 4, 3, 8}, DType::boolean); }, "attention: query is bool; it must be f32, f64, bf16 or f16"},
    {"KeyBatch", [](AttentionCall& c) { c.key = c.key.slice(0, 0, 1); }, "attention: key has batch size 1, query has 2; they must be equal"},
    {"ValueBatch", [](AttentionCall& c) { c.value = c.value.slice(0, 0, 1); }, "attention: value has batch size 1, query has 2; they must be equal"},
    {"KeyHeadSize", [](AttentionCall& c) { c.key = c.shaped({2, 2, 5, 7}); }, "attention: key has head size 7, query has 8; they must be equal"},
    {"ValueHeads", [](AttentionCall& c) { c.value = c.value.slice(1, 0, 1); }, "attention: value has 1 heads, key has 2; they must be equal"},
    {"ValueLength", [](AttentionCall& c) { c.value = c.value.slice(2, 0, 4); }, "attention: value has length 4, key has 5; they must be equal"},
    {"HeadsNotMultiple", [](AttentionCall& c) { c.query = c.query.slice(1, 0, 3); }, "attention: query has 3 heads, key has 2; the first must be a multiple of the second"},
    {"NoKvHeads", [](AttentionCall& c) { c.key = c.key.slice(1, 0, 0), c.value = c.value.slice(1, 0, 0); }, "attention: query has 4 heads, key has 0; the first must be a multiple of the second"},
    {"HeadSizeZero", [](AttentionCall& c) { c.query = c.shaped({2, 4, 3, 0}), c.key = c.shaped({2, 2, 5, 0}); }, "attention: query has head size 0; it must be at least 1"},
    {"ValueSizeZero", [](AttentionCall& c) { c.value = c.shaped({2, 2, 5, 0}); }, "attention: value has head size 0; it must be at least 1"},
    {"KeyAndValueTypes", [](AttentionCall& c) { c.value = c.shaped({2, 2, 5, 6}, DType::bf16); }, "attention: value is bf16, key is f32; they must be equal"},
    {"F64WithF32", [](AttentionCall& c) { c.query = c.shaped({2, 4, 3, 8}, DType::f64); }, "attention: query is f64, key is f32; f64 does not mix with other types"},
    {"ScaleNan", [](AttentionCall& c) { c.options.scale = std::nan(""); }, "attention: scale is nan; it must be finite"},
    {"ScaleInfinite", [](AttentionCall& c) { c.options.scale = -kInf; }, "attention: scale is -inf; it must be finite"},
    {"ScaleBeyondF32", [](AttentionCall& c) { c.options.scale = 1e39; }, "attention: scale is 1e+39, which overflows f32, the accumulation type"},
    {"SoftcapBeyondF32", [](AttentionCall& c) { c.options.softcap = 1e39; }, "attention: softcap is 1e+39; it and 1/softcap must be finite in f32, the accumulation type"},
    {"SoftcapTooSmall", [](AttentionCall& c) { c.options.softcap = 1e-39; }, "attention: softcap is 1e-39; it and 1/softcap must be finite in f32, the accumulation type"},
    {"QueryMisaligned", [](AttentionCall& c) { c.query = ConstTensorView(static_cast<const std::byte*>(c.spare.view().data()) + 2, DType::f32, {2, 4, 3, 8}); }, "attention: query starts at an address that is not a multiple of 4, the size of f32"},
    {"SoftcapNegative", [](AttentionCall& c) { c.options.softcap = -1.0; }, "attention: softcap is -1; it must be positive, or 0 for none"},
    {"SoftcapInfinite", [](AttentionCall& c) { c.options.softcap = kInf; }, "attention: softcap is inf; it must be positive, or 0 for none"},
    {"MaskMissing", [](AttentionCall& c) { c.options.masks = {Mask::keep(ConstTensorView())}; }, "attention: masks[0] is missing; give a tensor"},
    {"MaskRank3", [](AttentionCall& c) { c.options.masks = {Mask::drop(c.shaped({2, 3, 5}, DType::boolean))}; }, "attention: masks[0] has shape (2, 3, 5), which is ambiguous; make it (B, 1, Lq, Lk) with unsqueeze(1) or (1, Hq, Lq, Lk) with unsqueeze(0)"},
    {"MaskRank1", [](AttentionCall& c) { c.options.masks = {Mask::drop(c.shaped({5}, DType::boolean))}; }, "attention: masks[0] has shape (5,); it must be (Lq, Lk) or broadcast to (B, Hq, Lq, Lk) = (2, 4, 3, 5)"},
    {"MaskTransposed", [](AttentionCall& c) { c.options.masks = {Mask::keep(c.hide), Mask::add(c.bias.view().transpose(0, 1))}; }, "attention: masks[1] has shape (5, 3), which does not broadcast to (B, Hq, Lq, Lk) = (2, 4, 3, 5)"},
    {"MaskHeads", [](AttentionCall& c) { c.options.masks = {Mask::add(c.shaped({2, 2, 3, 5}))}; }, "attention: masks[0] has shape (2, 2, 3, 5), which does not broadcast to (B, Hq, Lq, Lk) = (2, 4, 3, 5)"},
    {"MaskAddBool", [](AttentionCall& c) { c.options.masks = {Mask::add(c.hide)}; }, "attention: masks[0] is a Mask::add of bool; use Mask::keep or Mask::drop to define the meaning of true"},
    {"MaskKeepFloat", [](AttentionCall& c) { c.options.masks = {Mask::keep(c.bias)}; }, "attention: masks[0] is f32; a mask that selects keys must be bool (a float mask is a Mask::add)"},
    {"MaskFillNan", [](AttentionCall& c) { c.options.masks = {Mask::fill(c.hide, std::nan(""))}; }, "attention: masks[0] fills with nan; it must be finite or −inf"},
    {"MaskFillPlusInfinity", [](AttentionCall& c) { c.options.masks = {Mask::fill(c.hide, kInf)}; }, "attention: masks[0] fills with inf; it must be finite or −inf"},
    {"MaskFillBeyondF32", [](AttentionCall& c) { c.options.masks = {Mask::fill(c.hide, -1e300)}; }, "attention: masks[0] fills with -1e+300, which overflows f32, the accumulation type"},
    {"MaskOnGpu", [](AttentionCall& c) { c.options.masks = {Mask::add(c.on_gpu({3, 5}))}; }, with_cuda("attention: masks[0] is on cuda:1, this call works on cpu; all its tensors must be on one device", "attention: masks[0] is on cuda:1; the engines of this build read cpu memory")},
    {"WindowLeftNegative", [](AttentionCall& c) { c.options.window.left = -1; }, "attention: window.left is -1; it must not be negative (leave it unset for no limit)"},
    {"WindowRightNegative", [](AttentionCall& c) { c.options.window.right = -2; }, "attention: window.right is -2; it must not be negative (leave it unset for no limit)"},
    {"CausalWithoutAlignment", [](AttentionCall& c) { c.options.causal = true; }, "attention: causal, window or ALiBi with 3 queries and 5 keys needs an alignment: Alignment::top_left() (query 0 at key 0) or Alignment::bottom_right() (last query at last key)"},
    {"AlibiWithoutAlignment", [](AttentionCall& c) { c.options.alibi_slopes = {1, 1, 1, 1}; }, "attention: causal, window or ALiBi with 3 queries and 5 keys needs an alignment: Alignment::top_left() (query 0 at key 0) or Alignment::bottom_right() (last query at last key)"},
    {"OffsetCount", [](AttentionCall& c) { c.options.alignment = Alignment::offsets({1, 2, 3}); }, "attention: alignment has 3 offsets for 2 batch rows; give one, or one for each"},
    {"OffsetHuge", [](AttentionCall& c) { c.options.alignment = Alignment::offset(std::int64_t{1} << 41); }, "attention: alignment has offset 2199023255552; it must be within ±2^40"},
    {"OffsetLowest", [](AttentionCall& c) { c.options.alignment = Alignment::offset(std::numeric_limits<std::int64_t>::min()); }, "attention: alignment has offset -9223372036854775808; it must be within ±2^40"},
    {"KeyLengthsCount", [](AttentionCall& c) { c.options.key_lengths = {5}; }, "attention: key_lengths has 1 values for 2 batch rows; give one for each"},
    {"KeyLengthNegative", [](AttentionCall& c) { c.options.key_lengths = {5, -1}; }, "attention: key_lengths[1] is -1; it must not be negative"},
    {"KeyLengthTooLong", [](AttentionCall& c) { c.options.key_lengths = {6, 5}; }, "attention: key_lengths[0] is 6, more than the number of keys, 5"},
    {"PagesPerRow", [](AttentionCall& c) { c.in_pages(), c.options.pages.per_row = 0; }, "attention: pages.per_row is 0; it must be positive"},
    {"PagesPerRowNegative", [](AttentionCall& c) { c.in_pages(), c.options.pages.per_row = -2; }, "attention: pages.per_row is -2; it must be positive"},
    {"PagesTableSize", [](AttentionCall& c) { c.in_pages(), c.table.pop_back(), c.options.pages.table = c.table; }, "attention: pages.table has 3 values for 2 batch rows; each needs per_row = 2"},
    {"PagesPerRowHuge", [](AttentionCall& c) { c.in_pages(), c.options.pages.per_row = std::int64_t{1} << 62; }, "attention: pages.table has 4 values for 2 batch rows; each needs per_row = 4611686018427387904"},
    {"PagesHugeWithoutBatch", [](AttentionCall& c) { c.in_pages(), c.query = c.query.slice(0, 0, 0), c.options.pages = {{}, std::int64_t{1} << 62}; }, "attention: pages.per_row is 4611686018427387904; with pages of 16 keys, a row must have at most 2^40 keys"},
    {"PageSizeNoPower", [](AttentionCall& c) { c.in_pages(3, 24); }, "attention: key has pages of 24 keys; the page size must be a power of two from 16, or any size where pages.per_row is 1"},
    {"PageSizeSmall", [](AttentionCall& c) { c.in_pages(3, 8); }, "attention: key has pages of 8 keys; the page size must be a power of two from 16, or any size where pages.per_row is 1"},
    {"PageMissing", [](AttentionCall& c) { c.in_pages(), c.table[1] = 3; }, "attention: pages.table contains page 3 for batch row 0, index 1; valid pages are 0 to 2"},
    {"PageNegative", [](AttentionCall& c) { c.in_pages(), c.table[2] = -1; }, "attention: pages.table contains page -1 for batch row 1, index 0; valid pages are 0 to 2"},
    {"PagesWithoutLengths", [](AttentionCall& c) { c.in_pages(), c.options.key_lengths = {}; }, "attention: pages need key_lengths, one for each batch row: how many of its keys exist"},
    {"PagesLengthTooLong", [](AttentionCall& c) { c.in_pages(), c.options.key_lengths = {33, 5}; }, "attention: key_lengths[0] is 33, more than the number of keys, 32"},
    {"PagesPacked", [](AttentionCall& c) { c.in_pages(), c.options.packed = {{0, 3}, {0, 5}}; }, "attention: pages and packed sequences cannot be combined"},
    {"PagesOfValue", [](AttentionCall& c) { c.in_pages(), c.value = c.value.slice(0, 0, 2); }, "attention: value has 2 pages, key has 3; they must be equal"},
    {"PagesKeyRank", [](AttentionCall& c) { c.in_pages(), c.key = c.shaped({3, 16}); }, "attention: key has shape (3, 16); it must be (P, Hkv, page size, D)"},
    {"PagesMask", [](AttentionCall& c) { c.in_pages(), c.options.masks = {Mask::add(c.bias)}; }, "attention: masks[0] has shape (3, 5), which does not broadcast to (B, Hq, Lq, Lk) = (2, 4, 3, 32)"},
    {"KeyBool", [](AttentionCall& c) { c.key = c.shaped({2, 2, 5, 8}, DType::boolean); }, "attention: key is bool; it must be f32, f64, bf16, f16 or i8"},
    {"QueryI8", [](AttentionCall& c) { c.query = c.shaped({2, 4, 3, 8}, DType::i8); }, "attention: query is i8; it must be f32, f64, bf16 or f16"},
    {"I8WithoutKeyScales", [](AttentionCall& c) { c.in_i8(), c.options.key_scales = {}; }, "attention: key is i8 and has no key_scales; give them, (B, Hkv, Lk) in f32"},
    {"I8WithoutValueScales", [](AttentionCall& c) { c.in_i8(), c.options.value_scales = {}; }, "attention: value is i8 and has no value_scales; give them, (B, Hkv, Lk) in f32"},
    {"I8ScalesShape", [](AttentionCall& c) { c.in_i8(), c.options.key_scales = c.shaped({2, 2, 4}); }, "attention: key_scales has shape (2, 2, 4); it must be (B, Hkv, Lk) = (2, 2, 5)"},
    {"I8ScalesType", [](AttentionCall& c) { c.in_i8(), c.options.value_scales = c.shaped({2, 2, 5}, DType::bf16); }, "attention: value_scales is bf16; it must be f32"},
    {"I8PagesScalesShape", [](AttentionCall& c) { c.in_pages(), c.key = c.shaped({3, 2, 16, 8}, DType::i8), c.value = c.shaped({3, 2, 16, 6}, DType::i8), c.options.key_scales = c.shaped({2, 2, 32}); }, "attention: key_scales has shape (2, 2, 32); it must be (P, Hkv, page size) = (3, 2, 16)"},
    {"ScalesWithoutI8", [](AttentionCall& c) { c.options.key_scales = c.shaped({2, 2, 5}); }, "attention: key_scales are given, but key is f32; only i8 has scales"},
    {"I8ForF64", [](AttentionCall& c) { c.in_i8(), c.query = c.shaped({2, 4, 3, 8}, DType::f64); }, "attention: query is f64, key is i8; f64 does not mix with other types"},
    {"MaskAddI8", [](AttentionCall& c) { c.options.masks = {Mask::add(c.shaped({3, 5}, DType::i8))}; }, "attention: masks[0] is i8; it must be f32, f64, bf16 or f16"},
    {"MaskKeepI8", [](AttentionCall& c) { c.options.masks = {Mask::keep(c.shaped({3, 5}, DType::i8))}; }, "attention: masks[0] is i8; a mask that selects keys must be bool (a float mask is a Mask::add)"},
    {"PackedBatch", [](AttentionCall& c) { c.options.packed = {{0, 3}, {0, 5}}; }, "attention: packed sequences must be in one batch row; query has batch size 2"},
    {"PackedQueriesOnly", [](AttentionCall& c) { c.one_row(), c.options.packed.query_starts = {0, 3}; }, "attention: packed.key_starts has 0 values; N sequences need N + 1, from 0 to the length"},
    {"PackedTooFew", [](AttentionCall& c) { c.one_row(), c.options.packed = {{0}, {0, 5}}; }, "attention: packed.query_starts has 1 values; N sequences need N + 1, from 0 to the length"},
    {"PackedBegin", [](AttentionCall& c) { c.one_row(), c.options.packed = {{1, 3}, {0, 5}}; }, "attention: packed.query_starts starts with 1; it must start with 0"},
    {"PackedFalling", [](AttentionCall& c) { c.one_row(), c.options.packed = {{0, 2, 3}, {0, 6, 5}}; }, "attention: packed.key_starts decreases from 6 to 5 at index 2; it must not decrease"},
    {"PackedEnd", [](AttentionCall& c) { c.one_row(), c.options.packed = {{0, 2}, {0, 5}}; }, "attention: packed.query_starts ends with 2, query has length 3; they must be equal"},
    {"PackedCounts", [](AttentionCall& c) { c.one_row(), c.options.packed = {{0, 1, 3}, {0, 5}}; }, "attention: packed.query_starts defines 2 sequences, packed.key_starts 1; they must be equal"},
    {"PackedCausalWithoutAlignment", [](AttentionCall& c) { c.one_row(), c.options.packed = {{0, 1, 3}, {0, 1, 5}}, c.options.causal = true; }, "attention: causal, window or ALiBi with 2 queries and 4 keys needs an alignment: Alignment::top_left() (query 0 at key 0) or Alignment::bottom_right() (last query at last key)"},
    {"AlibiCount", [](AttentionCall& c) { c.options.alibi_slopes = {1.0, 0.5}; }, "attention: alibi_slopes has 2 values for 4 query heads; give one for each"},
    {"AlibiBeyondF32", [](AttentionCall& c) { c.options.alibi_slopes = {1, 1e300, 1, 1}; }, "attention: alibi_slopes[1] is 1e+300; it must be finite"},
    {"AlibiNan", [](AttentionCall& c) { c.options.alibi_slopes = {1, 1, std::nan(""), 1}; }, "attention: alibi_slopes[2] is nan; it must be finite"},
    {"SinksShape", [](AttentionCall& c) { c.options.sinks = c.shaped({2}); }, "attention: sinks has shape (2,); it must be (Hq) = (4,)"},
    {"SinksType", [](AttentionCall& c) { c.options.sinks = c.shaped({4}, DType::f64); }, "attention: sinks is f64; it must be f32, bf16 or f16"},
    {"DropoutNegative", [](AttentionCall& c) { c.options.dropout.rate = -0.1; }, "attention: dropout.rate is -0.1; it must be from 0 to 1"},
    {"DropoutOverOne", [](AttentionCall& c) { c.options.dropout.rate = 1.5; }, "attention: dropout.rate is 1.5; it must be from 0 to 1"},
    {"DropoutNan", [](AttentionCall& c) { c.options.dropout.rate = std::nan(""); }, "attention: dropout.rate is nan; it must be from 0 to 1"},
    {"DropoutBatchStart", [](AttentionCall& c) { c.options.dropout.batch_start = -1; }, "attention: dropout.batch_start is -1; with 2 more it must stay within 0 to 2^32"},
    {"DropoutHeadStart", [](AttentionCall& c) { c.options.dropout.head_start = (std::int64_t{1} << 32) - 3; }, "attention: dropout.head_start is 4294967293; with 4 more it must stay within 0 to 2^32"},
    {"DropoutQueryStart", [](AttentionCall& c) { c.options.dropout.query_start = -7; }, "attention: dropout.query_start is -7; with 3 more it must stay within 0 to 2^32"},
    {"ThreadsNegative", [](AttentionCall& c) { c.options.threads = -2; }, "attention: threads is -2; it must be positive, or 0 for all"},
    {"OutMissing", [](AttentionCall& c) { c.outputs.out = {}; }, "attention: out is missing; give a tensor"},
    {"OutShape", [](AttentionCall& c) { c.outputs.out = c.shaped({2, 4, 3, 8}); }, "attention: out has shape (2, 4, 3, 8); it must be (B, Hq, Lq, Dv) = (2, 4, 3, 6)"},
    {"OutType", [](AttentionCall& c) { c.outputs.out = c.shaped({2, 4, 3, 6}, DType::bf16); }, "attention: out is bf16; it must be f32"},
    {"OutOverlapsItself", [](AttentionCall& c) { c.outputs.out = c.shaped({2, 1, 3, 6}).expand({2, 4, 3, 6}); }, "attention: out has strides (18, 0, 6, 1) for shape (2, 4, 3, 6), so that several elements share an address; an output must not overlap itself"},
    {"OutIsQuery", [](AttentionCall& c) { c.outputs.out = TensorView(c.q.view().data(), DType::f32, {2, 4, 3, 6}); }, "attention: out overlaps query; it needs separate memory"},
    {"OutBeginsInQuery", [](AttentionCall& c) { c.outputs.out = c.at(c.q, 8, {2, 4, 3, 6}); }, "attention: out overlaps query; it needs separate memory"},
    {"OutEndsInKey", [](AttentionCall& c) { c.key = c.at(c.spare, 143, {2, 2, 5, 8}), c.outputs.out = c.shaped({2, 4, 3, 6}); }, "attention: out overlaps key; it needs separate memory"},
    {"OutHoldsValue", [](AttentionCall& c) { c.value = c.at(c.spare, 4, {2, 2, 5, 6}), c.outputs.out = c.shaped({2, 4, 3, 6}); }, "attention: out overlaps value; it needs separate memory"},
    {"OutBetweenRowsOfQuery", [](AttentionCall& c) { c.query = TensorView(c.spare.view().data(), DType::f32, {2, 4, 3, 8}, {192, 48, 16, 1}), c.outputs.out = TensorView(c.spare.view().data_as<float>() + 7, {2, 4, 3, 6}, {192, 48, 16, 1}); }, "attention: out overlaps query; it needs separate memory"},
    {"LseInBias", [](AttentionCall& c) { const TensorView bias = c.shaped({3, 5}); c.options.masks = {Mask::keep(c.hide), Mask::add(bias)}, c.outputs.lse = c.at(c.spare, 14, {2, 4, 3}); }, "attention: lse overlaps masks[1]; it needs separate memory"},
    {"WeightsInSinks", [](AttentionCall& c) { c.options.sinks = c.at(c.spare, 50, {4}), c.outputs.captures = {{.to = c.shaped({2, 4, 3, 5})}}; }, "attention: captures[0].to overlaps sinks; it needs separate memory"},
    {"WeightsInOut", [](AttentionCall& c) { c.outputs.out = c.at(c.spare, 119, {2, 4, 3, 6}), c.outputs.captures = {{.to = c.shaped({2, 4, 3, 5})}}; }, "attention: captures[0].to overlaps out; it needs separate memory"},
    {"OutInKeyScales", [](AttentionCall& c) { c.key = TensorView(c.weights.view().data(), DType::i8, {2, 2, 5, 8}), c.value = TensorView(c.dk.view().data(), DType::i8, {2, 2, 5, 6}), c.options.key_scales = c.at(c.spare, 143, {2, 2, 5}), c.options.value_scales = c.at(c.spare, 200, {2, 2, 5}), c.outputs.out = c.shaped({2, 4, 3, 6}); }, "attention: out overlaps key_scales; it needs separate memory"},
    {"LseIsOut", [](AttentionCall& c) { c.outputs.lse = TensorView(c.out_memory.view().data(), DType::f32, {2, 4, 3}); }, "attention: lse overlaps out; it needs separate memory"},
    {"LseShape", [](AttentionCall& c) { c.outputs.lse = c.shaped({2, 4, 3, 1}); }, "attention: lse has shape (2, 4, 3, 1); it must be (B, Hq, Lq) = (2, 4, 3)"},
    {"LseType", [](AttentionCall& c) { c.outputs.lse = c.shaped({2, 4, 3}, DType::f64); }, "attention: lse is f64; it must be f32"},
    {"CaptureMissing", [](AttentionCall& c) { c.outputs.captures = {{}}; }, "attention: captures[0].to is missing; give a tensor"},
    {"CaptureShape", [](AttentionCall& c) { c.outputs.captures = {{.to = c.weights, .of = {.mean_over_heads = true}}}; }, "attention: captures[0].to has shape (2, 4, 3, 5); it must be (B, queries, Lk) = (2, 3, 5)"},
    {"CaptureType", [](AttentionCall& c) { c.outputs.captures = {{.to = c.shaped({2, 4, 3, 5}, DType::f16)}}; }, "attention: captures[0].to is f16; it must be f32"},
    {"CaptureHead", [](AttentionCall& c) { c.outputs.captures = {{.to = c.weights, .of = {.heads = {0, 4}}}}; }, "attention: captures[0].of.heads contains 4; valid indices are 0 to 3"},
    {"CaptureQuery", [](AttentionCall& c) { c.outputs.captures = {{.to = c.weights, .of = {.queries = {-1}}}}; }, "attention: captures[0].of.queries contains -1; valid indices are 0 to 2"},
    {"CaptureTwice", [](AttentionCall& c) { c.outputs.captures = {{.to = c.weights}, {.stage = Stage::raw, .to = c.weights}}; }, "attention: captures[1].to overlaps captures[0].to; it needs separate memory"},
  };
  return calls;
}

const std::vector<BadCall>& bad_backward_calls() {
  static const std::vector<BadCall> calls = {
    {"QueryMissing", [](AttentionCall& c) { c.query = {}; }, "attention_backward: query is missing; give a tensor"},
    {"Pages", [](AttentionCall& c) { c.in_pages(); }, "attention_backward: pages are given; gradients need k and v as (B, H, L, D) tensors"},
    {"I8", [](AttentionCall& c) { c.in_i8(); }, "attention_backward: key is i8; gradients need f32, f64, bf16 or f16"},
    {"NothingArrives", [](AttentionCall& c) { c.upstream = {}; }, "attention_backward: no upstream gradient; give dout, dlse or dweights"},
    {"DoutShape", [](AttentionCall& c) { c.upstream.dout = c.shaped({2, 4, 3, 8}); }, "attention_backward: dout has shape (2, 4, 3, 8); it must be (B, Hq, Lq, Dv) = (2, 4, 3, 6)"},
    {"DoutType", [](AttentionCall& c) { c.upstream.dout = c.shaped({2, 4, 3, 6}, DType::f16); }, "attention_backward: dout is f16; it must be f32"},
    {"OutShape", [](AttentionCall& c) { c.upstream.out = c.shaped({2, 4, 2, 6}); }, "attention_backward: out has shape (2, 4, 2, 6); it must be (B, Hq, Lq, Dv) = (2, 4, 3, 6)"},
    {"DlseShape", [](AttentionCall& c) { c.upstream.dlse = c.shaped({2, 3, 4}); }, "attention_backward: dlse has shape (2, 3, 4); it must be (B, Hq, Lq) = (2, 4, 3)"},
    {"LseType", [](AttentionCall& c) { c.upstream.lse = c.shaped({2, 4, 3}, DType::bf16); }, "attention_backward: lse is bf16; it must be f32"},
    {"DweightsStage", [](AttentionCall& c) { c.upstream.dweights = {{.stage = Stage::raw, .from = c.weights}}; }, "attention_backward: dweights[0] is a gradient of scores; only gradients at Stage::weights and Stage::dropped_weights are supported"},
    {"DweightsShape", [](AttentionCall& c) { c.upstream.dweights = {{.from = c.shaped({2, 4, 5, 3})}}; }, "attention_backward: dweights[0].from has shape (2, 4, 5, 3); it must be (B, heads, queries, Lk) = (2, 4, 3, 5)"},
    {"DweightsHead", [](AttentionCall& c) { c.upstream.dweights = {{.from = c.weights, .of = {.heads = {9}}}}; }, "attention_backward: dweights[0].of.heads contains 9; valid indices are 0 to 3"},
    {"DweightsBool", [](AttentionCall& c) { c.upstream.dweights = {{.from = c.shaped({2, 4, 3, 5}, DType::boolean)}}; }, "attention_backward: dweights[0].from is bool; it must be a float type"},
    {"DqueryShape", [](AttentionCall& c) { c.gradients.dquery = c.shaped({2, 2, 3, 8}); }, "attention_backward: dquery has shape (2, 2, 3, 8); it must be the query's = (2, 4, 3, 8)"},
    {"DkeyType", [](AttentionCall& c) { c.gradients.dkey = c.shaped({2, 2, 5, 8}, DType::bf16); }, "attention_backward: dkey is bf16; it must be f32"},
    {"DvalueIsDkey", [](AttentionCall& c) { c.gradients.dvalue = TensorView(c.dk.view().data(), DType::f32, {2, 2, 5, 6}); }, "attention_backward: dvalue overlaps dkey; it needs separate memory"},
    {"DoutIsDquery", [](AttentionCall& c) { c.gradients.dquery = TensorView(c.dout.view().data(), DType::f32, {2, 4, 3, 8}); }, "attention_backward: dquery overlaps dout; it needs separate memory"},
    {"DkeyInDvalue", [](AttentionCall& c) { c.gradients.dkey = c.shaped({2, 2, 5, 8}), c.gradients.dvalue = c.at(c.spare, 159, {2, 2, 5, 6}); }, "attention_backward: dvalue overlaps dkey; it needs separate memory"},
    {"DqueryInKey", [](AttentionCall& c) { c.key = c.at(c.spare, 191, {2, 2, 5, 8}), c.gradients.dquery = c.shaped({2, 4, 3, 8}); }, "attention_backward: dquery overlaps key; it needs separate memory"},
    {"DvalueInDout", [](AttentionCall& c) { c.upstream.dout = c.at(c.spare, 119, {2, 4, 3, 6}), c.gradients.dvalue = c.shaped({2, 2, 5, 6}); }, "attention_backward: dvalue overlaps dout; it needs separate memory"},
    {"DkeyInDweights", [](AttentionCall& c) { c.upstream.dweights = {{.from = c.at(c.spare, 159, {2, 4, 3, 5})}}, c.gradients.dkey = c.shaped({2, 2, 5, 8}); }, "attention_backward: dkey overlaps dweights[0].from; it needs separate memory"},
    {"DkeyOverlapsItself", [](AttentionCall& c) { c.gradients.dkey = c.shaped({2, 2, 1, 8}).expand({2, 2, 5, 8}); }, "attention_backward: dkey has strides (16, 8, 0, 1) for shape (2, 2, 5, 8), so that several elements share an address; an output must not overlap itself"},
    {"DsinksWithoutSinks", [](AttentionCall& c) { c.gradients.dsinks = c.dsinks; }, "attention_backward: dsinks is requested, but the call has no sinks"},
    {"DmaskOfNoMask", [](AttentionCall& c) { c.gradients.dmasks = {{2, c.dbias}}; }, "attention_backward: dmasks[0] belongs to masks[2], but the call has 0 masks"},
    {"DmaskOfKeep", [](AttentionCall& c) { c.options.masks = {Mask::keep(c.hide)}, c.gradients.dmasks = {{0, c.dbias}}; }, "attention_backward: dmasks[0] belongs to masks[0], which is not a Mask::add and has no gradient"},
    {"DmaskShape", [](AttentionCall& c) { c.options.masks = {Mask::add(c.bias)}, c.gradients.dmasks = {{0, c.shaped({1, 1, 3, 5})}}; }, "attention_backward: dmasks[0].to has shape (1, 1, 3, 5); it must be the mask's = (3, 5)"},
    {"WorkspaceTooSmall", [](AttentionCall& c) { c.options.workspace = {reinterpret_cast<std::byte*>(c.spare.view().data()), 8}; }, "attention_backward: workspace has 8 bytes; this call needs "},
  };
  return calls;
}
// clang-format on

void expect_refusal(const BadCall& bad, const std::function<std::string(AttentionCall&)>& attempt) {
  AttentionCall call;
  for (Tensor* tensor : call.written()) {
    for (float& value : tensor->values<float>()) value = 7.0F;
  }
  bad.spoil(call);
  const Tensor spare = call.spare.clone();
  expect_words(bad.message, attempt(call));
  for (Tensor* tensor : call.written()) {
    for (const float value : tensor->values<float>()) ASSERT_EQ(value, 7.0F) << "something was written";
  }
  ASSERT_TRUE(
      std::equal(spare.values<float>().begin(), spare.values<float>().end(), call.spare.values<float>().begin()));
}

}  // namespace rapt::test
