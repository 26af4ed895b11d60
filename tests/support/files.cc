#include "support/files.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "core/elements.h"

namespace rapt::test {
namespace {

// Calls visit(row-major index, offset in the view's memory) for every element.
template <class Visit>
void for_each_place(const ConstTensorView& view, const Visit& visit) {
  for (std::int64_t place = 0; place < view.count(); ++place) {
    std::int64_t rest = place, offset = 0;
    for (int dim = view.rank() - 1; dim >= 0; --dim) {
      offset += rest % view.size(dim) * view.stride(dim);
      rest /= view.size(dim);
    }
    visit(place, offset);
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "rapt-test-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

int TemporaryFolder::file_count() const {
  return static_cast<int>(std::distance(std::filesystem::directory_iterator(path_), {}));
}

void write_raw(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

std::string read_raw(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

double made_value(std::int64_t i) { return static_cast<double>(i % 7 - 2) + static_cast<double>(i) / 4.0; }

double made_integer(std::int64_t i, bool has_sign) { return static_cast<double>(i % 7 - (has_sign ? 2 : 0)); }

void expect_made(const ConstTensorView& view, const Dims& shape, DType dtype) {
  ASSERT_EQ(view.shape(), shape);
  ASSERT_EQ(view.dtype(), dtype);
  for_each_place(view, [&](std::int64_t place, std::int64_t offset) {
    Tensor rounded(Dims{}, dtype);
    store(rounded.view().data(), dtype, 0, dtype == DType::boolean ? (place % 7 > 2 ? 1.0 : 0.0) : made_value(place));
    EXPECT_EQ(load(view.data(), dtype, offset), load(rounded.view().data(), dtype, 0)) << "at " << place;
  });
}

void expect_same(const ConstTensorView& a, const ConstTensorView& b) {
  ASSERT_EQ(a.shape(), b.shape());
  ASSERT_EQ(a.dtype(), b.dtype());
  const Tensor left = Tensor::copy_of(a), right = Tensor::copy_of(b);
  const std::size_t size = static_cast<std::size_t>(a.count()) * size_of(a.dtype());
  const auto bytes = [&](const Tensor& tensor) {
    return std::string_view(static_cast<const char*>(tensor.view().data()), size);
  };
  EXPECT_TRUE(bytes(left) == bytes(right));
}

}  // namespace rapt::test
