// Reading the text of instructions.
#include "Instruction.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace amdgcn {

namespace {

bool startsWith(const std::string &text, const char *start) { return !text.compare(0, std::strlen(start), start); }
bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && !text.compare(text.size() - end.size(), end.size(), end);
}

/// Pieces between the separators that stand in no brackets.
std::vector<std::string> split(const std::string &text, char separator) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  for (char c : text) {
    depth += c == '[' || c == '(';
    depth -= c == ']' || c == ')';
    if (c == separator && !depth)
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  for (std::string &piece : pieces) {
    piece.erase(0, piece.find_first_not_of(" \t"));
    piece.erase(piece.find_last_not_of(" \t") + 1);
  }
  pieces.erase(std::remove(pieces.begin(), pieces.end(), ""), pieces.end());
  return pieces;
}

/// "[1,0,3,2]".
std::vector<int> numbers(const std::string &text) {
  std::vector<int> found;
  for (const std::string &piece : split(text.substr(1, text.size() - 2), ','))
    found.push_back(std::atoi(piece.c_str()));
  return found;
}

/// "12" or "[12:15]" behind a register's letter.
bool parseRegister(const std::string &text, uint16_t &place, uint8_t &words) {
  char *end = nullptr;
  if (text.empty())
    return false;
  if (text[0] != '[') {
    place = uint16_t(std::strtoul(text.c_str(), &end, 10));
    return std::isdigit(text[0]) && !*end;
  }
  place = uint16_t(std::strtoul(text.c_str() + 1, &end, 10));
  if (*end == ']')
    return true;
  if (*end != ':')
    return false;
  words = uint8_t(std::strtoul(end + 1, &end, 10) - place + 1);
  return *end == ']';
}

bool parseNamed(const std::string &text, Operand &operand) {
  static const struct {
    const char *name;
    uint16_t place;
    uint8_t words;
  } names[] = {{"vcc", vccPlace, 2},  {"vcc_lo", vccPlace, 1},   {"vcc_hi", vccPlace + 1, 1},
               {"exec", execPlace, 2}, {"exec_lo", execPlace, 1}, {"exec_hi", execPlace + 1, 1},
               {"m0", m0Place, 1},     {"null", nullPlace, 1}};
  for (const auto &row : names)
    if (text == row.name) {
      operand.kind = Operand::Kind::Scalar;
      operand.place = row.place;
      operand.words = row.words;
      return true;
    }
  if (text == "scc" || text == "src_scc") {
    operand.kind = Operand::Kind::Condition;
    return true;
  }
  return false;
}

bool parseOperand(std::string text, Operand &operand) {
  auto unwrap = [&](const char *start, const char *end) {
    if (!startsWith(text, start) || !endsWith(text, end) || text.size() <= std::strlen(start) + std::strlen(end))
      return false;
    text = text.substr(std::strlen(start), text.size() - std::strlen(start) - std::strlen(end));
    return true;
  };
  if (unwrap("-|", "|"))
    operand.isNegated = operand.isAbsolute = true;
  else if (text[0] == '-' && text.size() > 1 && !std::isdigit(text[1]))
    operand.isNegated = true, text.erase(0, 1);
  if (unwrap("neg(", ")"))
    operand.isNegated = true;
  if (unwrap("|", "|") || unwrap("abs(", ")"))
    operand.isAbsolute = true;
  if (unwrap("sext(", ")"))
    operand.isSignExtended = true;
  unwrap("lit64(", ")");
  unwrap("lit(", ")");
  if (text == "off")
    return true;
  if (endsWith(text, ".l") || endsWith(text, ".h")) {
    operand.half = text.back() == 'h';
    text.resize(text.size() - 2);
  }
  if (parseNamed(text, operand))
    return true;
  char first = text[0];
  if (startsWith(text, "ttmp") && parseRegister(text.substr(4), operand.place, operand.words)) {
    operand.kind = Operand::Kind::Scalar;
    operand.place = uint16_t(operand.place + ttmpPlace);
    return operand.place + operand.words <= m0Place;
  }
  if ((first == 'v' || first == 'a') && parseRegister(text.substr(1), operand.place, operand.words)) {
    operand.kind = Operand::Kind::Vector;
    operand.place = uint16_t(operand.place + (first == 'a' ? numVectors : 0));
    return operand.place + operand.words <= numRegisters;
  }
  if (first == 's' && parseRegister(text.substr(1), operand.place, operand.words)) {
    operand.kind = Operand::Kind::Scalar;
    return operand.place + operand.words <= vccPlace;
  }
  if (!std::isdigit(first) && first != '-') {
    operand.kind = Operand::Kind::Name;
    operand.name = text;
    return true;
  }
  char *end = nullptr;
  bool isHexadecimal = startsWith(text, "0x") || startsWith(text, "-0x");
  if (!isHexadecimal && text.find_first_of(".e") != std::string::npos) {
    operand.kind = Operand::Kind::Float;
    operand.number = std::strtod(text.c_str(), &end);
  } else {
    operand.kind = Operand::Kind::Integer;
    operand.isHexadecimal = isHexadecimal;
    operand.integer =
        first == '-' ? std::strtoll(text.c_str(), &end, 0) : int64_t(std::strtoull(text.c_str(), &end, 0));
  }
  return end && !*end;
}

