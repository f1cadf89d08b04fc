// The factory: lists the simulated GPUs and creates them as TensorFlow's configuration asks.
#ifndef TFDEVICE_FACTORY_H_
#define TFDEVICE_FACTORY_H_

#include <climits>
#include <cstdlib>
#include <unordered_map>

#include "common.h"
#include "device.h"
#include "memory.h"
#include "tensorflow/core/common_runtime/device_factory.h"
#include "tensorflow/core/common_runtime/gpu/gpu_id_manager.h"

namespace tensorflow {
namespace tfdevice {

// GpuIdManager takes ids of types that moved between namespaces from version to version; they are
// deduced here.
template <class Result, class TfId, class PlatformId>
Result InsertIdPair(Result (*insert)(TfId, PlatformId), int tf_id, int platform_id) {
  return insert(TfId(tf_id), PlatformId(platform_id));
}

class SimulatedGpuFactory : public DeviceFactory {
 public:
  StatusT ListPhysicalDevices(std::vector<std::string>* devices) override {
    for (int i = 0; i < settings().count; ++i) {
      devices->push_back("/physical_device:GPU:" + std::to_string(i));
    }
    return Ok();
  }

  StatusT GetDeviceDetails(int, std::unordered_map<std::string, std::string>* details) override {
    (*details)["device_name"] = kDeviceName;
    (*details)["compute_capability"] = kComputeCapability;
    return Ok();
  }

  StatusT CreateDevices(const SessionOptions& options, const std::string& name_prefix,
                        std::vector<std::unique_ptr<Device>>* devices) override {
    const GPUOptions& gpu_options = options.config.gpu_options();
    int wanted = INT_MAX;
    const auto& device_count = options.config.device_count();
    const auto limit = device_count.find("GPU");
    if (limit != device_count.end()) wanted = limit->second;

    std::vector<int> visible;
    StatusT status = VisibleGpus(gpu_options.visible_device_list(), &visible);
    if (!status.ok()) return status;

    int index = 0;
    for (int i = 0; i < static_cast<int>(visible.size()) && i < wanted; ++i) {
      for (const int64_t memory : LogicalMemory(gpu_options, i)) {
        status = CreateDevice(options, name_prefix, index++, visible[i], memory, devices);
        if (!status.ok()) return status;
      }
    }
    return Ok();
  }

 private:
  // GPUOptions.visible_device_list: physical ids, "0,2"; empty for all.
  static StatusT VisibleGpus(const std::string& list, std::vector<int>* visible) {
    if (list.empty()) {
      for (int i = 0; i < settings().count; ++i) visible->push_back(i);
      return Ok();
    }
    for (size_t begin = 0; begin <= list.size();) {
      size_t end = list.find(',', begin);
      if (end == std::string::npos) end = list.size();
      const int id = atoi(list.substr(begin, end - begin).c_str());
      if (id < 0 || id >= settings().count) {
        return errors::InvalidArgument("'visible_device_list' listed an invalid Device id '", id,
                                       "' but visible device count is ", settings().count);
      }
      visible->push_back(id);
      begin = end + 1;
    }
    return Ok();
  }

  // Memory in bytes of each logical device of the i-th visible GPU.
  static std::vector<int64_t> LogicalMemory(const GPUOptions& options, int i) {
    const auto& virtual_devices = options.experimental().virtual_devices();
    std::vector<int64_t> memory;
    if (i < virtual_devices.size()) {
      for (const float megabytes : virtual_devices.Get(i).memory_limit_mb()) {
        memory.push_back(static_cast<int64_t>(megabytes) << 20);
      }
    }
    if (memory.empty()) {
      const double fraction = options.per_process_gpu_memory_fraction();
      const int64_t all = settings().bytes_per_gpu;
      memory.push_back(fraction > 0 ? static_cast<int64_t>(fraction * all) : all);
    }
    return memory;
  }

  static StatusT CreateDevice(const SessionOptions& options, const std::string& name_prefix,
                              int index, int physical, int64_t memory,
                              std::vector<std::unique_ptr<Device>>* devices) {
    // Grappler looks up which physical GPU a GPU:N is, and aborts where it finds none.
    StatusT status = InsertIdPair(GpuIdManager::InsertTfPlatformDeviceIdPair, index, physical);
    if (!status.ok()) return status;
    DeviceLocality locality;
    locality.set_numa_node(0);
    locality.set_bus_id(1);
    const std::string description = "device: " + std::to_string(physical) + ", name: " +
                                    kDeviceName + ", pci bus id: 0000:00:0" +
                                    std::to_string(physical) +
                                    ".0, compute capability: " + kComputeCapability;
    Allocator* allocator = GpuAllocator(index, memory, options.config.gpu_options());
    // What is in force, not what was asked for: a real GPU reports its allocator's limit, too.
    const auto stats = allocator->GetStats();
    const int64_t limit = stats && stats->bytes_limit ? *stats->bytes_limit : memory;
    devices->push_back(std::make_unique<SimulatedGpu>(
        options,
        Device::BuildDeviceAttributes(name_prefix + "/device:GPU:" + std::to_string(index),
                                      DEVICE_GPU, Bytes(limit), locality, description),
        allocator, index));
    return Ok();
  }
};

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_FACTORY_H_
