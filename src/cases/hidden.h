// Masked keys have no influence: a row does not depend on keys that it does not see, even if they are NaN or infinite.
//
// A case is run twice, once as it is and once with a few numbers of k and v replaced by NaN or infinity. Every result
// that depends on none of them must keep its bits; every output that sees a NaN in v must be NaN.
#pragma once

#include <string>
#include <vector>

#include "cases/case.h"

namespace rapt::cases {

// Which keys each row sees, according to the reference engine: (B, Hq, Lq, Lk). A key that does not exist is not seen.
class SeenKeys {
 public:
  explicit SeenKeys(const Case& test);

  bool operator()(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    return seen_[static_cast<std::size_t>(((b * heads_ + h) * queries_ + i) * keys_ + j)];
  }

 private:
  std::int64_t heads_, queries_, keys_;
  std::vector<bool> seen_;
};

// A number of k or v that is replaced; in an int8 row the scale is replaced, and with it the whole row.
struct Spoilt {
  bool in_value = false;
  std::int64_t batch = 0, kv_head = 0, key = 0, column = 0;
  double value = 0.0;
};

// Draws at most three numbers of k and v to replace, each of an existing key that at least one row does not see; none
// if every row sees all keys.
std::vector<Spoilt> draw_spoilt(const Case& test, const SeenKeys& seen);

// Runs a case with its current options, forward and, if it has gradients, backward. Returns which results changed that
// must not, or an empty string. k and v are restored afterwards.
std::string leaks(Case& test, const SeenKeys& seen, const std::vector<Spoilt>& spoilt);

}  // namespace rapt::cases
