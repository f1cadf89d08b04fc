// Running one kernel inside another.
#ifndef TFDEVICE_RUN_KERNEL_H_
#define TFDEVICE_RUN_KERNEL_H_

#include "common.h"

namespace tensorflow {
namespace tfdevice {

// Runs another kernel on other tensors, in a context that is otherwise the same.
inline StatusT RunKernel(OpKernel* inner, OpKernelContext* context, std::vector<Tensor>* inputs,
                         std::vector<Tensor>* outputs) {
  const int n = static_cast<int>(inputs->size());
  gtl::InlinedVector<TensorValue, 4> values(n);
  gtl::InlinedVector<AllocatorAttributes, 4> input_attributes(n);
  for (int i = 0; i < n; ++i) {
    values[i] = TensorValue(&(*inputs)[i]);
    input_attributes[i] = context->input_alloc_attr(i);
  }
  std::vector<AllocatorAttributes> output_attributes(context->num_outputs());
  for (int i = 0; i < context->num_outputs(); ++i) {
    output_attributes[i] = context->output_alloc_attr(i);
  }
  OpKernelContext::Params params;
  params.step_id = context->step_id();
  params.op_kernel = inner;
  params.device = context->device();
  params.output_attr_array = output_attributes.data();
  params.resource_manager = context->resource_manager();
  params.session_state = context->session_state();
  params.cancellation_manager = context->cancellation_manager();
  // A span in TF 2.12 and later, a pointer to the vector before; both convert from this.
  params.inputs = decltype(params.inputs)(values);
  params.input_alloc_attrs = decltype(params.input_alloc_attrs)(input_attributes);
  params.op_device_context = context->op_device_context();
  params.function_library = context->function_library();
  params.runner = context->runner();
  params.frame_iter = context->frame_iter();
  OpKernelContext inner_context(&params, context->num_outputs());
  inner->Compute(&inner_context);
  for (int i = 0; i < context->num_outputs(); ++i) {
    if (Tensor* output = inner_context.mutable_output(i)) {
      (*outputs)[i] = *output;
      delete inner_context.release_output(i).tensor;
    }
  }
  return inner_context.status();
}

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_RUN_KERNEL_H_
