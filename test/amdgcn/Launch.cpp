// Launches: what a wave begins with, and waves in turn.
#include "Launch.h"
#include "Code.h"

#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/AMDHSAKernelDescriptor.h"
#include "llvm/Support/MemoryBuffer.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <list>
#include <map>

using namespace llvm;

namespace amdgcn {

namespace {

/// Where the code object and the arguments lie, far from what a host allocates.
constexpr uint64_t codeBase = uint64_t(0x4710) << 32, argumentBase = uint64_t(0x4711) << 32,
                   packetBase = uint64_t(0x4712) << 32;
/// Loads of arguments may reach beyond their end.
constexpr size_t argumentSlack = 64;
constexpr unsigned groupsAtOnce = 16, mostSteps = 400'000'000;

struct Kernel {
  amdhsa::kernel_descriptor_t descriptor;
  uint64_t entry;
};

bool has(uint32_t word, uint32_t mask) { return (word & mask) != 0; }

class LoadedProgram final : public Program {
public:
  std::string chip;
  std::vector<uint8_t> image;
  /// Where the image may be written.
  uint64_t firstVariable = ~uint64_t(0), endVariable = 0;
  std::map<std::string, Kernel> kernels;
  std::map<unsigned, Code> readers;

  std::string launch(const std::string &kernel, const LaunchShape &shape, const std::string &arguments,
                     const Memory &memory) override;
};

struct ActiveGroup {
  Group group;
  std::deque<Wave> waves;
};

class Run {
public:
  Run(LoadedProgram &program, const Kernel &kernel, const LaunchShape &shape, const std::string &arguments,
      const Memory &memory)
      : program(program), kernel(kernel), shape(shape), arguments(arguments),
        model(chipModel(program.chip, has(kernel.descriptor.kernel_code_properties,
                                          amdhsa::KERNEL_CODE_PROPERTY_ENABLE_WAVEFRONT_SIZE32)
                                          ? 32
                                          : 64)),
        code(program.readers.try_emplace(model.lanes, program.chip, model.lanes).first->second) {
    this->arguments.resize(arguments.size() + argumentSlack);
    // What HSA's packet says of the block and the grid.
    for (unsigned dim = 0; dim < 3; ++dim) {
      uint16_t threads = uint16_t(shape.block[dim]);
      uint32_t all = shape.block[dim] * shape.grid[dim];
      std::memcpy(&packet[4 + 2 * dim], &threads, 2);
      std::memcpy(&packet[12 + 4 * dim], &all, 4);
    }
    access = [this, &memory](uint64_t address, size_t bytes, bool isWrite) -> uint8_t * {
      auto within = [&](uint64_t base, auto &all) -> uint8_t * {
        return address - base < all.size() && bytes <= all.size() - (address - base)
                   ? reinterpret_cast<uint8_t *>(&all[address - base]) : nullptr;
      };
      const LoadedProgram &loaded = this->program;
      uint64_t place = address - codeBase;
      if (uint8_t *found = within(codeBase, this->program.image))
        return !isWrite || (place >= loaded.firstVariable && place + bytes <= loaded.endVariable) ? found : nullptr;
      if (uint8_t *found = within(argumentBase, this->arguments))
        return isWrite ? nullptr : found;
      if (uint8_t *found = within(packetBase, packet))
        return isWrite ? nullptr : found;
      return memory(address, bytes, isWrite);
    };
  }

  std::string all() {
    uint64_t numGroups = uint64_t(shape.grid[0]) * shape.grid[1] * shape.grid[2], next = 0, steps = 0;
    std::list<ActiveGroup> active; // whose waves point to their group
    while (next < numGroups || !active.empty()) {
      while (next < numGroups && (shape.isCooperative || active.size() < groupsAtOnce))
        begin(active.emplace_back(), next++);
      bool anyMoved = false;
      for (ActiveGroup &each : active) {
        for (Wave &wave : each.waves) {
          uint64_t done = turn(each, wave);
          anyMoved |= done != 0;
          steps += done;
          if (!wave.fault.empty())
            return wave.fault;
        }
      }
      if (!anyMoved)
        return "waves wait at a barrier that others never reach";
      if (steps > mostSteps)
        return "the launch does not end";
      for (auto at = active.begin(); at != active.end();)
        at = at->group.numAlive ? std::next(at) : active.erase(at);
    }
    return "";
  }

private:
  /// Some instructions of a wave; how many.
  uint64_t turn(ActiveGroup &active, Wave &wave) {
    random = random * 6364136223846793005 + 1442695040888963407;
    uint64_t most = 1 + (random >> 58), done = 0;
    for (; done < most && !wave.isDone; ++done) {
      if (wave.isWaiting) {
        if (active.group.numBarriers < wave.barrier)
          break;
        wave.isWaiting = false;
      }
      std::string problem;
      const Issue *what = code.at(program.image, codeBase, wave.pc, problem);
      if (!what) {
        wave.fail(problem);
        break;
      }
      bool jumped = false;
      issue(wave, *what, jumped);
      if (!wave.fault.empty()) {
        std::string text;
        for (const Instruction &each : *what)
          text += (text.empty() ? "" : " :: ") + each.text;
        const auto &id = active.group.id;
        wave.fault = "'" + text + "' at " + std::to_string(wave.pc - kernel.entry) + " in block (" +
                     std::to_string(id[0]) + ", " + std::to_string(id[1]) + ", " + std::to_string(id[2]) +
                     "): " + wave.fault;
        break;
      }
      if (!jumped)
        wave.pc = what->back().next;
      if (wave.isDone) {
        --active.group.numAlive;
        active.group.release();
      }
    }
    return done;
  }

