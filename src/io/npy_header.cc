#include "io/npy_header.h"

#include <algorithm>
#include <array>
#include <utility>

#include "io/file_types.h"
#include "io/json.h"

namespace rapt::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

// Reads the few kinds of Python literals that a header contains.
class LiteralReader {
 public:
  LiteralReader(std::string_view text, std::size_t start, const FileChecks& checks)
      : text_(text), start_(start), checks_(checks) {}

  template <class... Pieces>
  [[noreturn]] void fail(const Pieces&... pieces) const {
    checks_.fail("byte ", start_ + offset_, ", in the header: ", pieces...);
  }

  char peek() {
    while (offset_ < text_.size()) {
      const char c = text_[offset_];
      if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
      ++offset_;
    }
    return 0;
  }
  bool take_if(char c) {
    if (peek() != c || offset_ >= text_.size()) return false;
    ++offset_;
    return true;
  }
  void take(char c) {
    if (take_if(c)) return;
    const bool more = offset_ < text_.size();
    fail("expected '", c, "', ", more ? text("found ", quoted(text_.substr(offset_, 1))) : "but the header ends");
  }

  // NumPy writes no escape sequences in the headers that rapt supports.
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail("expected a string");
    const std::size_t end = text_.find(quote, ++offset_);
    if (end == std::string_view::npos) fail("unterminated string");
    const std::string_view found = text_.substr(offset_, end - offset_);
    if (found.find('\\') != std::string_view::npos) fail("a string contains an escape sequence");
    offset_ = end + 1;
    return std::string(found);
  }

  bool boolean() {
    (void)peek();
    for (const auto& [word, value] : {std::pair{std::string_view("True"), true}, {std::string_view("False"), false}}) {
      if (text_.substr(offset_, word.size()) != word) continue;
      offset_ += word.size();
      return value;
    }
    fail("expected True or False");
  }

  // A tuple of sizes: (), (3,), (2, 3). Python 2 wrote 3L.
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> sizes;
    take('(');
    while (!take_if(')')) {
      if (peek() == '-') fail("a size is negative");
      if (peek() < '0' || peek() > '9') fail("expected a size");
      if (sizes.size() == static_cast<std::size_t>(Dims::kMaxRank)) {
        fail("the array has more than ", int{Dims::kMaxRank}, " dimensions");
      }
      std::int64_t size = 0;
      for (; offset_ < text_.size() && text_[offset_] >= '0' && text_[offset_] <= '9'; ++offset_) {
        const bool fits =
            !__builtin_mul_overflow(size, 10, &size) && !__builtin_add_overflow(size, text_[offset_] - '0', &size);
        if (!fits) fail("a size overflows");
      }
      if (offset_ < text_.size() && text_[offset_] == 'L') ++offset_;
      sizes.push_back(size);
      if (!take_if(',')) {
        take(')');
        if (sizes.size() == 1) fail("(", size, ") is a number, not a tuple");
        break;
      }
    }
    return sizes;
  }

  void end() {
    if (peek() != 0 || offset_ < text_.size()) fail("unexpected data after the dictionary");
  }

 private:
  std::string_view text_;
  std::size_t start_;
  const FileChecks& checks_;
  std::size_t offset_ = 0;
};

// Parses a type such as "<f4" into kind, size and byte order, and finds the name that NumPy prints for it.
void understand(const std::string& descr, NpyHeader& header, const FileChecks& checks) {
  NpyInfo& info = header.info;
  info.type = descr;
  if (descr == "bfloat16") {
    header.kind = 'V', header.item_size = 2;
  } else {
    std::string_view rest = descr;
    if (!rest.empty() && std::string_view("<>|=").find(rest.front()) != std::string_view::npos) {
      info.big_endian = rest.front() == '>';
      rest.remove_prefix(1);
    }
    const bool sized = rest.size() >= 2 && rest.size() <= 10 &&
                       std::all_of(rest.begin() + 1, rest.end(), [](char c) { return c >= '0' && c <= '9'; });
    checks.require(!rest.empty() && (sized || rest.size() == 1), "the type ", quoted(descr), " is not a NumPy type");
    if (!sized) return;  // 'O', and other letters without a size
    std::uint64_t size = 0;
    for (const char c : rest.substr(1)) size = size * 10 + static_cast<std::uint64_t>(c - '0');
    header.kind = rest.front(), header.item_size = size;
  }
  info.dtype = dtype_of_npy(header.kind, header.item_size);
  const std::uint64_t bits = header.item_size * 8;
  switch (header.kind) {
    case 'f': info.type = text("float", bits); break;
    case 'i': info.type = text("int", bits); break;
    case 'u': info.type = text("uint", bits); break;
    case 'c': info.type = text("complex", bits); break;
    case 'b': info.type = header.item_size == 1 ? "bool" : descr; break;
    case 'V': info.type = header.item_size == 2 ? "bfloat16" : descr; break;
    default:  // text and dates: the size is not in bytes
      header.kind = 0, header.item_size = 0;
  }
}

}  // namespace

