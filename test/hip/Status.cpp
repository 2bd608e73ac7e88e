// Names of HIP's statuses.
#include "Double.h"

namespace hipdouble {

namespace {
struct Row {
  int code;
  const char *name, *words;
};
constexpr Row rows[] = {
    {success, "hipSuccess", "no error"},
    {invalidValue, "hipErrorInvalidValue", "invalid argument"},
    {outOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {3, "hipErrorNotInitialized", "initialization error"},
    {invalidConfiguration, "hipErrorInvalidConfiguration", "invalid configuration argument"},
    {noDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {invalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {invalidImage, "hipErrorInvalidImage", "device kernel image is invalid"},
    {noBinaryForGpu, "hipErrorNoBinaryForGpu", "no kernel image is available for execution on the device"},
    {invalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {notFound, "hipErrorNotFound", "named symbol not found"},
    {notReady, "hipErrorNotReady", "device not ready"},
    {illegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {contextIsDestroyed, "hipErrorContextIsDestroyed", "context is destroyed"},
    {launchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {cooperativeTooLarge, "hipErrorCooperativeLaunchTooLarge", "too many blocks in cooperative launch"},
    {captureUnsupported, "hipErrorStreamCaptureUnsupported", "operation not permitted when stream is capturing"},
    {captureInvalidated, "hipErrorStreamCaptureInvalidated", "operation failed due to a previous error during capture"},
    {captureUnmatched, "hipErrorStreamCaptureUnmatched", "capture was not ended in the same stream as it began"},
    {captureImplicit, "hipErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
};

const Row *find(int code) {
  for (const Row &row : rows)
    if (row.code == code)
      return &row;
  return nullptr;
}
} // namespace

const char *statusName(int code) { return find(code) ? find(code)->name : "hipErrorUnknown"; }
const char *statusWords(int code) { return find(code) ? find(code)->words : "unknown error"; }

} // namespace hipdouble
