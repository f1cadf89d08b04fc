// What every part of the simulated GPU shares: TensorFlow's types and the settings of this process.
//
// The parts are headers that simulated_gpu.cc includes, in one translation unit: TensorFlow's own
// headers take most of the compile time, and are so read once.
#ifndef TFDEVICE_COMMON_H_
#define TFDEVICE_COMMON_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#define EIGEN_USE_THREADS
#include "unsupported/Eigen/CXX11/Tensor"

#include "tensorflow/core/common_runtime/dma_helper.h"
#include "tensorflow/core/framework/allocator.h"
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"

namespace tensorflow {
namespace tfdevice {

// tensorflow::Status up to TF 2.16 or so, absl::Status later; this is whichever it is here.
using StatusT = decltype(std::declval<Device&>().Sync());
inline StatusT Ok() { return StatusT(); }

// Written once by the entry point, before TensorFlow can create a device.
struct Settings {
  int count = 1;               // simulated GPUs
  int64_t bytes_per_gpu = 0;   // memory of each
  bool cuda_build = false;     // true on the CUDA-enabled wheel
};
inline Settings& settings() {
  static auto* settings = new Settings;  // never destroyed: devices outlive static destructors
  return *settings;
}

// The name is how users, reports and this project's own Python recognise a simulated GPU.
constexpr char kDeviceName[] = "Simulated GPU (host memory)";
// An Ampere card: new enough that no TensorFlow code path calls it too old.
constexpr char kComputeCapability[] = "8.0";

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_COMMON_H_
