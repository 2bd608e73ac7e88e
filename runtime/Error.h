// Errors as values: `Error` is success or one sentence, `Expected<T>` a value or that sentence.
//
// An error that is a refusal is the caller's: it handed in what it could have known to be wrong. Others it could not
// know of.
//
// Sentences are lower case without a final period and name what was found, what was expected and for which
// file, argument or device, so that a caller can print one behind a prefix of its own.
#ifndef QD_RUNTIME_ERROR_H
#define QD_RUNTIME_ERROR_H

#include <cassert>
#include <optional>
#include <sstream>
#include <string>
#include <utility>

namespace qd::rt {

/// Success (false) or a failure (true) that says what went wrong.
class [[nodiscard]] Error {
public:
  Error() = default;
  static Error success() { return {}; }
  static Error failure(std::string sentence, bool isRefusal = false) {
    Error error;
    error.sentence = std::move(sentence);
    error.refused = isRefusal;
    return error;
  }

  explicit operator bool() const { return sentence.has_value(); }
  const std::string &message() const {
    assert(sentence && "success has no message");
    return *sentence;
  }
  bool isRefusal() const { return refused; }

private:
  std::optional<std::string> sentence;
  bool refused = false;
};

/// Joins anything that a stream prints to one string.
template <typename... Parts> std::string text(const Parts &...parts) {
  std::ostringstream stream;
  (stream << ... << parts);
  return stream.str();
}

/// A failure whose sentence is the parts joined.
template <typename... Parts> Error fail(const Parts &...parts) { return Error::failure(text(parts...)); }

/// The same, of what the caller handed in.
template <typename... Parts> Error refuse(const Parts &...parts) {
  return Error::failure(text(parts...), /*isRefusal=*/true);
}

/// A value, or the error that says why there is none.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : value(std::move(value)) {}
  template <typename U, typename = std::enable_if_t<std::is_convertible_v<U &&, T> &&
                                                    !std::is_same_v<std::decay_t<U>, Expected> &&
                                                    !std::is_same_v<std::decay_t<U>, Error>>>
  Expected(U &&other) : value(std::forward<U>(other)) {}
  Expected(Error error) : failure(std::move(error)) {
    assert(failure && "an Expected needs a value or an error");
  }

  /// True when there is a value.
  explicit operator bool() const { return value.has_value(); }
  T &operator*() { return *value; }
  const T &operator*() const { return *value; }
  T *operator->() { return &*value; }
  const T *operator->() const { return &*value; }

  const Error &error() const { return failure; }
  const std::string &message() const { return failure.message(); }

private:
  std::optional<T> value;
  Error failure;
};

} // namespace qd::rt

#endif // QD_RUNTIME_ERROR_H