bool parsePattern(const std::string &key, const std::string &value, Instruction &made) {
  using Kind = LanePattern::Kind;
  static const struct {
    const char *name;
    Kind kind;
  } kinds[] = {{"quad_perm", Kind::QuadPerm}, {"row_shl", Kind::RowShl},   {"row_shr", Kind::RowShr},
               {"row_ror", Kind::RowRor},     {"wave_shl", Kind::WaveShl}, {"wave_shr", Kind::WaveShr},
               {"wave_rol", Kind::WaveRol},   {"wave_ror", Kind::WaveRor}, {"row_mirror", Kind::Mirror},
               {"row_half_mirror", Kind::HalfMirror}, {"row_share", Kind::Share}, {"row_newbcast", Kind::Share},
               {"row_xmask", Kind::Xmask},    {"dpp8", Kind::Eight},       {"row_bcast", Kind::Bcast15}};
  for (const auto &row : kinds) {
    if (key != row.name)
      continue;
    LanePattern &pattern = made.pattern ? *made.pattern : made.pattern.emplace();
    pattern.kind = row.kind;
    if (!value.empty() && value[0] == '[') {
      std::vector<int> lanes = numbers(value);
      for (size_t i = 0; i < lanes.size() && i < 8; ++i)
        pattern.lanes[i] = uint8_t(lanes[i]);
    } else {
      pattern.amount = unsigned(std::atoi(value.c_str()));
    }
    if (row.kind == Kind::Bcast15 && pattern.amount == 31)
      pattern.kind = Kind::Bcast31;
    return true;
  }
  unsigned number = unsigned(std::strtoul(value.c_str(), nullptr, 0));
  LanePattern *pattern = made.pattern ? &*made.pattern : nullptr;
  if (key == "row_mask" && pattern)
    pattern->rowMask = number;
  else if (key == "bank_mask" && pattern)
    pattern->bankMask = number;
  else if (key == "bound_ctrl" && pattern)
    pattern->boundControl = true;
  else if (key == "fi" && pattern)
    pattern->fetchInactive = number;
  else
    return false;
  return true;
}

bool parseParts(const std::string &key, const std::string &value, Instruction &made) {
  if (key != "dst_sel" && key != "src0_sel" && key != "src1_sel" && key != "dst_unused")
    return false;
  Parts &parts = made.parts ? *made.parts : made.parts.emplace();
  if (key == "dst_unused") {
    parts.unused = value == "UNUSED_PAD"    ? Parts::Unused::Pad
                   : value == "UNUSED_SEXT" ? Parts::Unused::Extend
                                            : Parts::Unused::Preserve;
    return true;
  }
  static const char *const names[] = {"BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"};
  auto at = std::find(std::begin(names), std::end(names), value);
  if (at == std::end(names))
    return false;
  (key == "dst_sel" ? parts.destination : parts.sources[key == "src1_sel"]) = Part(at - std::begin(names));
  return true;
}