  void begin(ActiveGroup &active, uint64_t number) {
    Group &group = active.group;
    group.id = {uint32_t(number % shape.grid[0]), uint32_t(number / shape.grid[0] % shape.grid[1]),
                uint32_t(number / shape.grid[0] / shape.grid[1])};
    // What is behind the last byte belongs to nobody, and is there: small elements change as parts of words.
    size_t shared = kernel.descriptor.group_segment_fixed_size + shape.dynamicSharedBytes;
    group.lds = Bytes(alignTo(shared, 4));
    std::fill(group.lds.unknown.begin() + ptrdiff_t(shared), group.lds.unknown.end(), 0);
    unsigned threads = shape.block[0] * shape.block[1] * shape.block[2];
    for (unsigned first = 0; first < threads; first += model.lanes) {
      Wave &wave = active.waves.emplace_back(model);
      wave.group = &group;
      wave.memory = &access;
      wave.scratchBytes = kernel.descriptor.private_segment_fixed_size;
      wave.scratch = Bytes(wave.scratchBytes * model.lanes);
      wave.pc = kernel.entry;
      for (size_t i = 0; i < wave.vectors.size(); ++i)
        wave.vectors[i].value = unwrittenWord(i);
      setMode(wave);
      setScalars(wave, first / model.lanes);
      setVectors(wave, first, threads);
    }
    group.numAlive = unsigned(active.waves.size());
  }

  void setMode(Wave &wave) {
    uint32_t word = kernel.descriptor.compute_pgm_rsrc1;
    wave.mode.flush32 = AMDHSA_BITS_GET(word, amdhsa::COMPUTE_PGM_RSRC1_FLOAT_DENORM_MODE_32) != 3;
    wave.mode.flush64 = AMDHSA_BITS_GET(word, amdhsa::COMPUTE_PGM_RSRC1_FLOAT_DENORM_MODE_16_64) != 3;
    wave.mode.isIeee = model.generation() < 12 && has(word, amdhsa::COMPUTE_PGM_RSRC1_GFX6_GFX11_ENABLE_IEEE_MODE);
    if (AMDHSA_BITS_GET(word, amdhsa::COMPUTE_PGM_RSRC1_FLOAT_ROUND_MODE_32) ||
        AMDHSA_BITS_GET(word, amdhsa::COMPUTE_PGM_RSRC1_FLOAT_ROUND_MODE_16_64))
      wave.fail("the kernel asks for a rounding that is not to nearest");
  }

  /// What the descriptor asks for, in its order, and behind it what the dispatch adds.
  void setScalars(Wave &wave, unsigned number) {
    uint32_t properties = kernel.descriptor.kernel_code_properties, word = kernel.descriptor.compute_pgm_rsrc2;
    unsigned next = 0;
    auto set = [&](unsigned place, uint32_t value) { wave.scalars[place] = {value, 0}; };
    auto skip = [&](uint32_t mask, unsigned words) { next += has(properties, mask) ? words : 0; };
    skip(amdhsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_BUFFER, 4);
    auto setAddress = [&](uint64_t address) {
      set(next++, uint32_t(address));
      set(next++, uint32_t(address >> 32));
    };
    if (has(properties, amdhsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_PTR))
      setAddress(packetBase);
    skip(amdhsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_QUEUE_PTR, 2);
    if (has(properties, amdhsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_KERNARG_SEGMENT_PTR))
      setAddress(argumentBase);
    skip(amdhsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_DISPATCH_ID, 2);
    skip(amdhsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_FLAT_SCRATCH_INIT, 2);
    skip(amdhsa::KERNEL_CODE_PROPERTY_ENABLE_SGPR_PRIVATE_SEGMENT_SIZE, 1);
    unsigned preloaded = kernel.descriptor.kernarg_preload & 127, from = kernel.descriptor.kernarg_preload >> 7;
    for (unsigned i = 0; i < preloaded; ++i) {
      uint32_t value;
      std::memcpy(&value, arguments.data() + 4 * (from + i), 4);
      set(next++, value);
    }
    // Firmware that fills these registers begins behind the code that loads them.
    if (preloaded)
      wave.pc += 256;
    const auto &id = wave.group->id;
    next = AMDHSA_BITS_GET(word, amdhsa::COMPUTE_PGM_RSRC2_GFX6_GFX120_USER_SGPR_COUNT);
    if (model.generation() >= 12) {
      set(ttmpPlace + 9, id[0]);
      set(ttmpPlace + 7, id[1] | id[2] << 16);
      set(ttmpPlace + 8, number << 25);
      return;
    }
    if (has(word, amdhsa::COMPUTE_PGM_RSRC2_ENABLE_SGPR_WORKGROUP_ID_X))
      set(next++, id[0]);
    if (has(word, amdhsa::COMPUTE_PGM_RSRC2_ENABLE_SGPR_WORKGROUP_ID_Y))
      set(next++, id[1]);
    if (has(word, amdhsa::COMPUTE_PGM_RSRC2_ENABLE_SGPR_WORKGROUP_ID_Z))
      set(next++, id[2]);
    next += has(word, amdhsa::COMPUTE_PGM_RSRC2_ENABLE_SGPR_WORKGROUP_INFO);
    if (has(word, amdhsa::COMPUTE_PGM_RSRC2_ENABLE_PRIVATE_SEGMENT))
      set(next, 0);
  }

