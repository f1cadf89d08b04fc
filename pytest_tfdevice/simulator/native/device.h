// The device: what TensorFlow sees as /device:GPU:N, and the copies to, from and between them.
#ifndef TFDEVICE_DEVICE_H_
#define TFDEVICE_DEVICE_H_

#include "common.h"
#include "tensorflow/core/common_runtime/copy_tensor.h"
#include "tensorflow/core/common_runtime/local_device.h"
#include "tensorflow/core/common_runtime/process_state.h"
#include "tensorflow/core/framework/device_attributes.pb.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/public/session_options.h"

namespace tensorflow {
namespace tfdevice {

// "Device memory" is host memory, so every copy is a memcpy, done when it returns.  It refuses
// what a real GPU's copy refuses.
inline StatusT CopyTensorBytes(const Tensor* from, Tensor* to) {
  if (from->TotalBytes() != to->TotalBytes()) {
    return errors::Internal("Simulated GPU: copy of ", from->TotalBytes(), " bytes to a tensor of ",
                            to->TotalBytes());
  }
  if (from->TotalBytes() == 0) return Ok();
  if (DataTypeCanUseMemcpy(from->dtype())) {
    const void* source = DMAHelper::base(from);
    void* target = DMAHelper::base(to);
    if (source != target) memcpy(target, source, from->TotalBytes());
    return Ok();
  }
  if (from->dtype() == DT_RESOURCE) {
    to->flat<ResourceHandle>() = from->flat<ResourceHandle>();
    return Ok();
  }
  return errors::InvalidArgument("Simulated GPU: a tensor of type ", DataTypeString(from->dtype()),
                                 " cannot be copied to or from a GPU");
}

class SimulatedContext : public DeviceContext {
 public:
  void CopyCPUTensorToDevice(const Tensor* cpu, Device*, Tensor* device, StatusCallback done,
                             bool) const override {
    done(CopyTensorBytes(cpu, device));
  }
  void CopyTensorInSameDevice(const Tensor* from, Device*, Tensor* to,
                              StatusCallback done) const override {
    done(CopyTensorBytes(from, to));
  }
  void CopyDeviceTensorToCPU(const Tensor* device, absl::string_view, Device*, Tensor* cpu,
                             StatusCallback done) override {
    done(CopyTensorBytes(device, cpu));
  }
  StatusT ThenExecute(Device*, stream_executor::Stream*, std::function<void()> then) override {
    then();  // there is no stream: whatever it would wait for has already run
    return Ok();
  }
};

// Registered for copies from one simulated GPU to another.
inline void CopyBetweenGpus(DeviceContext*, DeviceContext*, Device*, Device*, AllocatorAttributes,
                            AllocatorAttributes, const Tensor* from, Tensor* to, int,
                            StatusCallback done) {
  done(CopyTensorBytes(from, to));
}

class SimulatedGpu : public LocalDevice {
 public:
  SimulatedGpu(const SessionOptions& options, const DeviceAttributes& attributes,
               Allocator* allocator, int index)
      : LocalDevice(options, attributes), allocator_(allocator), context_(new SimulatedContext) {
    // TensorFlow takes a device for an accelerator, and honours its kernels' host-memory
    // arguments, where it has this.  The null stream is what XLA can't live with: see xla.h.
    accelerator_.stream = nullptr;
    accelerator_.default_context = context_;
    accelerator_.event_mgr = nullptr;
    accelerator_.gpu_id = index;
    set_tensorflow_accelerator_device_info(&accelerator_);
  }
  ~SimulatedGpu() override { context_->Unref(); }

  Allocator* GetAllocator(AllocatorAttributes attributes) override {
    return attributes.on_host() ? ProcessState::singleton()->GetCPUAllocator(0) : allocator_;
  }
  Allocator* GetScopedAllocator(AllocatorAttributes attributes, int64_t) override {
    return GetAllocator(attributes);
  }

  // Constants of a graph: parsed on the host, then moved into the GPU's memory.
  StatusT MakeTensorFromProto(const TensorProto& proto, const AllocatorAttributes attributes,
                              Tensor* tensor) override {
    Tensor parsed(proto.dtype());
    if (!parsed.FromProto(cpu_allocator(), proto)) {
      return errors::InvalidArgument("Cannot parse tensor from proto: ", proto.DebugString());
    }
    if (attributes.on_host() || !DataTypeCanUseMemcpy(parsed.dtype())) {
      *tensor = std::move(parsed);
      return Ok();
    }
    Tensor copy(GetAllocator(attributes), parsed.dtype(), parsed.shape());
    if (!copy.IsInitialized() && parsed.TotalBytes() > 0) {
      return errors::ResourceExhausted("OOM when allocating tensor of shape ",
                                       parsed.shape().DebugString(), " and type ",
                                       DataTypeString(parsed.dtype()), " on ", name());
    }
    StatusT status = CopyTensorBytes(&parsed, &copy);
    *tensor = std::move(copy);
    return status;
  }

  void CopyTensorInSameDevice(const Tensor* from, Tensor* to, const DeviceContext*,
                              StatusCallback done) override {
    done(CopyTensorBytes(from, to));
  }
  StatusT Sync() override { return Ok(); }
  StatusT TryGetDeviceContext(DeviceContext** context) override {
    context_->Ref();
    *context = context_;
    return Ok();
  }

 private:
  Allocator* allocator_;  // lives as long as the process
  SimulatedContext* context_;
  AcceleratorDeviceInfo accelerator_;
};

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_DEVICE_H_