NpyHeader parse_npy_header(Bytes start, const FileChecks& checks) {
  checks.require(start.size() >= 10, "has ", start.size(), " bytes; a .npy header alone takes more");
  checks.require(as_text(start.first(6)) == kMagic, "is not a .npy file: it starts with other bytes");
  const auto major = static_cast<unsigned>(start[6]);
  const auto minor = static_cast<unsigned>(start[7]);
  checks.require(major >= 1 && major <= 3 && minor == 0, "has version ", major, '.', minor,
                 "; 1.0, 2.0 and 3.0 are supported");
  const std::size_t before = major == 1 ? 10 : 12;
  checks.require(start.size() >= before, "is truncated in its header");
  const std::uint64_t size =
      major == 1 ? read_number<std::uint16_t>(start, 8) : std::uint64_t{read_number<std::uint32_t>(start, 8)};
  checks.require(size <= kMaxNpyHeader - 12, "the header has ", size, " bytes; the limit is ", kMaxNpyHeader - 12);
  checks.require(size <= start.size() - before, "the header ends at byte ", before + size, ", the file has ",
                 start.size(), " bytes");
  const std::string_view words = as_text(start.subspan(before, static_cast<std::size_t>(size)));
  checks.require(is_utf8(words), "the header is not UTF-8");

  NpyHeader header;
  header.data_begin = before + size;
  LiteralReader reader(words, before, checks);
  std::array<bool, 3> seen{};
  const auto once = [&](std::size_t place, const std::string& key) {
    if (std::exchange(seen[place], true)) reader.fail("the key ", quoted(key), " appears twice");
  };
  reader.take('{');
  while (!reader.take_if('}')) {
    const std::string key = reader.string();
    reader.take(':');
    if (key == "descr") {
      once(0, key);
      if (reader.peek() == '[')
        checks.fail("holds records with fields (a structured type), which rapt does not support");
      understand(reader.string(), header, checks);
    } else if (key == "fortran_order") {
      once(1, key);
      header.info.fortran_order = reader.boolean();
    } else if (key == "shape") {
      once(2, key);
      header.info.shape = reader.shape();
    } else {
      reader.fail("the key ", quoted(key), " is not one of descr, fortran_order and shape");
    }
    if (!reader.take_if(',')) {
      reader.take('}');
      break;
    }
  }
  reader.end();
  checks.require(seen[0] && seen[1] && seen[2], "the header must have descr, fortran_order and shape");
  return header;
}

std::string npy_header_for(const ConstTensorView& view) {
  const FileType& type = file_type(view.dtype());
  const std::size_t size = size_of(view.dtype());
  std::string words = text("{'descr': '", size == 1 ? '|' : '<', type.npy, size,
                           "', 'fortran_order': False, 'shape': ", view.shape(), ", }");
  constexpr std::size_t kBefore = 10, kAlignment = 64;
  const std::size_t whole = (kBefore + words.size() + 1 + kAlignment - 1) / kAlignment * kAlignment;
  words.resize(whole - kBefore - 1, ' ');
  words += '\n';
  const auto length = static_cast<std::uint16_t>(words.size());
  std::string header(kMagic);
  header += {'\x01', '\x00', static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  return header + words;
}

}  // namespace rapt::io
