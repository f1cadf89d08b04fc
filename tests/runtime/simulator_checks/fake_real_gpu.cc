// Stands for TensorFlow's own GPU factory on a machine with two real GPUs.
#include "tensorflow/core/framework/device.h"
#include "tensorflow/core/framework/device_factory.h"

namespace tensorflow {
namespace {

using StatusT = decltype(std::declval<Device&>().Sync());

class RealGpuFactory : public DeviceFactory {
 public:
  StatusT ListPhysicalDevices(std::vector<std::string>* devices) override {
    devices->push_back("/physical_device:GPU:0");
    devices->push_back("/physical_device:GPU:1");
    return StatusT();
  }
  StatusT CreateDevices(const SessionOptions&, const std::string&,
                        std::vector<std::unique_ptr<Device>>*) override {
    return errors::Internal("a real GPU was to be used");
  }
};

}  // namespace
}  // namespace tensorflow

// Above the CUDA-enabled wheel's own factory (210), below the simulated GPU's (220).
extern "C" void register_fake_real_gpu() {
  tensorflow::DeviceFactory::Register(
      "GPU", std::make_unique<tensorflow::RealGpuFactory>(), 215, /*is_pluggable_device=*/false);
}
