// A simulated GPU for TensorFlow: devices of type "GPU" on host memory, in a process without one.
//
// TensorFlow's own placer, soft placement, colocation, host-memory rules, allocator, log and run
// metadata work on them as on a GPU host; only the arithmetic is done by CPU kernels.
//
// One source for TensorFlow 2.12 to 2.21, CPU-only and CUDA-enabled wheels.  It uses the headers
// that ship in the wheel and symbols that libtensorflow_framework.so.2 exports.  Python
// (pytest_tfdevice/simulator) compiles it, loads it right after `import tensorflow`, before
// TensorFlow has created a device, and calls the one function at the end of this file.
//
// The parts: memory.h, device.h, factory.h (the device); kernels.h, layout.h, rnn_math.h,
// rnn_kernel.h, collectives.h, xla.h (what it computes); table.h (which kernels it has).
#include "common.h"

#include "collectives.h"
#include "device.h"
#include "factory.h"
#include "kernels.h"
#include "layout.h"
#include "memory.h"
#include "rnn_kernel.h"
#include "table.h"
#include "xla.h"

namespace tensorflow {
namespace tfdevice {

// What loading did; the order is that of the array which Python reads.
struct Stats {
  int64_t added = 0;        // kernels registered for GPU
  int64_t kept = 0;         // left alone: their code runs on the host as it is
  int64_t unknown = 0;      // in the table, but no such op or dtype in this TensorFlow
  int64_t skipped = 0;      // NCCL, but for its all-reduce
  int64_t cuda_build = 0;   // 1 on the CUDA-enabled wheel
  int64_t real_gpus = 0;    // that TensorFlow's own factory sees (asked for only where told to)
};
constexpr int kStats = sizeof(Stats) / sizeof(int64_t);

bool HasOp(const std::string& name) {
  const OpDef* op = nullptr;
  return OpRegistry::Global()->LookUpOpDef(name, &op).ok();
}

void Register(const KernelDef& kernel, int priority, const char* class_name,
              std::unique_ptr<kernel_factory::OpKernelFactory> factory) {
  auto* copy = new KernelDef(kernel);  // the registrar takes it
  copy->set_device_type(DEVICE_GPU);
  copy->set_priority(priority);
  kernel_factory::OpKernelRegistrar(copy, class_name, std::move(factory));
}

void RegisterDelegate(const KernelDef& kernel, int priority, Stats* stats) {
  if (IsNcclOp(kernel.op()) && !IsAllReduce(kernel.op())) {
    ++stats->skipped;
  } else if (!HasOp(kernel.op())) {
    ++stats->unknown;
  } else {
    Register(kernel, priority, "SimulatedGpuKernel", std::make_unique<DelegatingFactory>());
    ++stats->added;
  }
}

// On a CPU wheel: everything that the CUDA-enabled wheel has and this one lacks.
void RegisterFromTable(const std::vector<TableEntry>& table, const KernelList& live,
                       Stats* stats) {
  std::set<std::string> present;
  for (const KernelDef& kernel : live.kernel()) {
    if (kernel.device_type() == DEVICE_GPU) present.insert(KeyOf(kernel));
  }
  for (const TableEntry& entry : table) {
    if (!entry.cuda_only || present.count(KeyOf(entry.kernel)) != 0) {
      ++stats->kept;
    } else if (!entry.known_types) {
      ++stats->unknown;
    } else {
      RegisterDelegate(entry.kernel, entry.kernel.priority(), stats);
    }
  }
}

// On a CUDA-enabled wheel the kernels are there, but no device that they could run on: each is
// shadowed by its CPU counterpart at a higher priority, but for those whose code runs on the host.
void ShadowCudaKernels(const std::vector<TableEntry>& table, const KernelList& live,
                       Stats* stats) {
  std::set<std::string> on_host;
  for (const TableEntry& entry : table) {
    if (!entry.cuda_only && entry.kernel.device_type() == DEVICE_GPU) {
      on_host.insert(KeyOf(entry.kernel));
    }
  }
  for (const KernelDef& kernel : live.kernel()) {
    if (kernel.device_type() != DEVICE_GPU) continue;
    if (on_host.count(KeyOf(kernel)) != 0) {
      ++stats->kept;
    } else {
      RegisterDelegate(kernel, kernel.priority() + 1, stats);
    }
  }
}

// Kernels that need replacing although they run on the host.
void RegisterSpecial(const KernelList& live, Stats* stats) {
  for (const KernelDef& kernel : live.kernel()) {
    const bool on_gpu = kernel.device_type() == DEVICE_GPU;
    if (IsCollective(kernel.op()) && (on_gpu || kernel.device_type() == "DEFAULT")) {
      RegisterDelegate(kernel, kernel.priority() + 2, stats);
    } else if (on_gpu && kernel.op() == "_XlaCompile") {
      Register(kernel, kernel.priority() + 1, "SimulatedGpuXlaCompile",
               std::make_unique<DidNotCompileFactory>());
    } else if (on_gpu && (kernel.op() == "XlaLaunch" || kernel.op() == "XlaLaunchV2" ||
                          kernel.op() == "_XlaRun")) {
      Register(kernel, kernel.priority() + 1, "SimulatedGpuXlaLaunch",
               std::make_unique<NoXlaFactory>());
    }
  }
}

// How many GPUs TensorFlow's own factory sees.  Initialises CUDA where there is a driver.
int64_t CountRealGpus() {
  DeviceFactory* factory = DeviceFactory::GetFactory(DEVICE_GPU);
  std::vector<std::string> devices;
  if (factory == nullptr || !factory->ListPhysicalDevices(&devices).ok()) return 0;
  return static_cast<int64_t>(devices.size());
}

// Returns an error message, empty where all went well.  Nothing has been changed where it isn't
// empty.
std::string Load(const std::string& table_text, bool check_real_gpus, Stats* stats) {
  // Also true where another copy of this library, built elsewhere, is loaded already.
  if (DeviceFactory::IsPluggableDevice(DEVICE_GPU)) {
    return "TensorFlow has a pluggable device of type GPU already: a plug-in's, or a simulated one";
  }
  std::vector<TableEntry> table;
  const std::string error = ParseTable(table_text, &table);
  if (!error.empty()) return error;
  if (check_real_gpus) {
    stats->real_gpus = CountRealGpus();
    if (stats->real_gpus > 0) return "a real GPU is visible";
  }

  const KernelList live = GetAllRegisteredKernels();
  for (const KernelDef& kernel : live.kernel()) {
    if (kernel.device_type() == DEVICE_GPU && kernel.op() == "MatMul") {
      settings().cuda_build = true;
    }
  }
  stats->cuda_build = settings().cuda_build ? 1 : 0;
  // The wheels register a GPU-to-GPU copy by CUDA streams.  For a device type that is "pluggable"
  // TensorFlow looks for another one, which is this.
  const StatusT status = CopyTensor::Register(DEVICE_GPU, DEVICE_GPU, CopyBetweenGpus,
                                              /*is_pluggable_device=*/true);
  if (!status.ok()) return "CopyTensor::Register: " + std::string(status.ToString());
  if (settings().cuda_build) {
    ShadowCudaKernels(table, live, stats);
  } else {
    RegisterFromTable(table, live, stats);
  }
  RegisterSpecial(live, stats);
  RegisterDefaultCustomKernelCreator(new KernelCreator(GetDefaultCustomKernelCreator()));
  // The CUDA-enabled wheel's own GPU factory has priority 210.
  DeviceFactory::Register(DEVICE_GPU, std::make_unique<SimulatedGpuFactory>(), 220,
                          /*is_pluggable_device=*/true);
  return "";
}

}  // namespace tfdevice
}  // namespace tensorflow

