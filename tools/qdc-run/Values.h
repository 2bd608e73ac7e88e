// Values on the command line: files, generators and lists to arrays, arrays to text, and comparisons.
#ifndef QD_TOOLS_QDC_RUN_VALUES_H
#define QD_TOOLS_QDC_RUN_VALUES_H

#include "runtime/Array.h"

namespace qd::rt {

/// A buffer's contents of the given element type. `what` begins the error sentences ("argument 'x'").
Expected<Array> parseBufferValue(const std::string &what, ElementType type, const std::string &value);

/// The file that such a value comes from; "" where it comes from none.
std::string fileOf(const std::string &value);

/// One random scalar of the documented generator: element `index` of a seed's sequence.
uint64_t randomBits(ScalarType type, uint64_t seed, uint64_t index);

struct Expectation {
  std::string name;
  Array array;
  /// Only the beginning is compared.
  bool prefix = false;
  /// Whether +0 and -0 are alike.
  bool anyZero = false;
  /// Absent: bit for bit.
  std::optional<double> tolerance;
};

/// VALUE[,...][:tol=TOLERANCE][:any-zero] taken apart.
struct ExpectationText {
  std::string array;
  bool prefix = false, anyZero = false;
  std::optional<std::string> tolerance;
};
ExpectationText splitExpectation(const std::string &value);
Expected<Expectation> parseExpectation(const std::string &name, ElementType type, const std::string &value);

/// The first difference as a sentence.
Error compareArrays(const Expectation &expected, const Array &got);

/// "y: f32[1024] = 1, 2, 3, ..., 9".
std::string describeArray(const std::string &name, const Array &array, bool all);

} // namespace qd::rt

#endif // QD_TOOLS_QDC_RUN_VALUES_H
