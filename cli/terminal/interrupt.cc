#include "cli/terminal/interrupt.h"

namespace rapt::cli {
namespace {

volatile std::sig_atomic_t noted = 0;

extern "C" void note(int) { noted = 1; }

}  // namespace

Interrupt::Interrupt() {
  noted = 0;
  struct sigaction action {};
  action.sa_handler = note;
  // SA_RESETHAND: the second signal has the default action. SA_RESTART: file writes are not interrupted.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, &before_int_);
  sigaction(SIGTERM, &action, &before_term_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &before_int_, nullptr);
  sigaction(SIGTERM, &before_term_, nullptr);
}

bool Interrupt::asked() { return noted != 0; }

}  // namespace rapt::cli
