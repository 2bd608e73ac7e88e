/* What the device (Device.cpp) and the launcher (Launcher.c) say to each other, both little-endian: a Request, an
 * Argument for each of the kernel's, and the contents of its buffers; back come a Reply, its message and the buffers'
 * contents. */
#ifndef QD_TEST_AARCH64_PROTOCOL_H
#define QD_TEST_AARCH64_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

struct Request {
  uint32_t kernel; /* its place in the module */
  uint32_t grid[3];
  uint32_t numArguments;
  uint32_t workers;
};

struct Argument {
  uint64_t slots[4]; /* as in a launch record: a scalar's bits, or a place for the address, and extents */
  uint64_t bytes;    /* of a buffer */
  uint64_t isBuffer;
};

enum Outcome { Finished, AssertFailed, SomeBlocksEnded, Died };
enum { noMemory = 3 }; /* an exit status */

struct Reply {
  uint32_t outcome; /* Outcome */
  uint32_t thread;  /* AssertFailed: where; Died: a status as of waitpid */
  uint64_t block, messageBytes;
};

#endif
