// _FusedBatchNormEx: a batch normalisation with a sum and a ReLU behind it, which Grappler makes for
// GPUs (2.12 to 2.15 also where nothing trains).  TensorFlow's CPU kernel knows neither of the two,
// so the CPU kernel of FusedBatchNormV3 runs, and they come after it.
#ifndef TFDEVICE_FUSED_NORM_H_
#define TFDEVICE_FUSED_NORM_H_

#include "common.h"
#include "run_kernel.h"

namespace tensorflow {
namespace tfdevice {

constexpr int kNormInputs = 5;  // x, scale, offset, mean, variance; then the side input

inline bool IsFusedNorm(const NodeDef& node) { return node.op() == "_FusedBatchNormEx"; }

// Makes the node the plain normalisation.
inline void ToPlainNorm(NodeDef* node) {
  node->set_op("FusedBatchNormV3");
  node->mutable_attr()->erase("activation_mode");
  node->mutable_attr()->erase("num_side_inputs");
  const int extra = node->input_size() - kNormInputs;
  if (extra > 0) node->mutable_input()->DeleteSubrange(kNormInputs, extra);
}

template <typename T>
void AddAndActivate(const Tensor* side, bool relu, Tensor* y) {
  auto values = y->flat<T>();
  for (int64_t i = 0; i < values.size(); ++i) {
    if (side != nullptr) values(i) += side->flat<T>()(i);
    if (relu && values(i) < T(0)) values(i) = T(0);
  }
}

class FusedNormKernel : public OpKernel {
 public:
  // `plain`: the kernel of the plain normalisation, in the same layout.
  FusedNormKernel(OpKernelConstruction* construction, std::unique_ptr<OpKernel> plain)
      : OpKernel(construction), plain_(std::move(plain)) {
    std::string activation;
    OP_REQUIRES_OK(construction, construction->GetAttr("activation_mode", &activation));
    relu_ = activation == "Relu";
    OP_REQUIRES(construction, relu_ || activation == "Identity",
                errors::Unimplemented("Simulated GPU: _FusedBatchNormEx with ", activation));
  }

  void Compute(OpKernelContext* context) override {
    std::vector<Tensor> inputs;
    for (int i = 0; i < kNormInputs; ++i) inputs.push_back(context->input(i));
    std::vector<Tensor> outputs(context->num_outputs());
    OP_REQUIRES_OK(context, RunKernel(plain_.get(), context, &inputs, &outputs));
    const Tensor* side = context->num_inputs() > kNormInputs ? &context->input(kNormInputs) : nullptr;
    switch (outputs[0].dtype()) {
      case DT_FLOAT: AddAndActivate<float>(side, relu_, &outputs[0]); break;
      case DT_HALF: AddAndActivate<Eigen::half>(side, relu_, &outputs[0]); break;
      case DT_BFLOAT16: AddAndActivate<bfloat16>(side, relu_, &outputs[0]); break;
      default:
        context->SetStatus(errors::Unimplemented("Simulated GPU: _FusedBatchNormEx of type ",
                                                 DataTypeString(outputs[0].dtype())));
        return;
    }
    for (int i = 0; i < context->num_outputs(); ++i) context->set_output(i, outputs[i]);
  }

 private:
  std::unique_ptr<OpKernel> plain_;
  bool relu_ = false;
};

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_FUSED_NORM_H_
