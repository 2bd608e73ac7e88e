// What a test tells the stand-in for libamdhip64, and asks of it.
//
//   dlopen(HIP_DOUBLE, RTLD_NOW | RTLD_LOCAL); Control &control = *reinterpret_cast<decltype(&hipDoubleControl)>(
//       dlsym(library, "hipDoubleControl"))();
//
// The environment says the same to programs that know nothing of it:
//   QD_HIP_DEVICES   chips, "gfx942" unless given; several by commas; "" for a machine without a GPU
//   QD_HIP_BUNDLES   bundles that launches look for their QIR in: files and folders of *.qdb, by colons
//   QD_HIP_EXECUTE   "code" carries out the machine code itself, without its QIR
//   QD_HIP_FAIL      FUNCTION:CALL:CODE ends the CALLth call of a function with a status; FUNCTION:CALL+:CODE later
//   ones too QD_HIP_STRICT    a process that misuses the interface or leaves objects behind ends with status 99
#ifndef QD_TEST_HIP_CONTROL_H
#define QD_TEST_HIP_CONTROL_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace hipdouble {

class Control {
public:
  /// Forgets all objects, calls, failures and problems; the machine has these chips from now on.
  virtual void reset(const std::string &chips) = 0;
  /// As QD_HIP_FAIL. Functions that destroy do so, and then return the status.
  virtual void fail(const std::string &function, unsigned call, int code, bool laterToo) = 0;
  /// How often each function was called.
  virtual std::map<std::string, unsigned> calls() = 0;
  /// Uses of the interface that a real driver need not survive, in words.
  virtual std::vector<std::string> problems() = 0;
  /// Allocations, modules, streams, events and graphs that exist.
  virtual std::vector<std::string> live() = 0;
  /// Commands that were given to streams and have not been carried out.
  virtual uint64_t pending() = 0;
  virtual void addBundle(const void *bytes, size_t size) = 0;

protected:
  ~Control() = default;
};

} // namespace hipdouble

extern "C" hipdouble::Control *hipDoubleControl();

#endif // QD_TEST_HIP_CONTROL_H
