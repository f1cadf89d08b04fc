// The kernels of a simulated GPU: each is the op's CPU kernel, created when TensorFlow asks for the
// GPU one.  Nothing is wrapped at run time, so the cost per op is the CPU's.
#ifndef TFDEVICE_KERNELS_H_
#define TFDEVICE_KERNELS_H_

#include "collectives.h"
#include "common.h"
#include "fused_norm.h"
#include "layout.h"
#include "rnn_kernel.h"

namespace tensorflow {
namespace tfdevice {

// Stands for an op that nothing here can compute.  It is placed like any other and fails only when
// run: it may sit in a branch that never is.
class UnimplementedKernel : public OpKernel {
 public:
  UnimplementedKernel(OpKernelConstruction* construction, const std::string& reason)
      : OpKernel(construction), reason_(reason) {}
  void Compute(OpKernelContext* context) override {
    context->SetStatus(errors::Unimplemented("Simulated GPU: op ", def().op(), " (node ", name(),
                                             ") is on the GPU but cannot run here: ", reason_));
  }

 private:
  std::string reason_;
};

// The CPU kernel for the node that is under construction, of its first `num_inputs` inputs.
inline StatusT CreateCpuKernel(OpKernelConstruction* construction, NodeDef node, int num_inputs,
                               OpKernel** kernel) {
  const OpDef* op = nullptr;
  StatusT status = OpRegistry::Global()->LookUpOpDef(node.op(), &op);
  if (!status.ok()) return status;
  DataTypeVector inputs, outputs;
  for (int i = 0; i < num_inputs; ++i) {
    inputs.push_back(construction->input_type(i));
  }
  for (int i = 0; i < construction->num_outputs(); ++i) {
    outputs.push_back(construction->output_type(i));
  }
  auto properties =
      std::make_shared<const NodeProperties>(op, std::move(node), inputs, outputs);
  return CreateOpKernel(DEVICE_CPU, construction->device(),
                        construction->device()->GetAllocator(AllocatorAttributes()),
                        construction->function_library(), construction->resource_manager(),
                        properties, construction->graph_def_version(), kernel);
}

// The kernel was built with the CPU registration's memory types, all of them host memory.  The
// runtime reads from the kernel itself where its tensors are, so it gets those that the GPU
// registration declares; the vectors are private, but reachable through their getters.
inline void SetMemoryTypes(const MemoryTypeVector& of_kernel, const MemoryTypeSlice& wanted) {
  auto& types = const_cast<MemoryTypeVector&>(of_kernel);
  for (size_t i = 0; i < types.size() && i < wanted.size(); ++i) types[i] = wanted[i];
}

class DelegatingFactory : public kernel_factory::OpKernelFactory {
 public:
  OpKernel* Create(OpKernelConstruction* construction) override {
    const std::string& op = construction->def().op();
    if (IsCudnnRnn(op)) return new RnnKernel(construction);
    if (IsAllReduce(op)) return new AllReduceKernel(construction);
    NodeDef node = construction->def();
    // The label of a GPU kernel ("cudnn", "eigen"), which no CPU kernel has.
    node.mutable_attr()->erase("_kernel");
    AvoidNccl(&node);
    const bool fused_norm = IsFusedNorm(node);
    if (fused_norm) ToPlainNorm(&node);
    const LayoutRoles* channels_first = ChannelsFirstRoles(node);
    if (channels_first != nullptr) ToChannelsLast(&node);
    OpKernel* kernel = nullptr;
    const int num_inputs = fused_norm ? kNormInputs : construction->num_inputs();
    const StatusT status = CreateCpuKernel(construction, std::move(node), num_inputs, &kernel);
    if (!status.ok()) {
      return new UnimplementedKernel(construction,
                                     "it has a CUDA kernel, but no CPU kernel to compute it "
                                     "with: " + std::string(status.ToString()));
    }
    if (channels_first != nullptr) {
      kernel = new ChannelsFirstKernel(construction, channels_first,
                                       std::unique_ptr<OpKernel>(kernel));
    }
    if (fused_norm) return new FusedNormKernel(construction, std::unique_ptr<OpKernel>(kernel));
    if (channels_first != nullptr) return kernel;
    SetMemoryTypes(kernel->input_memory_types(), construction->input_memory_types());
    SetMemoryTypes(kernel->output_memory_types(), construction->output_memory_types());
    return kernel;
  }
};

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_KERNELS_H_
