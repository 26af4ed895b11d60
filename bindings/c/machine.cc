// Threads, instruction sets and random numbers.
#include <algorithm>

#include "convert.h"
#include "rapt/cpu.h"
#include "rapt/parallel.h"
#include "rapt/random.h"
#include "status.h"

using rapt::c::Caller;
using rapt::c::guarded;

rapt_status rapt_thread_count(int32_t* threads) {
  return guarded([&] { Caller("rapt_thread_count").the("threads", threads) = rapt::thread_count(); });
}

rapt_status rapt_set_thread_count(int32_t threads) {
  return guarded([&] { rapt::set_thread_count(threads); });
}

rapt_status rapt_instruction_set_count(size_t* count) {
  return guarded([&] { Caller("rapt_instruction_set_count").the("count", count) = rapt::instruction_sets().size(); });
}

rapt_status rapt_instruction_set_at(rapt_instruction_set* set, size_t index) {
  return guarded([&] {
    const Caller caller("rapt_instruction_set_at");
    const std::vector<rapt::InstructionSetInfo> all = rapt::instruction_sets();
    caller.require_index(index, all.size());
    rapt_instruction_set c{};
    const std::string& name = all[index].name;
    std::copy_n(name.data(), std::min(name.size(), sizeof(c.name) - 1), c.name);
    c.runs_here = all[index].runs_here ? 1 : 0;
    c.in_use = all[index].in_use ? 1 : 0;
    rapt::c::give(caller, "set", c, set);
  });
}

rapt_status rapt_use_instruction_set(const char* name) {
  return guarded([&] { rapt::use_instruction_set(&Caller("rapt_use_instruction_set").the("name", name)); });
}

rapt_status rapt_philox4x32_10(uint32_t random[4], const uint32_t counter[4], const uint32_t key[2]) {
  return guarded([&] {
    const Caller caller("rapt_philox4x32_10");
    (void)caller.the("random", random);
    (void)caller.the("counter", counter);
    (void)caller.the("key", key);
    const rapt::PhiloxCounter drawn =
        rapt::philox4x32_10({counter[0], counter[1], counter[2], counter[3]}, {key[0], key[1]});
    std::ranges::copy(drawn, random);
  });
}
