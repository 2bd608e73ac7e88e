// Whole files to and from memory; "-" is standard input.
#ifndef QD_RUNTIME_FILE_H
#define QD_RUNTIME_FILE_H

#include "runtime/Error.h"

#include <cstdint>
#include <vector>

namespace qd::rt {

Expected<std::vector<uint8_t>> readFile(const std::string &path);
Error writeFile(const std::string &path, const std::vector<uint8_t> &bytes);

} // namespace qd::rt

#endif // QD_RUNTIME_FILE_H
