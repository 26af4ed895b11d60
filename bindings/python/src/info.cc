#include "info.h"

#include <string>
#include <string_view>

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include "rapt/cpu.h"
#include "rapt/parallel.h"

namespace rapt::python {

namespace nb = nanobind;

void bind_info(nb::module_& module) {
  module.attr("__version__") = RAPT_VERSION;
  module.def("thread_count", &rapt::thread_count,
             "How many threads a call uses, the calling one included: the cores that this process may run on, or\n"
             "RAPT_NUM_THREADS where that is set, or what set_thread_count said last.");
  module.def("set_thread_count", &rapt::set_thread_count, nb::arg("threads"),
             "Sets how many threads a call uses from now on; 0 returns to the default.");
  module.def(
      "instruction_sets",
      [] {
        nb::list names;
        for (const InstructionSetInfo& info : rapt::instruction_sets()) {
          if (info.runs_here) names.append(info.name);
        }
        return names;
      },
      "The instruction sets that rapt has kernels for and this machine has, best first.");
  module.def(
      "instruction_set",
      [] {
        std::string name;
        for (const InstructionSetInfo& info : rapt::instruction_sets()) {
          if (info.in_use) name = info.name;
        }
        return name;
      },
      "The instruction set in use.");
  module.def("use_instruction_set", &rapt::use_instruction_set, nb::arg("name"),
             "Uses this instruction set from now on, in every thread; '' returns to the first choice.");
}

}  // namespace rapt::python
