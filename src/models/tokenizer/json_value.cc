#include "models/tokenizer/json_value.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/text.h"
#include "models/tokenizer/quoted.h"
#include "rapt/error.h"

namespace rapt::models {
namespace {

using Json = nlohmann::json;

// Builds values while the text is read. The parser does not recurse, so the depth is bounded here, before anything
// recurses over the values.
class Builder : public nlohmann::json_sax<Json> {
 public:
  explicit Builder(const std::string& where) : where_(where) {}

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(std::int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<number_unsigned_t>(INT64_MAX)) return add(static_cast<double>(value));
    return add(static_cast<std::int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override { return add(double{value}); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& /*value*/) override { return false; }  // JSON has none

  bool start_object(std::size_t /*size*/) override { return enter(JsonValue::Object()); }
  bool key(string_t& value) override {
    keys_.back() = std::move(value);
    return true;
  }
  bool end_object() override {
    const auto& members = std::get<JsonValue::Object>(open_.back().value);
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const JsonMember& member : members) keys.push_back(member.key);
    std::sort(keys.begin(), keys.end());
    const auto twice = std::adjacent_find(keys.begin(), keys.end());
    if (twice != keys.end()) fail("the key ", quoted(*twice), " appears twice in an object");
    return leave();
  }
  bool start_array(std::size_t /*size*/) override { return enter(JsonValue::Array()); }
  bool end_array() override { return leave(); }

  bool parse_error(std::size_t position, const std::string& last, const nlohmann::detail::exception& error) override {
    // The message of the parser has its own names of files and bytes; what it read last says as much.
    (void)error;
    fail("byte ", position, ": not JSON from ", quoted(last), " on");
  }

  JsonValue take() { return std::move(done_); }

 private:
  template <class... Pieces>
  [[noreturn]] void fail(const Pieces&... pieces) const {
    throw FileError(text(where_, pieces...));
  }

  template <class Value>
  bool add(Value&& value) {
    if (++count_ > kMostJsonValues) fail("has more than ", kMostJsonValues, " values");
    place(JsonValue{std::forward<Value>(value)});
    return true;
  }
  void place(JsonValue&& value) {
    if (open_.empty()) {
      done_ = std::move(value);
    } else if (auto* object = std::get_if<JsonValue::Object>(&open_.back().value)) {
      object->push_back({std::move(keys_.back()), std::move(value)});
    } else {
      std::get<JsonValue::Array>(open_.back().value).push_back(std::move(value));
    }
  }
  template <class Container>
  bool enter(Container&& empty) {
    if (++count_ > kMostJsonValues) fail("has more than ", kMostJsonValues, " values");
    if (open_.size() == static_cast<std::size_t>(kMostJsonDepth)) {
      fail("values are nested more than ", kMostJsonDepth, " levels deep");
    }
    open_.push_back(JsonValue{std::forward<Container>(empty)});
    keys_.emplace_back();
    return true;
  }
  bool leave() {
    JsonValue value = std::move(open_.back());
    open_.pop_back();
    keys_.pop_back();
    place(std::move(value));
    return true;
  }

  const std::string& where_;
  JsonValue done_;
  std::vector<JsonValue> open_;    // objects and arrays that are being read
  std::vector<std::string> keys_;  // the key that was read last in each of them
  std::size_t count_ = 0;
};

const char* kind_of(const JsonValue& value) {
  constexpr const char* kKinds[] = {"null",     "true or false", "a whole number", "a number",
                                    "a string", "an array",      "an object"};
  return kKinds[value.value.index()];
}

}  // namespace

JsonValue parse_json(std::string_view text, const std::string& where) {
  Builder builder(where);
  (void)Json::sax_parse(text.begin(), text.end(), &builder);  // a failure throws
  return builder.take();
}

void JsonEntry::fail(const std::string& problem) const {
  throw FileError(rapt::text(where_, path_, path_.empty() ? "" : ": ", problem));
}

void JsonEntry::expected(const char* what) const { fail(rapt::text("expected ", what, ", found ", kind_of(*value_))); }

std::string JsonEntry::path_of(std::string_view key) const {
  std::string shown(key);
  if (!std::all_of(key.begin(), key.end(),
                   [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; })) {
    shown = quoted(key);
  }
  return path_.empty() ? shown : path_ + "." + shown;
}

std::optional<JsonEntry> JsonEntry::find(std::string_view key) const {
  for (const JsonMember& member : object()) {
    if (member.key != key) continue;
    if (std::holds_alternative<std::nullptr_t>(member.value.value)) return std::nullopt;
    return JsonEntry(member.value, where_, path_of(key));
  }
  return std::nullopt;
}

JsonEntry JsonEntry::at(std::string_view key) const {
  std::optional<JsonEntry> found = find(key);
  if (!found) fail(rapt::text("has no ", quoted(key)));
  return *std::move(found);
}

JsonEntry JsonEntry::item(std::size_t index) const {
  return {array()[index], where_, rapt::text(path_, "[", index, "]")};
}

const std::string& JsonEntry::text() const {
  if (!is_text()) expected("a string");
  return std::get<std::string>(value_->value);
}

bool JsonEntry::boolean() const {
  const bool* found = std::get_if<bool>(&value_->value);
  if (found == nullptr) expected("true or false");
  return *found;
}

double JsonEntry::number() const {
  if (const auto* whole = std::get_if<std::int64_t>(&value_->value)) return static_cast<double>(*whole);
  const auto* found = std::get_if<double>(&value_->value);
  if (found == nullptr) expected("a number");
  return *found;
}

std::int64_t JsonEntry::whole(std::int64_t least, std::int64_t most) const {
  const std::int64_t* found = std::get_if<std::int64_t>(&value_->value);
  if (found == nullptr) expected("a whole number");
  if (*found < least || *found > most) {
    fail(rapt::text("expected a number from ", least, " to ", most, ", found ", *found));
  }
  return *found;
}

const JsonValue::Array& JsonEntry::array() const {
  const JsonValue::Array* found = std::get_if<JsonValue::Array>(&value_->value);
  if (found == nullptr) expected("an array");
  return *found;
}

const JsonValue::Object& JsonEntry::object() const {
  if (!is_object()) expected("an object");
  return std::get<JsonValue::Object>(value_->value);
}

std::string JsonEntry::text_or(std::string_view key, const std::string& otherwise) const {
  const std::optional<JsonEntry> found = find(key);
  return found ? found->text() : otherwise;
}

bool JsonEntry::boolean_or(std::string_view key, bool otherwise) const {
  const std::optional<JsonEntry> found = find(key);
  return found ? found->boolean() : otherwise;
}

}  // namespace rapt::models
