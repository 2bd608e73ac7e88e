// Handles of the C interface: numbers that look like pointers and name a place in a table, its generation and the kind
// of object. A handle that is null, freed, made up or of another kind is told from a live one, without locks.
//
// An object is freed when its handle has ended and no other object holds it. In a process that was forked, objects from
// before stay: drivers, whose threads are in the other process, could wait for ever at freeing them.
#ifndef QD_RUNTIME_HANDLES_H
#define QD_RUNTIME_HANDLES_H

#include "runtime/Device.h"

#include <cstdint>
#include <memory>

namespace qd::rt {

enum class HandleKind : uint8_t { DeviceList = 1, Device, Buffer, Module, Kernel, Launch, Stream, Event, Graph };

/// "a buffer".
std::string_view handleName(HandleKind kind);

/// A handle for the object; 0 where there are too many.
uint64_t makeHandle(HandleKind kind, std::shared_ptr<void> object);
/// The object of a live handle of that kind, else null. Stays valid while the handle lives.
void *findHandle(HandleKind kind, uint64_t handle);
/// The same, shared.
std::shared_ptr<void> shareHandle(HandleKind kind, uint64_t handle);
/// How often this process was forked off another since the first handle was made.
unsigned countForks();
/// Ends a handle; what is no live handle of that kind is left alone.
std::shared_ptr<void> endHandle(HandleKind kind, uint64_t handle);

} // namespace qd::rt

#endif // QD_RUNTIME_HANDLES_H
