// XLA on a simulated GPU: functions marked jit_compile=True run uncompiled.
//
// XLA's kernels dereference the GPU's StreamExecutor stream, which a simulated GPU does not have.
// Placement is the same either way: a compiled function is one unit on one device.
#ifndef TFDEVICE_XLA_H_
#define TFDEVICE_XLA_H_

#include "common.h"
#include "kernels.h"
#include "tensorflow/core/framework/function.h"

namespace tensorflow {

// Exported by libtensorflow_framework, declared in headers that pull in the whole runtime.
const CustomKernelCreator* GetDefaultCustomKernelCreator();
void RegisterDefaultCustomKernelCreator(CustomKernelCreator* creator);

namespace tfdevice {

// _XlaCompile, which auto-clustering (TF_XLA_FLAGS=--tf_xla_auto_jit) puts into graphs.  Says that
// nothing was compiled, upon which the graph takes its own uncompiled branch.
class DidNotCompileKernel : public OpKernel {
 public:
  explicit DidNotCompileKernel(OpKernelConstruction* construction) : OpKernel(construction) {}
  void Compute(OpKernelContext* context) override {
    Tensor key(DT_STRING, TensorShape({})), compiled(DT_BOOL, TensorShape({}));
    key.scalar<tstring>()() = "";
    compiled.scalar<bool>()() = false;
    context->set_output(0, key);
    context->set_output(1, compiled);
  }
};

class DidNotCompileFactory : public kernel_factory::OpKernelFactory {
 public:
  OpKernel* Create(OpKernelConstruction* construction) override {
    return new DidNotCompileKernel(construction);
  }
};

// XlaLaunch and _XlaRun: reached only by graphs that were rewritten for XLA elsewhere.
class NoXlaFactory : public kernel_factory::OpKernelFactory {
 public:
  OpKernel* Create(OpKernelConstruction* construction) override {
    return new UnimplementedKernel(construction, "XLA needs a CUDA device");
  }
};

// Decides what runs for a call of a function that must be compiled.  For a simulated GPU that is an
// ordinary function call; any other device is left to the creator that was there before.
class KernelCreator : public CustomKernelCreator {
 public:
  explicit KernelCreator(const CustomKernelCreator* original) {
    // RegisterDefaultCustomKernelCreator deletes the one before.  That one (XlaKernelCreator) has
    // no state, so a copy of its vtable pointer does everything that it did.
    if (original != nullptr) memcpy(&vtable_, static_cast<const void*>(original), sizeof(vtable_));
  }

  bool CanCreateKernel(const FunctionLibraryRuntime& library,
                       const std::shared_ptr<const NodeProperties>& properties) const override {
    return vtable_ != nullptr && Original()->CanCreateKernel(library, properties);
  }

  StatusT CreateKernel(FunctionLibraryRuntime* library,
                       const std::shared_ptr<const NodeProperties>& properties,
                       std::unique_ptr<OpKernel>* kernel) const override {
    Device* device = library->device();
    if (device == nullptr || device->device_type() != DEVICE_GPU) {
      return Original()->CreateKernel(library, properties, kernel);
    }
    NodeDef call = UncompiledCall(*properties);
    const OpDef* op = nullptr;
    StatusT status = OpRegistry::Global()->LookUpOpDef(call.op(), &op);
    if (!status.ok()) return status;
    auto call_properties = std::make_shared<const NodeProperties>(
        op, std::move(call), properties->input_types, properties->output_types);
    OpKernel* created = nullptr;
    status = CreateOpKernel(DeviceType(DEVICE_GPU), device,
                            device->GetAllocator(AllocatorAttributes()), library,
                            device->resource_manager(), call_properties,
                            library->graph_def_version(), &created);
    kernel->reset(created);
    return status;
  }

 private:
  // A StatefulPartitionedCall of the function that the node calls: by its attribute "f", or by
  // being named as the node's op.
  static NodeDef UncompiledCall(const NodeProperties& properties) {
    const NodeDef& node = properties.node_def;
    NodeDef call;
    call.set_name(node.name());
    call.set_op("StatefulPartitionedCall");
    call.set_device(node.device());
    for (const auto& input : node.input()) call.add_input(input);
    AddNodeAttr("Tin", properties.input_types, &call);
    AddNodeAttr("Tout", properties.output_types, &call);
    auto& attributes = *call.mutable_attr();
    const auto function = node.attr().find("f");
    if (function != node.attr().end() && function->second.has_func()) {
      attributes["f"] = function->second;
    } else {
      auto* called = attributes["f"].mutable_func();
      called->set_name(node.op());
      for (const auto& attribute : node.attr()) {
        if (attribute.first.empty() || attribute.first[0] != '_') {
          (*called->mutable_attr())[attribute.first] = attribute.second;
        }
      }
    }
    for (const char* name : {"config", "config_proto", "executor_type"}) {
      attributes[name].set_s("");
    }
    return call;
  }

  const CustomKernelCreator* Original() const {
    return reinterpret_cast<const CustomKernelCreator*>(&vtable_);
  }

  void* vtable_ = nullptr;
};

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_XLA_H_
