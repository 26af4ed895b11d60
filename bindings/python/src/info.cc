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
             "Number of threads per call, including the calling one: the last value given to set_thread_count, "
             "or\nRAPT_NUM_THREADS if set, or the number of cores that CPU affinity and the container's quota allow.");
  module.def("set_thread_count", &rapt::set_thread_count, nb::arg("threads"),
             "Sets the number of threads per call; 0 restores the default.");
  module.def(
      "instruction_sets",
      [] {
        nb::list names;
        for (const InstructionSetInfo& info : rapt::instruction_sets()) {
          if (info.runs_here) names.append(info.name);
        }
        return names;
      },
      "The instruction sets that rapt has kernels for and this machine supports, best first.");
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
             "Selects the instruction set for all threads; '' restores the default.");
}

}  // namespace rapt::python
