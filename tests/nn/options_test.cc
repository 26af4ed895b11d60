// Checks the table of options against the C++ structs. tests/project/options_test.py checks everything else against it.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "rapt/attention.h"
#include "rapt/kv_cache.h"
#include "rapt/layer_names.h"
#include "rapt/multi_head_attention.h"
#include "rapt/option_table.h"
#include "rapt/rotary.h"
#include "support/count_fields.h"

namespace rapt {

using testing::count_fields;

namespace counted {

// Tests the counter on cases that it must distinguish.
struct Nothing {};
struct Inner {
  std::optional<double> a{};
  int b = 0;
};
struct OfEverything {
  bool flag = false;
  double* pointer = nullptr;
  Inner inner{};
  std::optional<Inner> maybe_inner{};
  std::optional<bool> maybe{};
  std::vector<Inner> list{};
  std::function<void(int)> function{};
  std::span<const std::byte> span{};
  std::string text{};
  ConstTensorView one{}, two{};
};
static_assert(count_fields<Nothing>() == 0);
static_assert(count_fields<Inner>() == 2);
static_assert(count_fields<OfEverything>() == 11);

}  // namespace counted

namespace {

const std::map<std::string_view, std::size_t>& fields() {
  static const std::map<std::string_view, std::size_t> counts = {
      {"AttentionOptions", count_fields<AttentionOptions>()},
      {"Mask", count_fields<Mask>()},
      {"Alignment", count_fields<Alignment>()},
      {"Window", count_fields<Window>()},
      {"PackedSequences", count_fields<PackedSequences>()},
      {"Pages", count_fields<Pages>()},
      {"Dropout", count_fields<Dropout>()},
      {"MultiHeadAttentionConfig", count_fields<MultiHeadAttentionConfig>()},
      {"HeadSlice", count_fields<HeadSlice>()},
      {"RotaryOptions", count_fields<RotaryOptions>()},
      {"RotaryScaling", count_fields<RotaryScaling>()},
      {"RotaryScaling::Yarn", count_fields<RotaryScaling::Yarn>()},
      {"LayerOptions", count_fields<LayerOptions>()},
      {"LoadOptions", count_fields<LoadOptions>()},
      {"SaveOptions", count_fields<SaveOptions>()},
      {"KvCacheConfig", count_fields<KvCacheConfig>()},
  };
  return counts;
}

TEST(OptionTable, HasARowForEveryFieldOfEveryStruct) {
  std::map<std::string_view, std::size_t> rows;
  for (const OptionRow& option : option_table()) ++rows[option.of];
  for (const auto& [name, count] : fields()) {
    EXPECT_EQ(rows[name], count) << name << ": a field was added or removed; say so in src/nn/option_table.cc";
  }
  EXPECT_EQ(rows.size(), fields().size()) << "a struct of the table that is not counted here";
}

TEST(OptionTable, HasTheFieldsThatAWindowShows) {
  std::vector<std::string_view> rows, shown;
  for (const OptionRow& option : option_table()) {
    if (option.of == "Window") rows.push_back(option.name);
  }
  const Window window;
  for_each_field(window, [&](std::string_view name, const auto&) { shown.push_back(name); });
  EXPECT_EQ(shown, rows);
}

TEST(OptionTable, NamesEachFieldOnce) {
  std::set<std::pair<std::string_view, std::string_view>> seen;
  for (const OptionRow& option : option_table()) {
    EXPECT_TRUE(seen.insert({option.of, option.name}).second) << option.of << "::" << option.name;
  }
}

TEST(OptionTable, SaysOfEverySurfaceANameOrAReason) {
  for (const OptionRow& option : option_table()) {
    EXPECT_FALSE(option.default_value.empty() || option.meaning.empty()) << option.of << "::" << option.name;
    for (const OptionName* name : {&option.c, &option.python, &option.command}) {
      EXPECT_NE(name->name.empty(), name->why_not.empty()) << option.of << "::" << option.name;
    }
  }
}

}  // namespace
}  // namespace rapt
