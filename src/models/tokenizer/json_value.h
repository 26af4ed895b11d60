// A JSON file as values, without the types of the library that parses it: only json_value.cc compiles that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace rapt::models {

struct JsonMember;

struct JsonValue {
  using Array = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;
  // Whole numbers that do not fit 64 bits are doubles.
  std::variant<std::nullptr_t, bool, std::int64_t, double, std::string, Array, Object> value;
};

struct JsonMember {
  std::string key;
  JsonValue value;
};

constexpr int kMostJsonDepth = 32;
constexpr std::size_t kMostJsonValues = std::size_t{4} << 20U;  // the largest tokenizer.json in use has half of them

// Throws FileError, which starts with `where` and names the byte, if the text is not JSON, is nested too deeply, has
// too many values, or if an object has a key twice.
JsonValue parse_json(std::string_view text, const std::string& where);

// A value and its place in its file, for messages: "model.vocab". The value outlives it.
class JsonEntry {
 public:
  JsonEntry(const JsonValue& value, std::string where, std::string path = "")
      : value_(&value), where_(std::move(where)), path_(std::move(path)) {}

  // The member of an object; throws if it is absent or null.
  JsonEntry at(std::string_view key) const;
  // The same, or nothing.
  std::optional<JsonEntry> find(std::string_view key) const;
  // An element of an array.
  JsonEntry item(std::size_t index) const;

  // Each throws if the value is of another kind.
  const std::string& text() const;
  bool boolean() const;
  double number() const;
  std::int64_t whole(std::int64_t least, std::int64_t most) const;
  const JsonValue::Array& array() const;
  const JsonValue::Object& object() const;

  // Members with a default.
  std::string text_or(std::string_view key, const std::string& otherwise) const;
  bool boolean_or(std::string_view key, bool otherwise) const;

  bool is_text() const { return std::holds_alternative<std::string>(value_->value); }
  bool is_object() const { return std::holds_alternative<JsonValue::Object>(value_->value); }

  [[noreturn]] void fail(const std::string& problem) const;

 private:
  [[noreturn]] void expected(const char* what) const;
  std::string path_of(std::string_view key) const;

  const JsonValue* value_;
  std::string where_;  // the start of messages, which names the file
  std::string path_;
};

}  // namespace rapt::models
