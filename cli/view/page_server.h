// A web server for one page and one reader: on the loopback address only, so that nobody else can ask.
#pragma once

#include <cstdint>
#include <string>

namespace rapt::cli {

class PageServer {
 public:
  // Port 0: one that is free. Throws where the port is taken.
  PageServer(std::string page, std::int64_t port);
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;
  ~PageServer();

  std::string address() const;  // "http://127.0.0.1:8123/"
  // Answers until Ctrl-C, or a polite request to end.
  void serve();

 private:
  void answer(int connection) const;

  std::string page_;
  int socket_ = -1;
  int port_ = 0;
};

}  // namespace rapt::cli
