// A wave that carries out lines of assembly, and what its registers then hold.
#ifndef QD_TEST_UNIT_MACHINE_ONEWAVE_H
#define QD_TEST_UNIT_MACHINE_ONEWAVE_H

#include "test/amdgcn/Wave.h"

#include <gtest/gtest.h>

/// v0 holds 100 and the lane; s[0:1] and nothing else of the scalar registers is written.
class OneWave {
public:
  OneWave(const char *chip, unsigned lanes, uint64_t exec = ~uint64_t(0)) : wave(amdgcn::chipModel(chip, lanes)) {
    wave.group = &group;
    wave.memory = &memory;
    group.lds = amdgcn::Bytes(256);
    for (unsigned lane = 0; lane < 64; ++lane)
      wave.vector(0, lane) = {100 + lane, 0};
    wave.scalars[amdgcn::execPlace] = {uint32_t(exec), 0};
    wave.scalars[amdgcn::execPlace + 1] = {lanes == 64 ? uint32_t(exec >> 32) : 0, 0};
  }
  /// The first fault, or an empty text.
  std::string run(std::initializer_list<const char *> lines) {
    for (const char *line : lines) {
      amdgcn::Issue issue;
      std::string problem;
      if (!amdgcn::parse(line, issue, problem))
        return problem;
      bool jumped = false;
      amdgcn::issue(wave, issue, jumped);
      if (!wave.fault.empty())
        return wave.fault;
    }
    return "";
  }
  uint32_t vector(unsigned place, unsigned lane) {
    EXPECT_FALSE(wave.vector(place, lane).unknown) << "lane " << lane;
    return wave.vector(place, lane).value;
  }
  bool isKnown(unsigned place, unsigned lane) { return !wave.vector(place, lane).unknown; }
  uint32_t scalar(unsigned place) {
    EXPECT_FALSE(wave.scalars[place].unknown);
    return wave.scalars[place].value;
  }
  void set(unsigned place, unsigned lane, uint32_t value) { wave.vector(place, lane) = {value, 0}; }

  amdgcn::Group group;
  amdgcn::Memory memory = [](uint64_t, size_t, bool) { return nullptr; };
  amdgcn::Wave wave;
};

#endif // QD_TEST_UNIT_MACHINE_ONEWAVE_H
