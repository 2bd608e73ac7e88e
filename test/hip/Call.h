// The frame of an exported function: takes the lock, counts the call, and fails it where a test wants that.
#ifndef QD_TEST_HIP_CALL_H
#define QD_TEST_HIP_CALL_H

#include "Double.h"

#define HIP_API extern "C" __attribute__((visibility("default")))

namespace hipdouble {

class Call {
public:
  explicit Call(const char *function) : lock(machine().lock) {
    unsigned call = ++machine().calls[function];
    for (const Failure &failure : machine().failures)
      if (failure.function == function && (failure.call == call || (failure.laterToo && failure.call < call)))
        injected = failure.code;
  }
  /// What the function returns instead; functions that destroy do so all the same.
  int injected = success;

private:
  std::lock_guard<std::mutex> lock;
};

} // namespace hipdouble

/// Of a function that has done nothing yet.
#define HIP_BEGIN(function)                                                                                            \
  Call call(function);                                                                                                 \
  if (call.injected)                                                                                                   \
    return call.injected

#endif // QD_TEST_HIP_CALL_H
