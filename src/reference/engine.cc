#include "reference/engine.h"

#include "reference/passes.h"

namespace rapt {

const EngineTable& reference_engine() {
  static constexpr EngineTable kEngine = {"reference",
                                          [] { return static_cast<const void*>(nullptr); },
                                          reference::forward_workspace,
                                          reference::forward,
                                          reference::backward_workspace,
                                          reference::backward};
  return kEngine;
}

const ProductTable& reference_product() {
  static constexpr ProductTable kProduct = {"reference",
                                            [] { return static_cast<const void*>(nullptr); },
                                            reference::packed_bytes,
                                            reference::pack,
                                            reference::product_workspace,
                                            reference::multiply};
  return kProduct;
}

}  // namespace rapt
