#include "handles.h"
#include "options.h"
#include "rapt/kv_cache.h"
#include "status.h"

using rapt::c::Caller;
using rapt::c::guarded;

rapt_status rapt_kv_cache_create(rapt_kv_cache** cache, const rapt_kv_cache_config* config) {
  return guarded([&] {
    const Caller caller("rapt_kv_cache_create");
    rapt_kv_cache*& to = caller.the("cache", cache);
    to = new rapt_kv_cache{rapt::KvCache(kv_cache_config(caller, config))};
  });
}

void rapt_kv_cache_destroy(rapt_kv_cache* cache) { delete cache; }

rapt_status rapt_kv_cache_add(rapt_kv_cache* cache, int64_t* id) {
  return guarded([&] {
    const Caller caller("rapt_kv_cache_add");
    std::int64_t& to = caller.the("id", id);
    to = caller.the("cache", cache).cache.add();
  });
}

rapt_status rapt_kv_cache_remove(rapt_kv_cache* cache, int64_t id) {
  return guarded([&] { Caller("rapt_kv_cache_remove").the("cache", cache).cache.remove(id); });
}

rapt_status rapt_kv_cache_fork(rapt_kv_cache* cache, int64_t of, int64_t length, int64_t* id) {
  return guarded([&] {
    const Caller caller("rapt_kv_cache_fork");
    std::int64_t& to = caller.the("id", id);
    rapt::KvCache& all = caller.the("cache", cache).cache;
    to = length == -1 ? all.fork(of) : all.fork(of, length);
  });
}

rapt_status rapt_kv_cache_truncate(rapt_kv_cache* cache, int64_t id, int64_t length) {
  return guarded([&] { Caller("rapt_kv_cache_truncate").the("cache", cache).cache.truncate(id, length); });
}

rapt_status rapt_kv_cache_append(rapt_kv_cache* cache, const int64_t* ids, size_t ids_count, const DLTensor* key,
                                 const DLTensor* value, const int64_t* counts) {
  return guarded([&] {
    const Caller caller("rapt_kv_cache_append");
    caller.the("cache", cache)
        .cache.append(caller.list({"ids"}, ids, ids_count), caller.view({"key"}, key), caller.view({"value"}, value),
                      {counts, counts == nullptr ? 0 : ids_count});
  });
}

rapt_status rapt_kv_cache_length(const rapt_kv_cache* cache, int64_t id, int64_t* length) {
  return guarded([&] {
    const Caller caller("rapt_kv_cache_length");
    caller.the("length", length) = caller.the("cache", cache).cache.length(id);
  });
}

rapt_status rapt_kv_cache_room(const rapt_kv_cache* cache, int64_t id, int64_t* room) {
  return guarded([&] {
    const Caller caller("rapt_kv_cache_room");
    caller.the("room", room) = caller.the("cache", cache).cache.room(id);
  });
}

rapt_status rapt_kv_cache_free_pages(const rapt_kv_cache* cache, int64_t* pages) {
  return guarded([&] {
    const Caller caller("rapt_kv_cache_free_pages");
    caller.the("pages", pages) = caller.the("cache", cache).cache.free_pages();
  });
}

rapt_status rapt_kv_cache_sequence_count(const rapt_kv_cache* cache, int64_t* count) {
  return guarded([&] {
    const Caller caller("rapt_kv_cache_sequence_count");
    caller.the("count", count) = caller.the("cache", cache).cache.sequence_count();
  });
}

rapt_status rapt_kv_cache_bytes(const rapt_kv_cache* cache, size_t* bytes) {
  return guarded([&] {
    const Caller caller("rapt_kv_cache_bytes");
    caller.the("bytes", bytes) = caller.the("cache", cache).cache.bytes();
  });
}

rapt_status rapt_kv_cache_get_config(const rapt_kv_cache* cache, rapt_kv_cache_config* config) {
  return guarded([&] {
    const Caller caller("rapt_kv_cache_get_config");
    rapt::c::give(caller, "config", rapt::c::as_c(caller.the("cache", cache).cache.config()), config);
  });
}

rapt_status rapt_kv_cache_attention(const rapt_kv_cache* cache, const int64_t* ids, size_t ids_count,
                                    const rapt_attention_outputs* outputs, const DLTensor* query,
                                    const rapt_attention_options* options) {
  return guarded([&] {
    const Caller caller("rapt_kv_cache_attention");
    const rapt::KvCache& all = caller.the("cache", cache).cache;
    rapt::AttentionOptions with_cache = attention_options(caller, options);
    const bool says_where = !with_cache.key_lengths.empty() || !with_cache.pages.table.empty() ||
                            with_cache.pages.per_row != 0 || with_cache.pages.keys != 0 ||
                            with_cache.key_scales.defined() || with_cache.value_scales.defined();
    caller.require(!says_where, "options have key_lengths, pages or scales; with a cache, the cache sets them");
    rapt::CacheView seen;
    all.view(caller.list({"ids"}, ids, ids_count), seen);
    seen.apply(with_cache);
    rapt::attention(attention_outputs(caller, outputs), caller.view({"query"}, query), seen.key, seen.value,
                    with_cache);
  });
}
