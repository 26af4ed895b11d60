#include "cases/list.h"

#include <cmath>
#include <limits>

namespace rapt::cases {

namespace {

constexpr double kHide = -std::numeric_limits<double>::infinity();

// Builds the list: each case starts from a plain call and changes some of it.
class List {
 public:
  template <class Change>
  void add(const char* name, const Change& change) {
    CaseSpec spec;
    spec.name = name;
    spec.seed = 1000 + cases_.size();
    change(spec);
    cases_.push_back(std::move(spec));
  }
  std::vector<CaseSpec> take() { return std::move(cases_); }

 private:
  std::vector<CaseSpec> cases_;
};

void set_lengths(CaseSpec& s, std::int64_t queries, std::int64_t keys) { s.queries = queries, s.keys = keys; }
void set_heads(CaseSpec& s, std::int64_t query, std::int64_t kv) { s.query_heads = query, s.kv_heads = kv; }
void set_types(CaseSpec& s, DType query, DType kv) { s.query_type = query, s.kv_type = kv; }

void add_shapes(List& list) {
  list.add("Plain", [](CaseSpec&) {});
  list.add("OneOfEverything",
           [](CaseSpec& s) { s.batch = 1, set_heads(s, 1, 1), set_lengths(s, 1, 1), s.head_size = s.value_size = 1; });
  list.add("OneQueryManyKeys", [](CaseSpec& s) { set_lengths(s, 1, 37); });
  list.add("ManyQueriesOneKey", [](CaseSpec& s) { set_lengths(s, 37, 1); });
  list.add("OddLengths", [](CaseSpec& s) { set_lengths(s, 37, 61), s.head_size = 17, s.value_size = 5; });
  list.add("ValueWiderThanKey", [](CaseSpec& s) { s.head_size = 4, s.value_size = 19; });
  list.add("HeadSizeOne", [](CaseSpec& s) { s.head_size = 1, s.value_size = 3; });
  list.add("HeadSize64", [](CaseSpec& s) { s.head_size = s.value_size = 64, set_lengths(s, 33, 65); });
  list.add("HeadSize80", [](CaseSpec& s) { s.head_size = s.value_size = 80, set_lengths(s, 20, 20); });
  list.add("HeadSize128", [](CaseSpec& s) { s.head_size = s.value_size = 128, set_lengths(s, 17, 40); });
  list.add("HeadSize512", [](CaseSpec& s) { s.batch = 1, s.head_size = s.value_size = 512, set_lengths(s, 9, 11); });
  list.add("GroupedHeads", [](CaseSpec& s) { set_heads(s, 6, 2); });
  list.add("OneKvHead", [](CaseSpec& s) { set_heads(s, 5, 1); });
  list.add("LengthsAcrossChunks",
           [](CaseSpec& s) { s.batch = 1, set_lengths(s, 133, 577), s.head_size = s.value_size = 16; });
  list.add("CausalAcrossChunks", [](CaseSpec& s) {
    s.batch = 1, set_lengths(s, 501, 501), s.head_size = s.value_size = 16, s.causal = true;
  });
  list.add("NoBatch", [](CaseSpec& s) { s.batch = 0; });
  list.add("NoHeads", [](CaseSpec& s) { set_heads(s, 0, 0); });
  list.add("NoQueryHeads", [](CaseSpec& s) {
    set_heads(s, 0, 2), s.captures = {{Stage::weights, {.mean_over_heads = true}}};
  });
  list.add("NoQueriesCausal", [](CaseSpec& s) { set_lengths(s, 0, 7), s.causal = true; });
  list.add("NoQueries", [](CaseSpec& s) { set_lengths(s, 0, 7); });
  list.add("NoKeys", [](CaseSpec& s) { set_lengths(s, 7, 0); });
  list.add("NoKeysButSinks", [](CaseSpec& s) { set_lengths(s, 7, 0), s.sinks = true; });
}

void add_layouts_and_types(List& list) {
  const auto layout = [&](const char* name, MemoryLayout kind) {
    list.add(name, [kind](CaseSpec& s) { s.layout = kind, s.causal = true; });
  };
  layout("TokensFirst", MemoryLayout::blhd);
  layout("BatchSecond", MemoryLayout::lbhd);
  layout("PackedQkv", MemoryLayout::packed_qkv);
  layout("GapsInRows", MemoryLayout::gaps);
  layout("Backwards", MemoryLayout::backwards);
  layout("Misaligned", MemoryLayout::shifted);
  const auto types = [&](const char* name, DType query, DType kv) {
    list.add(name,
             [=](CaseSpec& s) { set_types(s, query, kv), set_lengths(s, 13, 21), s.head_size = s.value_size = 24; });
  };
  types("InF64", DType::f64, DType::f64);
  types("InBf16", DType::bf16, DType::bf16);
  types("InF16", DType::f16, DType::f16);
  types("F32OnBf16Cache", DType::f32, DType::bf16);
  types("F32OnF16Cache", DType::f32, DType::f16);
  types("Bf16OnF32", DType::bf16, DType::f32);
  types("F16OnBf16", DType::f16, DType::bf16);
  list.add("LargeScores", [](CaseSpec& s) { s.spread = 8.0, set_lengths(s, 19, 45); });
  list.add("TinyScores", [](CaseSpec& s) { s.spread = 1e-3; });
}

void add_scores_options(List& list) {
  list.add("GivenScale", [](CaseSpec& s) { s.has_scale = true, s.scale = 0.7; });
  list.add("NegativeScale", [](CaseSpec& s) { s.has_scale = true, s.scale = -0.3; });
  list.add("ZeroScale", [](CaseSpec& s) { s.has_scale = true, s.scale = 0.0; });
  list.add("Softcap", [](CaseSpec& s) { s.softcap = 2.0, s.spread = 2.0; });
  list.add("SoftcapCausal", [](CaseSpec& s) { s.softcap = 5.0, s.causal = true; });
  list.add("Alibi", [](CaseSpec& s) { s.alibi = true, set_heads(s, 4, 2); });
  list.add("AlibiFarAway",
           [](CaseSpec& s) { s.alibi = true, set_lengths(s, 40, 300), s.alignment = Alignment::offset(1 << 25); });
  list.add("AlibiBottomRight",
           [](CaseSpec& s) { s.alibi = true, set_lengths(s, 5, 11), s.alignment = Alignment::bottom_right(); });
  list.add("Sinks", [](CaseSpec& s) { s.sinks = true; });
  list.add("SinksCausalWindow", [](CaseSpec& s) { s.sinks = true, s.causal = true, s.window.left = 2; });
  list.add("Dropout", [](CaseSpec& s) { s.dropout = {.rate = 0.3, .seed = 42}; });
  list.add("DropoutCausalGrouped", [](CaseSpec& s) {
    s.dropout = {.rate = 0.5, .seed = 7, .batch_start = 3, .head_start = 8, .query_start = 100};
    s.causal = true, set_heads(s, 4, 2), set_lengths(s, 21, 21);
  });
  list.add("DropoutEverything", [](CaseSpec& s) { s.dropout = {.rate = 1.0}; });
}

void add_visibility(List& list) {
  list.add("Causal", [](CaseSpec& s) { s.causal = true; });
  list.add("CausalTopLeft",
           [](CaseSpec& s) { s.causal = true, set_lengths(s, 5, 9), s.alignment = Alignment::top_left(); });
  list.add("CausalBottomRight",
           [](CaseSpec& s) { s.causal = true, set_lengths(s, 5, 9), s.alignment = Alignment::bottom_right(); });
  list.add("CausalBottomRightMoreQueries",
           [](CaseSpec& s) { s.causal = true, set_lengths(s, 9, 5), s.alignment = Alignment::bottom_right(); });
  list.add("CausalWithCache",
           [](CaseSpec& s) { s.causal = true, set_lengths(s, 3, 20), s.alignment = Alignment::offset(17); });
  list.add("CausalOffsetPerRow", [](CaseSpec& s) {
    s.causal = true, set_lengths(s, 3, 20), s.alignment = Alignment::offsets({4, 11});
  });
  list.add("CausalBeforeAllKeys", [](CaseSpec& s) { s.causal = true, s.alignment = Alignment::offset(-4); });
  list.add("CausalRowLengths", [](CaseSpec& s) {
    s.causal = true, s.key_lengths = {3, 7}, s.alignment = Alignment::bottom_right();
  });
  list.add("WindowBothSides", [](CaseSpec& s) { s.window = {2, 1}, set_lengths(s, 17, 17); });
  list.add("WindowLeftCausal", [](CaseSpec& s) { s.window.left = 3, s.causal = true, set_lengths(s, 33, 33); });
  list.add("WindowRightOnly", [](CaseSpec& s) { s.window.right = 2; });
  list.add("WindowZero", [](CaseSpec& s) { s.window = {0, 0}; });
  list.add("WindowPastTheKeys", [](CaseSpec& s) {
    s.window = {1, 1}, set_lengths(s, 30, 6), s.alignment = Alignment::top_left();
  });
  list.add("KeyLengths", [](CaseSpec& s) { s.key_lengths = {4, 6}; });
  list.add("KeyLengthZero", [](CaseSpec& s) { s.key_lengths = {0, 7}; });
  list.add("KeyLengthZeroWithSink", [](CaseSpec& s) { s.key_lengths = {0, 7}, s.sinks = true; });
  const PackedSequences packed{{0, 5, 5, 16, 20}, {0, 5, 9, 20, 31}};
  list.add("Packed", [&](CaseSpec& s) { s.batch = 1, set_lengths(s, 20, 31), s.packed = packed; });
  list.add("PackedCausal", [&](CaseSpec& s) {
    s.batch = 1, set_lengths(s, 20, 31), s.packed = packed, s.causal = true, s.alignment = Alignment::bottom_right();
  });
  list.add("PackedKeyLengths", [&](CaseSpec& s) {
    s.batch = 1, set_lengths(s, 20, 31), s.packed = packed, s.key_lengths = {5, 0, 3, 11};
  });
  list.add("PackedDropoutAlibi", [&](CaseSpec& s) {
    s.batch = 1, set_lengths(s, 20, 31), s.packed = packed, s.alibi = true, s.dropout = {.rate = 0.4, .seed = 5};
    s.alignment = Alignment::top_left();
  });
}

void add_masks(List& list) {
  const auto mask = [&](const char* name, const MaskSpec& spec) {
    list.add(name, [&](CaseSpec& s) { s.masks = {spec}, s.query_heads = 4, set_lengths(s, 9, 13); });
  };
  mask("MaskKeep", {.kind = Mask::Kind::keep});
  mask("MaskDrop", {.kind = Mask::Kind::drop});
  mask("MaskDropAll", {.kind = Mask::Kind::drop, .chance = 1.0});
  mask("MaskAdd", {.kind = Mask::Kind::add});
  mask("MaskAddHides", {.kind = Mask::Kind::add, .special = kHide});
  mask("MaskAddLowest", {.kind = Mask::Kind::add, .special = -3.4028234663852886e38});
  mask("MaskAddBillion", {.kind = Mask::Kind::add, .special = -1e9});
  mask("MaskAddBillionEverywhere", {.kind = Mask::Kind::add, .chance = 1.0, .special = -1e9});
  mask("MaskAddBf16", {.kind = Mask::Kind::add, .dtype = DType::bf16});
  mask("MaskAddF16", {.kind = Mask::Kind::add, .dtype = DType::f16});
  mask("MaskFillBillion", {.kind = Mask::Kind::fill});
  mask("MaskFillBillionEverywhere", {.kind = Mask::Kind::fill, .chance = 1.0});
  mask("MaskFillHides", {.kind = Mask::Kind::fill, .value = kHide});
  mask("MaskFillFinite", {.kind = Mask::Kind::fill, .value = 0.25});
  mask("MaskPlane", {.kind = Mask::Kind::keep, .plane_only = true});
  mask("MaskPerBatch", {.kind = Mask::Kind::drop, .one_head = true});
  mask("MaskPerHead", {.kind = Mask::Kind::add, .one_batch = true});
  mask("MaskPadding", {.kind = Mask::Kind::keep, .one_head = true, .one_query = true});
  mask("MaskPerQuery", {.kind = Mask::Kind::drop, .one_batch = true, .one_head = true, .one_key = true});
  mask("MaskOneNumber", {.kind = Mask::Kind::add, .one_query = true, .one_key = true, .plane_only = true});
  list.add("MasksOfEveryKind", [](CaseSpec& s) {
    s.masks = {{.kind = Mask::Kind::keep, .one_head = true},
               {.kind = Mask::Kind::add},
               {.kind = Mask::Kind::fill, .value = -3.0},
               {.kind = Mask::Kind::drop, .plane_only = true, .chance = 0.1},
               {.kind = Mask::Kind::add, .one_query = true}};
    s.causal = true, s.softcap = 4.0, s.alibi = true, s.sinks = true, set_heads(s, 4, 2), set_lengths(s, 11, 11);
  });
  list.add("MaskPacked", [](CaseSpec& s) {
    s.batch = 1, set_lengths(s, 9, 14), s.packed = {{0, 4, 9}, {0, 6, 14}}, s.masks = {{.kind = Mask::Kind::drop}};
  });
}

constexpr Stage kEveryStage[] = {Stage::raw, Stage::capped, Stage::masked, Stage::weights, Stage::dropped_weights};

void add_captures(List& list) {
  std::vector<std::pair<Stage, Selection>> every_stage;
  for (const Stage stage : kEveryStage) every_stage.push_back({stage, {}});
  list.add("CaptureEveryStage", [&](CaseSpec& s) {
    s.captures = every_stage, s.softcap = 3.0, s.causal = true, s.masks = {{.kind = Mask::Kind::add}};
    s.dropout = {.rate = 0.25, .seed = 9}, s.key_lengths = {5, 7};
  });
  list.add("CaptureMean", [](CaseSpec& s) {
    s.captures = {{Stage::dropped_weights, {.mean_over_heads = true}},
                  {Stage::weights, {.mean_over_heads = true, .heads = {1, 3}}}};
    set_heads(s, 4, 2), s.dropout = {.rate = 0.25, .seed = 9};
  });
  list.add("CaptureMeanOfLowest", [](CaseSpec& s) {
    s.captures = {{Stage::masked, {.mean_over_heads = true}}}, set_heads(s, 3, 3);
    s.masks = {{.kind = Mask::Kind::fill, .value = -3.4028234663852886e38}, {.kind = Mask::Kind::drop, .chance = 0.1}};
  });
  list.add("CaptureChosen", [](CaseSpec& s) {
    s.captures = {{Stage::weights, {.heads = {3, 0}, .queries = {6, 2, 2}}},
                  {Stage::masked, {.queries = {0}}},
                  {Stage::weights, {.mean_over_heads = true, .queries = {5}}}};
    set_heads(s, 4, 4), s.causal = true;
  });
  list.add("CaptureMeanOfManyQueries", [](CaseSpec& s) {
    s.captures = {{Stage::dropped_weights, {.mean_over_heads = true}}}, set_heads(s, 4, 2), set_lengths(s, 110, 300);
    s.causal = true, s.alignment = Alignment::bottom_right(), s.sinks = true, s.key_lengths = {300, 90};
  });
  list.add("CapturePacked", [&](CaseSpec& s) {
    s.batch = 1, set_lengths(s, 9, 14), s.packed = {{0, 4, 9}, {0, 6, 14}}, s.captures = every_stage;
  });
}

// Few queries against a cache, as in decoding and in prefill by chunks.
void add_decoding(List& list) {
  const auto decode = [&](const char* name, std::int64_t queries, std::int64_t keys, const auto& change) {
    list.add(name, [&](CaseSpec& s) {
      s.batch = 1, set_heads(s, 8, 2), set_lengths(s, queries, keys), s.head_size = s.value_size = 16;
      s.causal = true, s.alignment = Alignment::bottom_right();
      change(s);
    });
  };
  decode("Decode", 1, 300, [](CaseSpec&) {});
  decode("DecodeAtTheEdgeOfAChunk", 1, 512, [](CaseSpec&) {});
  decode("DecodePastTheEdgeOfAChunk", 1, 513, [](CaseSpec&) {});
  decode("DecodeOneKvHead", 1, 700, [](CaseSpec& s) { set_heads(s, 8, 1), s.head_size = s.value_size = 64; });
  decode("DecodeWithoutGroups", 1, 300, [](CaseSpec& s) { set_heads(s, 3, 3), s.head_size = s.value_size = 20; });
  decode("DecodeLongCache", 1, 3000, [](CaseSpec& s) { set_heads(s, 4, 1), s.head_size = 32, s.value_size = 24; });
  decode("DecodeLengthsOfABatch", 1, 600, [](CaseSpec& s) { s.batch = 4, s.key_lengths = {600, 1, 0, 257}; });
  decode("DecodeEveryOption", 1, 600, [](CaseSpec& s) {
    s.window.left = 400, s.softcap = 5.0, s.alibi = true, s.sinks = true;
    s.dropout = {.rate = 0.3, .seed = 6, .query_start = 599};
  });
  decode("DecodeMasked", 2, 600, [](CaseSpec& s) {
    s.masks = {{.kind = Mask::Kind::keep, .one_head = true}, {.kind = Mask::Kind::add, .one_query = true}};
  });
  decode("FewQueriesOnACache", 5, 600, [](CaseSpec&) {});
  decode("PrefillOnACache", 64, 700, [](CaseSpec&) {});
  decode("PrefillOnACacheOneKvHead", 64, 300, [](CaseSpec& s) { set_heads(s, 4, 1), s.head_size = s.value_size = 40; });
}

// Keys and values in pages, and in i8.
void add_storage(List& list) {
  const auto paged = [&](const char* name, std::int64_t size, std::int64_t queries, std::int64_t keys,
                         const auto& change) {
    list.add(name, [&](CaseSpec& s) {
      set_heads(s, 4, 2), set_lengths(s, queries, keys), s.head_size = s.value_size = 16;
      s.alignment = Alignment::bottom_right();
      change(s);
      s.put_in_pages(size);
    });
  };
  paged("PagesDecode", 16, 1, 600, [](CaseSpec& s) { s.causal = true; });
  paged("PagesDecodeLargePages", 512, 1, 1500, [](CaseSpec& s) { s.key_lengths = {1500, 513}, s.causal = true; });
  paged("PagesDecodeWindow", 64, 1, 700, [](CaseSpec& s) { s.causal = true, s.window.left = 299; });
  paged("PagesDecodeMasked", 32, 2, 500, [](CaseSpec& s) {
    s.key_lengths = {500, 77}, s.masks = {{.kind = Mask::Kind::keep, .one_head = true, .one_key = true}};
  });
  paged("PagesDecodeOptions", 16, 3, 330, [](CaseSpec& s) {
    s.causal = true, s.softcap = 4.0, s.alibi = true, s.sinks = true, s.dropout = {.rate = 0.3, .seed = 3};
  });
  paged("PagesPrefill", 64, 70, 400, [](CaseSpec& s) { s.key_lengths = {400, 129}, s.causal = true; });
  paged("PagesPrefillSmall", 16, 50, 300, [](CaseSpec& s) { s.key_lengths = {255, 300}; });
  paged("PagesPrefillWindow", 32, 60, 333, [](CaseSpec& s) { s.causal = true, s.window.left = 40; });
  paged("PagesPrefillMasked", 128, 40, 290, [](CaseSpec& s) {
    s.masks = {{.kind = Mask::Kind::drop, .one_head = true}, {.kind = Mask::Kind::add, .one_query = true}};
  });
  paged("PagesEmptyRow", 16, 5, 20, [](CaseSpec& s) { s.key_lengths = {0, 17}, s.sinks = true; });
  paged("PagesCaptures", 16, 9, 280, [](CaseSpec& s) {
    s.key_lengths = {280, 61}, s.causal = true;
    s.captures = {{Stage::raw, {}}, {Stage::masked, {}}, {Stage::weights, {}}};
    s.captures.push_back({Stage::dropped_weights, {.mean_over_heads = true}});
  });
  paged("PagesOneToARow", 100, 3, 100, [](CaseSpec& s) { s.key_lengths = {100, 41}; });
  paged("PagesInGaps", 16, 3, 90, [](CaseSpec& s) { s.layout = MemoryLayout::gaps; });
  paged("PagesTokensFirst", 64, 1, 300, [](CaseSpec& s) { s.layout = MemoryLayout::blhd; });
  paged("PagesI8", 32, 20, 200, [](CaseSpec& s) { s.key_lengths = {200, 31}, s.kv_type = DType::i8; });
  paged("PagesI8Decode", 16, 1, 600, [](CaseSpec& s) { s.causal = true, s.kv_type = DType::i8; });

  const auto i8 = [&](const char* name, std::int64_t queries, std::int64_t keys, const auto& change) {
    list.add(name, [&](CaseSpec& s) {
      s.kv_type = DType::i8, set_heads(s, 4, 2), set_lengths(s, queries, keys), s.head_size = 24, s.value_size = 20;
      change(s);
    });
  };
  i8("I8", 13, 21, [](CaseSpec&) {});
  i8("I8Bf16Query", 13, 21, [](CaseSpec& s) { s.query_type = DType::bf16; });
  i8("I8Decode", 1, 700, [](CaseSpec& s) { s.key_lengths = {700, 259}; });
  i8("I8Prefill", 70, 300, [](CaseSpec& s) { s.causal = true, s.alignment = Alignment::bottom_right(); });
  i8("I8InGaps", 5, 40, [](CaseSpec& s) { s.layout = MemoryLayout::gaps; });
  i8("I8Captures", 9, 40, [](CaseSpec& s) { s.captures = {{Stage::raw, {}}, {Stage::weights, {}}}; });
  i8("I8Packed", 9, 14, [](CaseSpec& s) { s.batch = 1, s.packed = {{0, 4, 9}, {0, 6, 14}}, s.key_lengths = {5, 8}; });
}

// The first keys, which stay visible outside a window.
void add_first_keys(List& list) {
  const auto window = [&](const char* name, std::int64_t queries, std::int64_t keys, Window given, const auto& change) {
    list.add(name, [&](CaseSpec& s) {
      set_lengths(s, queries, keys), s.window = given, s.alignment = Alignment::bottom_right();
      change(s);
    });
  };
  const auto causal = [](CaseSpec& s) { s.causal = true; };
  window("FirstKeysCausal", 33, 33, {.left = 3, .first = 2}, causal);
  window("FirstKeysOnEitherSide", 20, 20, {.left = 1, .right = 1, .first = 5}, [](CaseSpec&) {});
  window("FirstKeysUnboundedWindow", 9, 9, {.first = 3}, causal);
  window("FirstKeysAreAll", 30, 30, {.left = 0, .first = 100}, causal);
  window("FirstKeysWindowPastTheKeys", 30, 6, {.left = 1, .right = 1, .first = 2},
         [](CaseSpec& s) { s.alignment = Alignment::top_left(); });
  window("FirstKeysWindowBeforeTheKeys", 7, 7, {.right = 0, .first = 3},
         [](CaseSpec& s) { s.alignment = Alignment::offset(-5); });
  window("FirstKeysLengths", 7, 7, {.left = 1, .first = 4}, [](CaseSpec& s) { s.key_lengths = {2, 7}; });
  window("FirstKeysPacked", 31, 31, {.left = 2, .first = 3}, [](CaseSpec& s) {
    s.batch = 1, s.packed = {{0, 9, 9, 24, 31}, {0, 9, 12, 27, 31}}, s.causal = true;
    s.captures = {{Stage::raw, {}}, {Stage::masked, {}}, {Stage::weights, {}}};
  });
  window("FirstKeysEveryOption", 40, 40, {.left = 4, .first = 6}, [](CaseSpec& s) {
    s.causal = true, s.softcap = 5.0, s.alibi = true, s.sinks = true, s.dropout = {.rate = 0.3, .seed = 8};
    s.masks = {{.kind = Mask::Kind::drop, .chance = 0.4}, {.kind = Mask::Kind::add, .one_head = true}};
  });
  // Whole chunks lie between the first keys and the window.
  window("FirstKeysFarBehind", 900, 900, {.left = 70, .first = 4}, [](CaseSpec& s) {
    s.batch = 1, s.causal = true, set_heads(s, 2, 1);
    s.captures = {{Stage::weights, {.heads = {1}, .queries = {0, 6, 300, 899}}}};
  });
  window("FirstKeysOfTwoChunks", 700, 700, {.left = 50, .first = 270},
         [](CaseSpec& s) { s.batch = 1, s.causal = true, s.head_size = s.value_size = 20; });
  window("FirstKeysMeanWeights", 130, 900, {.left = 90, .first = 9}, [](CaseSpec& s) {
    s.captures = {{Stage::dropped_weights, {.mean_over_heads = true}}}, s.causal = true, s.key_lengths = {900, 500};
  });
  window("FirstKeysDecode", 1, 1500, {.left = 299, .first = 4},
         [](CaseSpec& s) { s.causal = true, set_heads(s, 8, 2); });
  window("FirstKeysFewQueries", 6, 1500, {.left = 40, .first = 300}, causal);
  window("FirstKeysPrefillOnACache", 64, 1200, {.left = 500, .right = 3, .first = 11}, [](CaseSpec&) {});
  window("FirstKeysPages", 1, 900, {.left = 63, .first = 4},
         [](CaseSpec& s) { s.causal = true, set_heads(s, 4, 2), s.put_in_pages(32); });
  window("FirstKeysI8", 5, 700, {.left = 30, .first = 20}, [](CaseSpec& s) {
    s.causal = true, s.kv_type = DType::i8, s.key_lengths = {700, 90};
  });
}

}  // namespace

std::vector<CaseSpec> all_cases() {
  List list;
  add_shapes(list);
  add_layouts_and_types(list);
  add_scores_options(list);
  add_visibility(list);
  add_masks(list);
  add_captures(list);
  add_decoding(list);
  add_storage(list);
  add_first_keys(list);
  return list.take();
}

std::vector<CaseSpec> all_cases_in_every_type() {
  constexpr std::pair<DType, const char*> kTypes[] = {{DType::f32, "F32"}, {DType::bf16, "Bf16"}, {DType::f16, "F16"}};
  std::vector<CaseSpec> list;
  for (const CaseSpec& plain : all_cases()) {
    if (plain.query_type != DType::f32 || plain.kv_type != DType::f32) continue;  // these cases vary types already
    for (const auto& [query_type, query_name] : kTypes) {
      for (const auto& [kv_type, kv_name] : kTypes) {
        CaseSpec& spec = list.emplace_back(plain);
        spec.name += std::string(query_name) + "On" + kv_name;
        set_types(spec, query_type, kv_type);
        spec.narrow_weights = list.size() % 2 == 0;
        if (!spec.captures.empty()) continue;
        for (const Stage stage : kEveryStage) spec.captures.push_back({stage, {}});
        spec.captures.push_back({Stage::dropped_weights, {.mean_over_heads = true}});
      }
    }
  }
  return list;
}

}  // namespace rapt::cases
