#include "exhibits/toy_model.h"

#include <array>
#include <cmath>

#include "rapt/random.h"

namespace rapt::exhibits {
namespace {

constexpr std::int64_t kCode = 6;       // word: a code that distinguishes words …
constexpr std::int64_t kOne = 12;       // position: the constant 1 …
constexpr std::int64_t kNearness = 13;  // … 1 / (1 + position) …
constexpr std::int64_t kWaves = 14;     // … and cos, sin of position times each frequency

// The sum of the first three waves peaks where two positions are equal and stays under 0.29 of the peak for distances 1
// … 15. The other two are unused, like some dimensions of any position code.
constexpr std::array<double, 5> kFrequencies{2.0, 1.3, 0.3, 0.8, 0.15};

// Gains such that, after the scale of 1/sqrt(6), a head clearly prefers the key it looks for, but not exclusively.
constexpr double kPositionGain = 1.75;
constexpr double kWordGain = 1.35;
constexpr double kFirstGain = 2.8;
constexpr double kNoise = 0.04;

enum Stream : std::uint32_t { kMeaning, kRareCode, kNoiseQ, kNoiseK, kNoiseV, kNoiseO };

// An approximately normal number: the sum of the four uniforms of a Philox block. It depends only on the three
// arguments.
double random_number(Stream stream, std::int64_t row, std::int64_t column) {
  const PhiloxCounter block =
      philox4x32_10({static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(column), stream, 0}, philox_key(2017));
  double sum = 0;
  for (const std::uint32_t word : block) sum += static_cast<double>(word) * 0x1p-32 - 0.5;
  return sum * std::sqrt(3.0);
}

// Twelve codes, any two of which have a dot product of at most 0: the rows of a 6×6 conference matrix and their
// negatives. Further words get random codes of the same length.
double word_code(std::int64_t id, std::int64_t d) {
  static constexpr std::array<std::array<int, 6>, 6> kConference{{{0, 1, 1, 1, 1, 1},
                                                                  {1, 0, 1, -1, -1, 1},
                                                                  {1, 1, 0, 1, -1, -1},
                                                                  {1, -1, 1, 0, 1, -1},
                                                                  {1, -1, -1, 1, 0, 1},
                                                                  {1, 1, -1, -1, 1, 0}}};
  if (id < 2 * kCode) {
    const int entry = kConference[static_cast<std::size_t>(id % kCode)][static_cast<std::size_t>(d)];
    return id < kCode ? entry : -entry;
  }
  double squares = 0;
  for (std::int64_t i = 0; i < kCode; ++i) squares += std::pow(random_number(kRareCode, id, i), 2);
  return random_number(kRareCode, id, d) * std::sqrt(5.0 / squares);
}

Tensor noisy(Stream stream, double size) {
  Tensor weight({kEmbedding, kEmbedding}, DType::f64);
  for (std::int64_t r = 0; r < kEmbedding; ++r) {
    for (std::int64_t c = 0; c < kEmbedding; ++c) weight.view().at<double>(r, c) = size * random_number(stream, r, c);
  }
  return weight;
}

// Reads the first three waves into rows `row` … `row + 5`, shifted by `steps` positions: cos and sin of w·p become
// those of w·(p + steps). A shift in position is a rotation, which a matrix can express.
void read_waves(const TensorView& weight, std::int64_t row, double steps, double gain) {
  for (std::int64_t f = 0; f < 3; ++f) {
    const double angle = kFrequencies[static_cast<std::size_t>(f)] * steps;
    const std::int64_t r = row + 2 * f;
    const std::int64_t c = kWaves + 2 * f;
    weight.at<double>(r, c) += gain * std::cos(angle);
    weight.at<double>(r, c + 1) -= gain * std::sin(angle);
    weight.at<double>(r + 1, c) += gain * std::sin(angle);
    weight.at<double>(r + 1, c + 1) += gain * std::cos(angle);
  }
}

void read_word(const TensorView& weight, std::int64_t row, double gain) {
  for (std::int64_t d = 0; d < kCode; ++d) weight.at<double>(row + d, d) += gain;
}

}  // namespace

Projections make_projections() {
  Projections p{.w_q = noisy(kNoiseQ, kNoise),
                .w_k = noisy(kNoiseK, kNoise),
                .w_v = noisy(kNoiseV, kNoise),
                .w_o = noisy(kNoiseO, 1 / std::sqrt(static_cast<double>(kEmbedding)))};
  const TensorView q = p.w_q.view();
  const TensorView k = p.w_k.view();
  const TensorView v = p.w_v.view();

  read_waves(q, 0, -1, kPositionGain);  // previous word
  read_waves(k, 0, 0, kPositionGain);

  read_word(q, 6, kWordGain);  // same word
  read_word(k, 6, kWordGain);

  q.at<double>(12, kOne) += kFirstGain;  // first word: the waves at position 0 are (1, 0, 1, 0, 1, 0)
  k.at<double>(12, kNearness) += kFirstGain;
  for (std::int64_t f = 0; f < 2; ++f) {
    q.at<double>(14 + 2 * f, kOne) += 1;
    k.at<double>(14 + 2 * f, kWaves + 2 * f) += 1;
  }

  read_waves(q, 18, 1, kPositionGain);  // next word
  read_waves(k, 18, 0, kPositionGain);

  // Every head passes on the word code; odd heads read its other half.
  for (std::int64_t r = 0; r < kEmbedding; ++r) v.at<double>(r, r % kWho) += 0.8;
  return p;
}

Tensor embed(const Sentence& sentence) {
  const std::int64_t length = sentence.length();
  Tensor x({1, length, kEmbedding}, DType::f64);
  const TensorView view = x.view();
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t id = sentence.ids[static_cast<std::size_t>(i)];
    for (std::int64_t d = 0; d < kCode; ++d) {
      view.at<double>(0, i, d) = word_code(id, d);
      view.at<double>(0, i, kCode + d) = 0.7 * random_number(kMeaning, id, d);
    }
    const auto position = static_cast<double>(i);
    view.at<double>(0, i, kOne) = 1;
    view.at<double>(0, i, kNearness) = 1 / (1 + position);
    for (std::size_t f = 0; f < kFrequencies.size(); ++f) {
      const auto column = kWaves + 2 * static_cast<std::int64_t>(f);
      view.at<double>(0, i, column) = std::cos(kFrequencies[f] * position);
      view.at<double>(0, i, column + 1) = std::sin(kFrequencies[f] * position);
    }
  }
  return x;
}

Tensor linear(const ConstTensorView& x, const ConstTensorView& weight) {
  Tensor y({x.size(0), x.size(1), weight.size(0)}, DType::f64);
  const TensorView out = y.view();
  for (std::int64_t b = 0; b < x.size(0); ++b) {
    for (std::int64_t i = 0; i < x.size(1); ++i) {
      for (std::int64_t r = 0; r < weight.size(0); ++r) {
        double sum = 0;
        for (std::int64_t c = 0; c < weight.size(1); ++c) sum += weight.at<double>(r, c) * x.at<double>(b, i, c);
        out.at<double>(b, i, r) = sum;
      }
    }
  }
  return y;
}

}  // namespace rapt::exhibits
