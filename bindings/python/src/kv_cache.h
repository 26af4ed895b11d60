// rapt.KvCache, and its views for attention.
#pragma once

#include <memory>
#include <mutex>

#include <nanobind/nanobind.h>

#include "rapt/kv_cache.h"

namespace rapt::python {

namespace nb = nanobind;

// The cache, which views keep alive. The mutex guards changes and the creation of views, because calls may come from
// several threads, without the GIL.
struct SharedCache {
  explicit SharedCache(const KvCacheConfig& config) : cache(config) {}

  KvCache cache;
  std::mutex mutex{};
};

// The class rapt.CacheView.
struct CacheLoan {
  std::shared_ptr<const SharedCache> owner;
  CacheView view;
};

void bind_kv_cache(nb::module_& module);

}  // namespace rapt::python
