#include "cli/view/page_server.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <sys/poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <netinet/in.h>

#include "cli/terminal/interrupt.h"
#include "rapt/error.h"

namespace rapt::cli {
namespace {

constexpr int kPatience = 200;        // milliseconds between two looks at Ctrl-C
constexpr int kLongest = 5000;        // milliseconds that a reader may take to ask
constexpr std::size_t kMost = 16384;  // bytes of a question

// The lines that a browser sends, to the empty one that ends them; "" where that does not come.
std::string question(int connection) {
  std::string text;
  std::array<char, 2048> part{};
  while (text.find("\r\n\r\n") == std::string::npos) {
    pollfd waited{.fd = connection, .events = POLLIN, .revents = 0};
    if (text.size() > kMost || ::poll(&waited, 1, kLongest) <= 0) return "";
    const ssize_t got = ::read(connection, part.data(), part.size());
    if (got <= 0) return "";
    text.append(part.data(), static_cast<std::size_t>(got));
  }
  return text;
}

void write_all(int connection, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;  // the reader left
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace

PageServer::PageServer(std::string page, std::int64_t port) : page_(std::move(page)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  socklen_t size = sizeof address;
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  if (socket_ >= 0) ::setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  auto* const place = reinterpret_cast<sockaddr*>(&address);
  if (socket_ < 0 || ::bind(socket_, place, size) != 0 || ::listen(socket_, 8) != 0 ||
      ::getsockname(socket_, place, &size) != 0) {
    const std::string why = std::strerror(errno);
    if (socket_ >= 0) ::close(socket_);
    throw Error(fmt::format("view: port {} cannot be used: {}; leave --port out, and a free one is found", port, why));
  }
  port_ = ntohs(address.sin_port);
}

PageServer::~PageServer() { ::close(socket_); }

std::string PageServer::address() const { return fmt::format("http://127.0.0.1:{}/", port_); }

void PageServer::serve() {
  const Interrupt interrupt;
  while (!Interrupt::asked()) {
    pollfd waited{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&waited, 1, kPatience) <= 0) continue;
    const int connection = ::accept(socket_, nullptr, nullptr);
    if (connection < 0) continue;
    answer(connection);
    ::close(connection);
  }
}

void PageServer::answer(int connection) const {
  const std::string asked = question(connection);
  // A page from elsewhere may have its own name point to this machine: only ours is answered.
  const bool ours = asked.find(fmt::format("\r\nHost: 127.0.0.1:{}\r\n", port_)) != std::string::npos ||
                    asked.find(fmt::format("\r\nHost: localhost:{}\r\n", port_)) != std::string::npos;
  const bool page = ours && (asked.starts_with("GET / ") || asked.starts_with("HEAD / "));
  const std::string_view body = page ? std::string_view(page_) : "rapt has one page: /\n";
  write_all(connection,
            fmt::format("HTTP/1.1 {}\r\nContent-Type: text/{}; charset=utf-8\r\nContent-Length: {}\r\n"
                        "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
                        page ? "200 OK" : "404 Not Found", page ? "html" : "plain", body.size()));
  if (!asked.starts_with("HEAD")) write_all(connection, body);
}

}  // namespace rapt::cli