  void setVectors(Wave &wave, unsigned first, unsigned threads) {
    bool isPacked = model.name == "gfx90a" || model.number >= 0x940 || model.generation() >= 11;
    if (!model.isGfx9())
      isPacked = model.generation() >= 11;
    unsigned dims =
        AMDHSA_BITS_GET(kernel.descriptor.compute_pgm_rsrc2, amdhsa::COMPUTE_PGM_RSRC2_ENABLE_VGPR_WORKITEM_ID);
    uint64_t exec = 0;
    for (unsigned lane = 0; lane < model.lanes && first + lane < threads; ++lane) {
      exec |= uint64_t(1) << lane;
      unsigned thread = first + lane, x = thread % shape.block[0], y = thread / shape.block[0] % shape.block[1],
               z = thread / shape.block[0] / shape.block[1];
      wave.vector(0, lane) = {isPacked ? x | y << 10 | z << 20 : x, 0};
      if (!isPacked && dims >= 1)
        wave.vector(1, lane) = {y, 0};
      if (!isPacked && dims >= 2)
        wave.vector(2, lane) = {z, 0};
    }
    wave.scalars[execPlace] = {uint32_t(exec), 0};
    wave.scalars[execPlace + 1] = {uint32_t(exec >> 32), 0};
  }

  LoadedProgram &program;
  const Kernel &kernel;
  const LaunchShape &shape;
  std::string arguments;
  std::array<uint8_t, 64> packet{};
  ChipModel model;
  Code &code;
  Memory access;
  uint64_t random = 1;
};

std::string LoadedProgram::launch(const std::string &name, const LaunchShape &shape, const std::string &arguments,
                                  const Memory &memory) {
  auto at = kernels.find(name);
  if (at == kernels.end())
    return "there is no kernel '" + name + "'";
  return Run(*this, at->second, shape, arguments, memory).all();
}

} // namespace

std::unique_ptr<Program> Program::load(const std::string &elf, const std::string &chip, std::string &problem) {
  auto file = object::ObjectFile::createELFObjectFile(MemoryBufferRef(elf, "code"));
  auto *object = file ? dyn_cast<object::ELF64LEObjectFile>(file->get()) : nullptr;
  auto parts = object ? object->getELFFile().program_headers()
                      : Expected<object::ELF64LE::PhdrRange>(object::ELF64LE::PhdrRange());
  if (!file || !object || !parts) {
    problem = file ? "is no program" : toString(file.takeError());
    if (!parts)
      consumeError(parts.takeError());
    return nullptr;
  }
  auto made = std::make_unique<LoadedProgram>();
  made->chip = chip;
  for (const auto &part : *parts) {
    if (part.p_type != ELF::PT_LOAD)
      continue;
    made->image.resize(std::max<size_t>(made->image.size(), part.p_vaddr + part.p_memsz));
    std::memcpy(&made->image[part.p_vaddr], elf.data() + part.p_offset, part.p_filesz);
    if (part.p_flags & ELF::PF_W) {
      made->firstVariable = std::min<uint64_t>(made->firstVariable, part.p_vaddr);
      made->endVariable = std::max<uint64_t>(made->endVariable, part.p_vaddr + part.p_memsz);
    }
  }
  for (object::ELFSymbolRef symbol : object->getDynamicSymbolIterators()) {
    auto name = symbol.getName();
    auto address = symbol.getAddress();
    if (!name || !address) {
      consumeError(name.takeError());
      consumeError(address.takeError());
      continue;
    }
    if (!name->ends_with(".kd"))
      continue;
    Kernel kernel;
    std::memcpy(&kernel.descriptor, &made->image[*address], sizeof kernel.descriptor);
    kernel.entry = codeBase + *address + uint64_t(kernel.descriptor.kernel_code_entry_byte_offset);
    made->kernels[name->drop_back(3).str()] = kernel;
  }
  return made;
}

} // namespace amdgcn
