// Uses the installed package as any program would, and returns 0 only if the result is correct.
#include <cmath>
#include <cstdio>

#include <rapt/attention.h>
#include <rapt/dtype.h>
#include <rapt/error.h>
#include <rapt/npy.h>
#include <rapt/parallel.h>
#include <rapt/random.h>
#include <rapt/tensor.h>

int main() {
  // One head, two tokens of size 1. Causal: token 0 sees itself; token 1 sees both with equal scores.
  const rapt::Tensor q = rapt::Tensor::from<float>({1, 1, 2, 1}, {1.0F, 0.0F});
  const rapt::Tensor v = rapt::Tensor::from<float>({1, 1, 2, 1}, {3.0F, 5.0F});
  const rapt::Tensor out = rapt::attention(q, q, v, {.causal = true});
  const auto values = out.values<float>();
  if (std::abs(values[0] - 3.0F) > 1e-6F || std::abs(values[1] - 4.0F) > 1e-6F) {
    std::printf("consumer: got %g and %g, expected 3 and 4\n", static_cast<double>(values[0]),
                static_cast<double>(values[1]));
    return 1;
  }

  // Requires the library's own dependency, zlib.
  const auto archive = rapt::npz_bytes({{"out", out}}, {.compress = true});
  if (rapt::NpzFile(archive, "archive").at("out").view().at<float>(0, 0, 1, 0) != values[1]) {
    std::printf("consumer: an archive reads differently than it was written\n");
    return 1;
  }

  // An exception must leave the library with the type that its header declares.
  try {
    const rapt::Tensor other = rapt::Tensor::from<float>({1, 1, 2, 2}, {1.0F, 2.0F, 3.0F, 4.0F});
    (void)rapt::attention(q, other, v);
  } catch (const rapt::Error& error) {
    std::printf("consumer: right answer; refused as it should be: %s\n", error.what());
    return 0;
  }
  std::printf("consumer: a key of another head size was accepted\n");
  return 1;
}
