// Functions for the Cython wrapper: they convert exceptions to (kind, text).
#pragma once

#include <string>
#include <system_error>

#include "libs/error.hpp"

namespace vkd {

enum : int { kUnknownError = -1, kInterrupted = -2 };

// Call it inside a catch block. Returns the ErrorKind of the current exception as a number, and its text.
inline int current_error(std::string& text) {
  try {
    throw;
  } catch (const Interrupted&) {
    return kInterrupted;
  } catch (const Error& error) {
    text = error.what();
    return static_cast<int>(error.kind());
  } catch (const std::bad_alloc&) {
    text = "out of host memory";
    return static_cast<int>(ErrorKind::out_of_memory);
  } catch (const std::system_error& error) {
    text = std::string("a thread could not be started: ") + error.what() +
           "; a limit of threads (ulimit -u, or that of a container) or of memory (ulimit -v) is too low";
    return static_cast<int>(ErrorKind::vulkan);
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
    text = "unknown C++ exception";
  }
  return kUnknownError;
}

}  // namespace vkd
