/* What the device (Device.cpp) and the launcher (Launcher.c) say to each other, both little-endian: a Request, an
 * Argument for each of the kernel's, and the contents of their memory; back come a Reply, its message and these
 * contents. Buffers that overlap lie in one piece of memory, which belongs to the first of them. */
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
  uint64_t bytes;    /* of the memory that belongs to it */
  uint64_t isBuffer;
  uint64_t owner, offset; /* of a buffer: to which argument its memory belongs, and where it begins there */
};

enum Outcome { Finished, AssertFailed, SomeBlocksEnded, Died };
enum { noMemory = 3 }; /* an exit status */

struct Reply {
  uint32_t outcome; /* Outcome */
  uint32_t thread;  /* AssertFailed: where; Died: a status as of waitpid */
  uint64_t block, messageBytes;
};

#endif