bool parseModifier(const std::string &text, Instruction &made) {
  size_t colon = text.find(':');
  std::string key = text.substr(0, colon), value = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (parsePattern(key, value, made) || parseParts(key, value, made))
    return true;
  auto bits = [&] {
    unsigned mask = 0;
    std::vector<int> list = numbers(value);
    for (size_t i = 0; i < list.size(); ++i)
      mask |= unsigned(list[i]) << i;
    return mask;
  };
  if (key == "offset" && startsWith(value, "swizzle"))
    made.swizzle = value;
  else if (key == "offset")
    made.offset = std::strtoll(value.c_str(), nullptr, 0);
  else if (key == "offset0")
    made.offset0 = std::strtoll(value.c_str(), nullptr, 0);
  else if (key == "offset1")
    made.offset1 = std::strtoll(value.c_str(), nullptr, 0);
  else if (key == "op_sel")
    made.selectHigh = bits();
  else if (key == "op_sel_hi")
    made.selectHighOfPair = bits();
  else if (key == "neg_lo")
    made.negateLow = bits();
  else if (key == "neg_hi")
    made.negateHigh = bits();
  else if (key == "bitop3")
    made.table = unsigned(std::strtoul(value.c_str(), nullptr, 0));
  else if (key == "clamp")
    made.hasClamp = true;
  else if (key == "mul" || key == "div")
    made.outputShift = key == "div" ? -1 : value == "2" ? 1 : 2;
  else if (key == "glc" || key == "sc0" || (key == "th" && value.find("RETURN") != std::string::npos))
    made.returnsOld = true;
  else if (key != "slc" && key != "dlc" && key != "sc1" && key != "nt" && key != "scope" && key != "th" &&
           key != "nv" && key != "gds" && key != "offen")
    return false;
  return true;
}

/// A constant by its number among an encoding's operands.
Operand inlineConstant(int64_t number) {
  static const double floats[] = {0.5, -0.5, 1, -1, 2, -2, 4, -4, 0.15915494309189532};
  Operand made;
  made.kind = number < 240 ? Operand::Kind::Integer : Operand::Kind::Float;
  made.integer = number <= 192 ? number - 128 : 192 - number;
  made.number = number < 240 ? 0 : floats[number - 240];
  return made;
}

bool parseOne(const std::string &line, Instruction &made, std::string &problem) {
  made.text = line;
  size_t space = line.find_first_of(" \t");
  made.name = line.substr(0, space);
  for (const char *suffix : {"_dpp", "_sdwa", "_e32", "_e64"})
    if (endsWith(made.name, suffix))
      made.name.resize(made.name.size() - std::strlen(suffix));
  if (startsWith(made.name, "v_dual_"))
    made.name = "v_" + made.name.substr(7);
  // What these say is of no consequence to what a program computes.
  for (const char *start : {"s_wait",         "s_nop",     "s_delay_alu", "s_clause",        "s_endpgm",
                            "s_sleep",        "s_sendmsg", "s_barrier",   "s_inst_prefetch", "s_set_inst_prefetch",
                            "s_code_end",     "s_setprio", "buffer_gl",   "buffer_inv",      "buffer_wb",
                            "global_inv",     "global_wb", "s_dcache",    "s_icache",        "s_setvskip",
                            "s_set_vgpr_msb", "s_trap",    "s_sethalt"})
    if (startsWith(made.name, start))
      return true;
  if (space == std::string::npos)
    return true;
  for (const std::string &piece : split(line.substr(space), ',')) {
    std::vector<std::string> words = split(piece, ' ');
    for (size_t i = 0; i < words.size(); ++i) {
      bool isModifier = i || (words[i].find(':') != std::string::npos && words[i].find('[') > words[i].find(':'));
      if (isModifier ? !parseModifier(words[i], made) : !parseOperand(words[i], made.operands.emplace_back())) {
        problem = "'" + words[i] + "' in '" + line + "' is not understood";
        return false;
      }
    }
  }
  // LLVM 22 leaves constants of v_fmac with DPP, where no encoding has a literal, as they are encoded.
  if (made.pattern)
    for (Operand &operand : made.operands)
      if (operand.kind == Operand::Kind::Integer && operand.isHexadecimal && operand.integer >= 128 &&
          operand.integer <= 248)
        operand = inlineConstant(operand.integer);
  return true;
}

} // namespace

bool parse(const std::string &line, std::vector<Instruction> &pair, std::string &problem) {
  size_t start = 0;
  while (true) {
    size_t end = line.find("::", start);
    std::string part = line.substr(start, end == std::string::npos ? end : end - start);
    part.erase(0, part.find_first_not_of(" \t"));
    part.erase(part.find_last_not_of(" \t") + 1);
    if (!parseOne(part, pair.emplace_back(), problem))
      return false;
    if (end == std::string::npos)
      return true;
    start = end + 2;
  }
}

} // namespace amdgcn
