//===- Builder.h - building kernels without writing text ---------------------------------------===//
//
// Purpose: puts modules together op by op, for frontends in C++; `qdc.h` has the same for C. Any op of any dialect that
// QIR consists of can be built; whether it is right is what the compiler says, at the place that `setLocation` gave.
// Types and attributes are written as in QIR: "i32", "!qd.buffer<f32>", "predicate = 2 : i64".
//
//   qd::Builder b;
//   std::vector<qd::Value> args = b.beginKernel("scale", {{"x", "!qd.buffer<f32>"}, {"a", "f32"}}, {64});
//   qd::Value i = b.op("qd.global_thread_id", {}, "i32", "dim = #qd<dim x>");
//   ...
//   b.endKernel();
//   qd::compile(b.finish(), "scale", options);
//
// The order of calls is checked, and that values are known where they are used: a wrong call is kept as `getError` and
// ends in a module that does not compile. Not thread-safe: a builder is used by one thread at a time. Free of LLVM's
// headers, and all in this file.
//
//===----------------------------------------------------------------------===//

#ifndef QD_COMPILER_BUILDER_H
#define QD_COMPILER_BUILDER_H

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qd {

/// A value of the builder that made it; the default is none.
struct Value {
  uint32_t number = 0;
};

struct KernelArgument {
  std::string name, type;
  /// 1 readonly, 2 writeonly, 4 noalias, added up.
  int32_t access = 0;
  /// Bytes that a buffer's address is a multiple of.
  int32_t align = 1;
};

class Builder {
public:
  /// Where the ops that follow come from, in diagnostics; "" for no place.
  void setLocation(std::string_view file, unsigned line = 0, unsigned column = 0) {
    location =
        file.empty() ? "" : " loc(" + quote(file) + ":" + std::to_string(line) + ":" + std::to_string(column) + ")";
  }

  /// Opens a kernel for blocks of 1 to 3 dimensions, and returns its arguments as values. `attributes` are further
  /// ones: "resizable", "min_blocks = 4 : i32".
  std::vector<Value> beginKernel(std::string_view name, const std::vector<KernelArgument> &arguments,
                                 const std::vector<int32_t> &block, std::string_view attributes = "") {
    std::vector<std::string> types;
    std::string names, access, align;
    for (const KernelArgument &argument : arguments) {
      types.push_back(argument.type);
      names += (names.empty() ? "" : ", ") + quote(argument.name);
      access += (access.empty() ? ": " : ", ") + std::to_string(argument.access);
      align += (align.empty() ? ": " : ", ") + std::to_string(argument.align);
    }
    std::string size;
    for (int32_t extent : block)
      size += (size.empty() ? ": " : ", ") + std::to_string(extent);
    if (!frames.empty())
      fail("a kernel begins inside an op");
    beginOp("qd.kernel", {}, {},
            "sym_name = " + quote(name) + ", arg_names = [" + names + "], arg_access = array<i32" + access +
                ">, block_size = array<i32" + size + ">, arg_align = array<i32" + align + ">" +
                (attributes.empty() ? "" : ", ") + std::string(attributes));
    return beginRegion(types);
  }

  /// Returns, and closes the kernel.
  void endKernel() {
    op("qd.return");
    endRegion();
    endOp();
  }

  /// An op without regions and with several results.
  std::vector<Value> op(std::string_view name, const std::vector<Value> &operands,
                        const std::vector<std::string> &resultTypes, std::string_view attributes) {
    std::vector<Value> results = beginOp(name, operands, resultTypes, attributes);
    endOp();
    return results;
  }
  /// The same with one result, or with none for "".
  Value op(std::string_view name, const std::vector<Value> &operands = {}, const std::string &resultType = "",
           std::string_view attributes = "") {
    std::vector<Value> results =
        op(name, operands, resultType.empty() ? std::vector<std::string>() : std::vector<std::string>{resultType},
           attributes);
    return results.empty() ? Value() : results.front();
  }

  Value integer(std::string_view type, int64_t value) {
    std::string text = type == "i1" ? (value ? "true" : "false") : std::to_string(value) + " : " + std::string(type);
    return op("arith.constant", {}, std::string(type), "value = " + text);
  }
  /// Rounded to the nearest that the type holds.
  Value floating(std::string_view type, double value) {
    return op("arith.constant", {}, std::string(type),
              "value = " + writeFloat(type, value) + " : " + std::string(type));
  }

  /// Opens an op with regions, whose results are values once it is closed.
  std::vector<Value> beginOp(std::string_view name, const std::vector<Value> &operands,
                             const std::vector<std::string> &resultTypes, std::string_view attributes = "") {
    if (!frames.empty() && !frames.back().isInRegion)
      fail("op '" + std::string(name) + "' stands between the regions of '" + frames.back().name + "'");
    std::vector<Value> results;
    std::string line, inputs, outputs;
    for (const std::string &type : resultTypes) {
      results.push_back(define(type, unclosed));
      line += (line.empty() ? "" : ", ") + nameOf(results.back());
      outputs += (outputs.empty() ? "" : ", ") + type;
    }
    line += (line.empty() ? "" : " = ") + quote(name) + "(";
    for (size_t i = 0; i < operands.size(); ++i) {
      line += (i ? ", " : "") + nameOf(operands[i]);
      auto refuse = [&](const char *what) {
        fail("op '" + std::string(name) + "': operand " + std::to_string(i) + what);
      };
      if (operands[i].number == 0 || operands[i].number > values.size()) {
        refuse(" is no value");
        continue;
      }
      const Definition &operand = values[operands[i].number - 1];
      if (!isOpen[operand.region])
        refuse(operand.region == unclosed ? " is a result of an op that is not closed yet"
                                          : " belongs to a region that has ended");
      inputs += (i ? ", " : "") + operand.type;
    }
    text += line + ")";
    if (!attributes.empty())
      text += " <{" + std::string(attributes) + "}>";
    frames.push_back({std::string(name), " : (" + inputs + ") -> (" + outputs + ")" + location, results});
    return results;
  }

  /// Opens the next region of the op that was opened last, and returns the region's arguments.
  std::vector<Value> beginRegion(const std::vector<std::string> &argumentTypes = {}) {
    std::vector<Value> arguments;
    if (frames.empty() || frames.back().isInRegion) {
      fail("a region begins outside an op");
      return arguments;
    }
    text += frames.back().numRegions++ ? ", {\n" : " ({\n";
    frames.back().isInRegion = true;
    frames.back().region = isOpen.size();
    isOpen.push_back(true);
    if (argumentTypes.empty())
      return arguments;
    text += "^bb0(";
    for (const std::string &type : argumentTypes) {
      text += arguments.empty() ? "" : ", ";
      arguments.push_back(define(type, frames.back().region));
      text += nameOf(arguments.back()) + ": " + type + location;
    }
    text += "):\n";
    return arguments;
  }
  void endRegion() {
    if (frames.empty() || !frames.back().isInRegion)
      return fail("a region ends that has not begun");
    text += "}";
    frames.back().isInRegion = false;
    isOpen[frames.back().region] = false;
  }
  void endOp() {
    if (frames.empty() || frames.back().isInRegion)
      return fail("an op ends that has not begun");
    text += (frames.back().numRegions ? ")" : "") + frames.back().rest + "\n";
    std::vector<Value> results = std::move(frames.back().results);
    frames.pop_back();
    for (Value result : results)
      values[result.number - 1].region = frames.empty() ? outermost : frames.back().region;
  }

  /// The module: QIR for `compile`, as text. Wrong calls are in it as an error.
  std::string finish() {
    if (!frames.empty())
      fail("op '" + frames.back().name + "' is not closed");
    // No QIR, so that nobody compiles a module that is not meant.
    return error.empty() ? text : "the builder was used wrongly: " + error + "\n";
  }

  /// The first wrong call; "" for none.
  const std::string &getError() const { return error; }

private:
  struct Frame {
    std::string name, rest;
    std::vector<Value> results;
    unsigned numRegions = 0;
    bool isInRegion = false;
    size_t region = outermost; ///< the one that was begun last
  };

  /// A value is known in its region, and in those inside, until the region ends.
  struct Definition {
    std::string type;
    size_t region;
  };
  /// Of results of an op that is not closed yet, and of what stands in no op.
  static constexpr size_t unclosed = 0, outermost = 1;

  void fail(std::string message) {
    if (error.empty())
      error = std::move(message);
  }

  Value define(const std::string &type, size_t region) {
    values.push_back({type, region});
    return {uint32_t(values.size())};
  }
  static std::string nameOf(Value value) { return "%" + std::to_string(value.number); }

  static std::string quote(std::string_view text) {
    std::string quoted = "\"";
    for (unsigned char c : text) {
      char escaped[4];
      std::snprintf(escaped, sizeof escaped, "\\%02X", c);
      quoted += c < 32 || c > 126 || c == '"' || c == '\\' ? std::string(escaped) : std::string(1, char(c));
    }
    return quoted + "\"";
  }

  static std::string writeFloat(std::string_view type, double value) {
    if (std::isfinite(value)) {
      char digits[64];
      std::snprintf(digits, sizeof digits, "%.17e", value);
      return digits;
    }
    // Only as bits: those of infinity, the sign, and the topmost of the significand for NaN.
    struct Row {
      std::string_view type;
      uint64_t infinity, sign, quiet;
      int digits;
    };
    static constexpr Row rows[] = {{"f16", 0x7C00, 0x8000, 0x0200, 4},
                                   {"bf16", 0x7F80, 0x8000, 0x0040, 4},
                                   {"f32", 0x7F800000, 0x80000000, 0x00400000, 8},
                                   {"f64", 0x7FF0000000000000, 0x8000000000000000, 0x0008000000000000, 16}};
    for (const Row &row : rows)
      if (row.type == type) {
        uint64_t bits = row.infinity | (std::signbit(value) ? row.sign : 0) | (std::isnan(value) ? row.quiet : 0);
        char hex[24];
        std::snprintf(hex, sizeof hex, "0x%0*llX", row.digits, static_cast<unsigned long long>(bits));
        return hex;
      }
    return "0.0";
  }

  std::string text, location, error;
  std::vector<Frame> frames;
  std::vector<Definition> values;           ///< from number 1
  std::vector<bool> isOpen = {false, true}; ///< by region
};

} // namespace qd

#endif
