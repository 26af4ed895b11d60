// rapt.KvCache, and what attention reads of it.
#pragma once

#include <memory>
#include <mutex>

#include <nanobind/nanobind.h>

#include "rapt/kv_cache.h"

namespace rapt::python {

namespace nb = nanobind;

// The cache, which views keep alive. Whoever changes it, or makes a view, holds the mutex: calls come from several
// threads, without the interpreter's lock.
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