extern "C" {

// Adds `count` GPUs of `bytes` each to this process.  To be called once, before TensorFlow has
// initialised its devices.
//
// `table`, `table_size`: a kernel table, not compressed.  `check_real_gpus`: not 0 to refuse where
// TensorFlow sees a real GPU.  `stats`: filled with up to `stats_size` numbers in the order of
// struct Stats.  `message`: filled with what went wrong, at most `message_size` - 1 bytes.
// Returns 0, or 1 where the message says why nothing was done.
int pytest_tfdevice_simulated_gpu_load(const char* table, size_t table_size, int count,
                                       int64_t bytes, int check_real_gpus, int64_t* stats,
                                       size_t stats_size, char* message, size_t message_size) {
  namespace tfdevice = tensorflow::tfdevice;
  static std::mutex* mutex = new std::mutex;
  static bool loaded = false;
  std::lock_guard<std::mutex> lock(*mutex);
  tfdevice::Stats filled;
  std::string error;
  if (loaded) {
    error = "the simulated GPU is loaded already";
  } else if (count < 1 || bytes < 1) {
    error = "count and bytes must be positive";
  } else {
    tfdevice::settings().count = count;
    tfdevice::settings().bytes_per_gpu = bytes;
    error = tfdevice::Load(std::string(table, table_size), check_real_gpus != 0, &filled);
    loaded = error.empty();
  }
  memcpy(stats, &filled,
         sizeof(int64_t) * std::min<size_t>(stats_size, tfdevice::kStats));
  if (message_size > 0) {
    const size_t size = std::min(error.size(), message_size - 1);
    memcpy(message, error.data(), size);
    message[size] = '\0';
  }
  return error.empty() ? 0 : 1;
}

}  // extern "C"
