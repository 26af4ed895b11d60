#include "status.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

#include "rapt/error.h"

namespace rapt::c {

namespace {

// A fixed buffer: it needs no allocation when memory is exhausted, and no cleanup when a thread ends. Longer messages,
// for example with a very long path, are truncated.
constexpr std::size_t kRoom = 4096;
constinit thread_local char last_error[kRoom] = "";

rapt_status record(rapt_status status, const char* what) {
  std::size_t size = std::min(std::strlen(what), kRoom - 1);
  while (size > 0 && (static_cast<unsigned char>(what[size]) & 0xC0U) == 0x80) --size;  // whole characters only
  std::memcpy(last_error, what, size);
  last_error[size] = '\0';
  return status;
}

}  // namespace

rapt_status record_exception() noexcept {
  try {
    throw;
  } catch (const FileError& error) {
    return record(RAPT_FILE_ERROR, error.what());
  } catch (const Error& error) {
    return record(RAPT_BAD_ARGUMENT, error.what());
  } catch (const std::bad_alloc&) {
    return record(RAPT_OUT_OF_MEMORY, "rapt: out of memory");
  } catch (const std::length_error&) {  // a container larger than any memory
    return record(RAPT_OUT_OF_MEMORY, "rapt: out of memory");
  } catch (const std::exception& error) {
    return record(RAPT_INTERNAL_ERROR, error.what());
  } catch (...) {
    return record(RAPT_INTERNAL_ERROR, "rapt: unknown exception");
  }
}

}  // namespace rapt::c

const char* rapt_last_error(void) { return rapt::c::last_error; }
const char* rapt_version(void) { return RAPT_VERSION; }
