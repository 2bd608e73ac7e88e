//===- Stats.cpp - counting on PTX and AMDGCN text, and printing ----------------------------------===//

#include "compiler/Stats.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace qd {

template <typename Function> static void forEachLine(StringRef text, Function function) {
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    function(line);
    text = rest;
  }
}

static bool startsWithAny(StringRef text, ArrayRef<StringLiteral> prefixes) {
  return any_of(prefixes, [&](StringRef prefix) { return text.starts_with(prefix); });
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// Whether `name` stands in `line` as a whole word.
static bool mentions(StringRef line, StringRef name) {
  auto isPart = [](char c) { return isAlnum(c) || c == '_' || c == '$'; };
  for (size_t at = line.find(name); at != StringRef::npos; at = line.find(name, at + 1)) {
    size_t end = at + name.size();
    if ((at == 0 || !isPart(line[at - 1])) && (end == line.size() || !isPart(line[end])))
      return true;
  }
  return false;
}

static void countPTXInstruction(StringRef instruction, KernelStats &stats) {
  // A guard, as in "@%p1 bra", is no part of the name.
  if (instruction.starts_with("@"))
    instruction = instruction.split(' ').second.ltrim();
  ++stats.instructions;
  stats.shuffles += instruction.starts_with("shfl.");
  stats.votes += startsWithAny(instruction, {"vote.", "match.", "redux."});
  stats.barriers += startsWithAny(instruction, {"bar.sync", "bar.red", "barrier.sync", "barrier.red", "barrier.cta"});
}

std::vector<KernelStats> countPTX(StringRef ptx) {
  struct Shared {
    StringRef name;
    uint64_t bytes;
  };
  std::vector<KernelStats> all;
  std::vector<Shared> arrays;
  std::vector<bool> counted;
  bool inBody = false;
  forEachLine(ptx, [&](StringRef line) {
    line = line.trim();
    if (line.contains(".entry ")) {
      all.push_back({line.split(".entry ").second.take_until([](char c) { return c == '(' || c == ' '; }).str(), ""});
      counted.assign(arrays.size(), false);
      return;
    }
    if (line == "{" || line == "}") {
      inBody = line == "{" && !all.empty();
      return;
    }
    if (line.starts_with(".shared ")) {
      // .shared .align 4 .b8 name[512];
      auto [name, rest] = line.rsplit(' ').second.split('[');
      uint64_t bytes = 0;
      rest.take_until([](char c) { return c == ']'; }).getAsInteger(10, bytes);
      arrays.push_back({name, bytes});
      counted.push_back(false);
      return;
    }
    if (!inBody || line.empty() || line.starts_with(".") || line.starts_with("//") || line.ends_with(":"))
      return;
    countPTXInstruction(line, all.back());
    for (size_t i = 0; i < arrays.size(); ++i)
      if (!counted[i] && mentions(line, arrays[i].name)) {
        all.back().sharedBytes += arrays[i].bytes;
        counted[i] = true;
      }
  });
  return all;
}

void readPtxasLog(StringRef log, std::vector<KernelStats> &stats) {
  KernelStats *current = nullptr;
  forEachLine(log, [&](StringRef line) {
    StringRef name = line.split("Function properties for ").second;
    if (!name.empty()) {
      auto found = find_if(stats, [&](const KernelStats &s) { return s.kernel == name.trim(); });
      current = found == stats.end() ? nullptr : &*found;
      return;
    }
    if (!current)
      return;
    uint64_t number = 0;
    StringRef used = line.split("Used ").second;
    if (!used.consumeInteger(10, number) && used.starts_with(" registers"))
      current->registers = number;
    StringRef frame = line.ltrim();
    if (!frame.consumeInteger(10, number) && frame.starts_with(" bytes stack frame"))
      current->privateBytes = number;
  });
}

//===----------------------------------------------------------------------===//
// AMDGCN
//===----------------------------------------------------------------------===//

static bool isAMDGCNShuffle(StringRef instruction) {
  if (startsWithAny(instruction, {"ds_bpermute_", "ds_permute_", "ds_swizzle_", "v_permlane", "v_readlane_",
                                  "v_readfirstlane_"}))
    return true;
  // DPP modifiers stand behind the operands.
  static constexpr StringLiteral modifiers[] = {" quad_perm:", " row_", " wave_", " dpp8:"};
  return any_of(modifiers, [&](StringRef modifier) { return instruction.contains(modifier); });
}

static void countAMDGCNInstruction(StringRef instruction, KernelStats &stats) {
  ++stats.instructions;
  stats.shuffles += isAMDGCNShuffle(instruction);
  // gfx12 splits a barrier into its signal and its wait.
  stats.barriers += instruction == "s_barrier" || instruction.starts_with("s_barrier_wait");
}

/// A kernel's line of the metadata: one key at its level of indentation.
static void readMetadata(StringRef entry, StringMap<uint64_t> &values, StringRef &name) {
  auto [key, value] = entry.split(':');
  uint64_t number = 0;
  if (key == ".name")
    name = value.trim();
  else if (!value.trim().getAsInteger(10, number))
    values[key] = number;
}

std::vector<KernelStats> countAMDGCN(StringRef assembly) {
  std::vector<KernelStats> all;
  StringMap<StringMap<uint64_t>> metadata;
  StringMap<uint64_t> values;
  StringRef name, typed;
  bool inBody = false, inMetadata = false;
  auto flush = [&] {
    if (!name.empty())
      metadata[name] = values;
    values.clear();
    name = "";
  };
  forEachLine(assembly, [&](StringRef line) {
    if (line.contains(".amdgpu_metadata") || line.contains(".end_amdgpu_metadata")) {
      flush();
      inMetadata = !line.contains(".end_");
    } else if (inMetadata) {
      // "  - " begins a kernel; the keys of its arguments stand further in.
      if (line.starts_with("  - "))
        flush();
      if (line.starts_with("  - ") || (line.starts_with("    ") && line.substr(4, 1) == "."))
        readMetadata(line.drop_front(4), values, name);
      else if (!line.starts_with(" "))
        flush();
    } else if (line.starts_with("\t.type\t") && line.ends_with(",@function")) {
      typed = line.drop_front(7).drop_back(10);
    } else if (!typed.empty() && line.starts_with(typed) && line.drop_front(typed.size()).starts_with(":")) {
      all.push_back({typed.str(), ""});
      inBody = true;
    } else if (line.starts_with("\t.section") || line.starts_with(".Lfunc_end")) {
      inBody = false;
    } else if (inBody && line.starts_with("\t") && !line.starts_with("\t.") && !line.starts_with("\t;")) {
      countAMDGCNInstruction(line.trim(), all.back());
    }
  });
  for (KernelStats &stats : all) {
    const StringMap<uint64_t> &known = metadata[stats.kernel];
    auto get = [&](StringRef key) -> std::optional<uint64_t> {
      auto found = known.find(key);
      return found == known.end() ? std::nullopt : std::optional<uint64_t>(found->second);
    };
    stats.sharedBytes = get(".group_segment_fixed_size").value_or(0);
    stats.registers = get(".vgpr_count");
    stats.scalarRegisters = get(".sgpr_count");
    stats.privateBytes = get(".private_segment_fixed_size");
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

namespace {
struct Column {
  StringLiteral title;
  std::optional<uint64_t> (*get)(const KernelStats &);
};
constexpr Column columns[] = {
    {"instructions", [](const KernelStats &s) { return std::optional(s.instructions); }},
    {"shuffles", [](const KernelStats &s) { return std::optional(s.shuffles); }},
    {"votes", [](const KernelStats &s) { return std::optional(s.votes); }},
    {"barriers", [](const KernelStats &s) { return std::optional(s.barriers); }},
    {"shared", [](const KernelStats &s) { return std::optional(s.sharedBytes); }},
    {"registers", [](const KernelStats &s) { return s.registers; }},
    {"scalar", [](const KernelStats &s) { return s.scalarRegisters; }},
    {"private", [](const KernelStats &s) { return s.privateBytes; }},
};
} // namespace

std::string printStats(ArrayRef<KernelStats> all) {
  size_t kernelWidth = 6, targetWidth = 6;
  for (const KernelStats &stats : all) {
    kernelWidth = std::max(kernelWidth, stats.kernel.size());
    targetWidth = std::max(targetWidth, stats.target.size());
  }
  std::string text = "kernel" + std::string(kernelWidth - 6, ' ') + "  target" + std::string(targetWidth - 6, ' ');
  for (const Column &column : columns)
    text += "  " + column.title.str();
  text += "\n";
  for (const KernelStats &stats : all) {
    text += stats.kernel + std::string(kernelWidth - stats.kernel.size(), ' ') + "  " + stats.target +
            std::string(targetWidth - stats.target.size(), ' ');
    for (const Column &column : columns) {
      std::optional<uint64_t> value = column.get(stats);
      std::string number = value ? std::to_string(*value) : "-";
      text += "  " + std::string(column.title.size() - std::min(column.title.size(), number.size()), ' ') + number;
    }
    text += "\n";
  }
  return text;
}

std::string printStatsJSON(ArrayRef<KernelStats> all) {
  std::string text;
  raw_string_ostream stream(text);
  json::OStream json(stream, 2);
  json.array([&] {
    for (const KernelStats &stats : all)
      json.object([&] {
        json.attribute("kernel", stats.kernel);
        json.attribute("target", stats.target);
        for (const Column &column : columns)
          if (std::optional<uint64_t> value = column.get(stats))
            json.attribute(column.title, *value);
      });
  });
  stream << "\n";
  return text;
}

} // namespace qd
