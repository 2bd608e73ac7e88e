// Functions of f32 on a GPU: kernels of functions.py against the same loops with CUDA's functions and intrinsics.
//
//   nvcc -O3 -arch=sm_90 functions.cu -lcuda -o functions && ./functions functions.ptx
//
// Prints for each function the median time of both, their ratio (above 1: ours is faster) and the largest difference
// between the sums that they compute.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda.h>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

constexpr int threads = 256, blocks = 132 * 16, count = threads * blocks, rounds = 512, runs = 21;

static void check(int status, const char *what) {
  if (status) {
    std::printf("%s: error %d\n", what, status);
    std::exit(1);
  }
}

#define QD_LOOP(name, call)                                                                                            \
  __global__ void __launch_bounds__(threads) name(const float *x, float step, int rounds, float *y) {                  \
    int i = blockIdx.x * threads + threadIdx.x;                                                                        \
    float sum = 0, v = x[i];                                                                                           \
    for (int k = 0; k < rounds; ++k) {                                                                                 \
      sum += call;                                                                                                     \
      v += step;                                                                                                       \
    }                                                                                                                  \
    y[i] = sum;                                                                                                        \
  }
QD_LOOP(cudaExp, expf(v))
QD_LOOP(cudaLog, logf(v))
QD_LOOP(cudaSin, sinf(v))
QD_LOOP(cudaPow, powf(v, step))
QD_LOOP(cudaExpFast, __expf(v))
QD_LOOP(cudaLogFast, __logf(v))
QD_LOOP(cudaSinFast, __sinf(v))
QD_LOOP(cudaPowFast, __powf(v, step))

struct Row {
  const char *name;
  void (*cuda)(const float *, float, int, float *);
  float from, to, step;
};

static float median(std::vector<float> times) {
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

static float time(const std::function<void()> &launch) {
  cudaEvent_t start, stop;
  check(cudaEventCreate(&start), "event");
  check(cudaEventCreate(&stop), "event");
  std::vector<float> times(runs);
  for (float &t : times) {
    check(cudaEventRecord(start), "record");
    launch();
    check(cudaEventRecord(stop), "record");
    check(cudaEventSynchronize(stop), "run");
    check(cudaEventElapsedTime(&t, start, stop), "time");
  }
  return median(times);
}

int main(int numArgs, char **args) {
  std::ifstream file(numArgs == 2 ? args[1] : "");
  if (!file) {
    std::printf("usage: functions functions.ptx\n");
    return 2;
  }
  std::string ptx((std::istreambuf_iterator<char>(file)), {});
  float *x, *y;
  check(cudaMalloc(&x, count * sizeof(float)), "cudaMalloc");
  check(cudaMalloc(&y, count * sizeof(float)), "cudaMalloc");
  CUmodule module;
  check(cuModuleLoadData(&module, ptx.c_str()), "cuModuleLoadData");

  const Row rows[] = {{"exp", cudaExp, -40, 40, 0.01f},          {"log", cudaLog, 1e-3f, 1e3f, 0.37f},
                      {"sin", cudaSin, -100, 100, 0.13f},        {"powf", cudaPow, 0.01f, 30, 1.37f},
                      {"exp_fast", cudaExpFast, -40, 40, 0.01f}, {"log_fast", cudaLogFast, 1e-3f, 1e3f, 0.37f},
                      {"sin_fast", cudaSinFast, -3, 3, 0.001f},  {"powf_fast", cudaPowFast, 0.01f, 30, 1.37f}};
  for (Row row : rows) {
    std::vector<float> in(count), theirs(count), ours(count);
    for (int i = 0; i < count; ++i)
      in[i] = row.from + (row.to - row.from) * (float(i * 7919LL % count) / count);
    check(cudaMemcpy(x, in.data(), count * sizeof(float), cudaMemcpyHostToDevice), "copy");
    CUfunction function;
    check(cuModuleGetFunction(&function, module, row.name), row.name);
    int n = rounds;
    void *parameters[] = {&x, &row.step, &n, &y};
    auto launchOurs = [&] {
      check(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, nullptr, parameters, nullptr), "launch");
    };
    auto launchTheirs = [&] { row.cuda<<<blocks, threads>>>(x, row.step, rounds, y); };
    float cuda = time(launchTheirs);
    check(cudaMemcpy(theirs.data(), y, count * sizeof(float), cudaMemcpyDeviceToHost), "copy");
    float qdc = time(launchOurs);
    check(cudaMemcpy(ours.data(), y, count * sizeof(float), cudaMemcpyDeviceToHost), "copy");
    double difference = 0;
    for (int i = 0; i < count; ++i)
      difference = std::max(difference, std::fabs(double(ours[i]) - theirs[i]) /
                                            std::max(1.0, std::fabs(double(theirs[i]))));
    std::printf("%-10s cuda %.4f ms, qdc %.4f ms, ratio %.3f, difference %.1e\n", row.name, cuda, qdc, cuda / qdc,
                difference);
  }
}
