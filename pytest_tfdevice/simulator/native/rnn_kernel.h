// CudnnRNN, CudnnRNNV2, CudnnRNNV3 and their gradients, which exist only for GPUs.  Keras' LSTM and
// GRU layers run them wherever there is a GPU.  The arithmetic is in rnn_math.h.
#ifndef TFDEVICE_RNN_KERNEL_H_
#define TFDEVICE_RNN_KERNEL_H_

#include "common.h"
#include "rnn_math.h"

namespace tensorflow {
namespace tfdevice {

inline bool IsCudnnRnn(const std::string& op) {
  static const auto* ops = new std::set<std::string>{
      "CudnnRNN",         "CudnnRNNV2",         "CudnnRNNV3",
      "CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"};
  return ops->count(op) != 0;
}

class RnnKernel : public OpKernel {
 public:
  explicit RnnKernel(OpKernelConstruction* construction) : OpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("rnn_mode", &mode_));
    OP_REQUIRES_OK(construction, construction->GetAttr("direction", &direction_));
    const std::string& op = construction->def().op();
    backprop_ = op.find("Backprop") != std::string::npos;
    version_ = op.find("V3") != std::string::npos   ? 3
               : op.find("V2") != std::string::npos ? 2
                                                    : 1;
    if (version_ < 3) return;
    OP_REQUIRES_OK(construction, construction->GetAttr("time_major", &time_major_));
    int projections = 0;
    OP_REQUIRES_OK(construction, construction->GetAttr("num_proj", &projections));
    OP_REQUIRES(construction, projections == 0,
                errors::Unimplemented("Simulated GPU: CudnnRNN with num_proj"));
  }

  void Compute(OpKernelContext* context) override {
    switch (context->input(0).dtype()) {
      case DT_DOUBLE: Run<double, double>(context); break;
      case DT_FLOAT: Run<float, float>(context); break;
      case DT_HALF: Run<Eigen::half, float>(context); break;
      case DT_BFLOAT16: Run<bfloat16, float>(context); break;
      default:
        context->SetStatus(errors::Unimplemented("Simulated GPU: CudnnRNN of type ",
                                                 DataTypeString(context->input(0).dtype())));
    }
  }

 private:
  // T is the tensors' type, S the one to compute in.
  template <typename T, typename S>
  void Run(OpKernelContext* context) {
    using Pass = RnnPass<S>;
    Pass pass;
    OP_REQUIRES_OK(context, (Configure<T, S>(context, &pass)));
    const Tensor &h = context->input(1), &c = context->input(2);
    pass.Forward(ReadSequence<T, S>(pass, context->input(0), pass.inputs),
                 ReadState<T, S>(pass, h), ReadState<T, S>(pass, c));
    const TensorShape c_shape = pass.mode == Pass::kLstm ? c.shape() : TensorShape({0});
    if (!backprop_) {
      std::vector<typename Pass::Matrix> h_out, c_out;
      for (const auto& run : pass.runs) {
        h_out.push_back(run.h);
        c_out.push_back(run.c);
      }
      OP_REQUIRES_OK(context, (WriteSequence<T, S>(context, pass, 0, pass.x[pass.layers],
                                                   pass.units * pass.directions)));
      OP_REQUIRES_OK(context, (WriteState<T, S>(context, pass, 1, h_out, h.shape())));
      OP_REQUIRES_OK(context, (WriteState<T, S>(context, pass, 2, c_out, c_shape)));
      // What cuDNN keeps for its backward pass; here that computes forward again.
      Tensor* reserve = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(3, TensorShape({0}), &reserve));
      if (version_ >= 2) {
        OP_REQUIRES_OK(context, context->allocate_output(4, TensorShape({0}), &reserve));
      }
      return;
    }
    // Inputs: x h c params [lengths] y h_out c_out dy dh dc …
    const int first = version_ == 3 ? 8 : 7;
    const auto gradients = pass.Backward(
        ReadSequence<T, S>(pass, context->input(first), pass.units * pass.directions),
        ReadState<T, S>(pass, context->input(first + 1)),
        ReadState<T, S>(pass, context->input(first + 2)));
    OP_REQUIRES_OK(context, (WriteSequence<T, S>(context, pass, 0, gradients.x, pass.inputs)));
    OP_REQUIRES_OK(context, (WriteState<T, S>(context, pass, 1, gradients.h0, h.shape())));
    OP_REQUIRES_OK(context, (WriteState<T, S>(context, pass, 2, gradients.c0, c_shape)));
    Tensor* params = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(3, context->input(3).shape(), &params));
    for (size_t i = 0; i < gradients.params.size(); ++i) {
      params->flat<T>()(i) = T(gradients.params[i]);
    }
  }

  template <typename T, typename S>
  StatusT Configure(OpKernelContext* context, RnnPass<S>* pass) {
    using Pass = RnnPass<S>;
    const Tensor &x = context->input(0), &h = context->input(1), &params = context->input(3);
    if (x.dims() != 3 || h.dims() != 3) {
      return errors::InvalidArgument("RNN input and input_h must be 3-D, got ",
                                     x.shape().DebugString(), " and ", h.shape().DebugString());
    }
    pass->mode = mode_ == "lstm"       ? Pass::kLstm
                 : mode_ == "gru"      ? Pass::kGru
                 : mode_ == "rnn_relu" ? Pass::kRelu
                                       : Pass::kTanh;
    pass->gates = pass->mode == Pass::kLstm ? 4 : pass->mode == Pass::kGru ? 3 : 1;
    pass->update_gate_first = !settings().cuda_build;
    pass->directions = direction_ == "bidirectional" ? 2 : 1;
    pass->steps = x.dim_size(time_major_ ? 0 : 1);
    pass->batch = x.dim_size(time_major_ ? 1 : 0);
    pass->inputs = x.dim_size(2);
    pass->layers = h.dim_size(time_major_ ? 0 : 1) / pass->directions;
    pass->units = h.dim_size(2);
    pass->lengths.assign(pass->batch, pass->steps);
    if (version_ == 3) {
      const Tensor& lengths = context->input(4);
      if (lengths.NumElements() != pass->batch) {
        return errors::InvalidArgument("sequence_lengths has ", lengths.NumElements(),
                                       " elements for a batch of ", pass->batch);
      }
      for (int b = 0; b < pass->batch; ++b) pass->lengths[b] = lengths.flat<int32_t>()(b);
    }
    if (params.NumElements() != pass->NumParams()) {
      return errors::InvalidArgument("Simulated GPU: CudnnRNN has ", params.NumElements(),
                                     " parameters, expected ", pass->NumParams());
    }
    pass->params.resize(params.NumElements());
    for (int64_t i = 0; i < params.NumElements(); ++i) pass->params[i] = S(params.flat<T>()(i));
    return Ok();
  }

  // Where (outer, b) of a [n, batch, width] or, batch major, [batch, n, width] tensor begins.
  template <typename S>
  int64_t Begin(const RnnPass<S>& pass, int outer, int n, int b, int width) const {
    return (time_major_ ? int64_t{outer} * pass.batch + b : int64_t{b} * n + outer) * width;
  }

  template <typename T, typename S>
  std::vector<typename RnnPass<S>::Matrix> Read(const RnnPass<S>& pass, const Tensor& tensor,
                                                int n, int width) const {
    std::vector<typename RnnPass<S>::Matrix> out(
        n, RnnPass<S>::Matrix::Zero(pass.batch, width));
    // An empty tensor stands for zeros: the c of a GRU, a gradient that nobody needs.
    if (tensor.NumElements() < int64_t{n} * pass.batch * width) return out;
    const T* data = tensor.flat<T>().data();
    for (int i = 0; i < n; ++i) {
      for (int b = 0; b < pass.batch; ++b) {
        const T* row = data + Begin(pass, i, n, b, width);
        for (int j = 0; j < width; ++j) out[i](b, j) = S(row[j]);
      }
    }
    return out;
  }
  template <typename T, typename S>
  auto ReadSequence(const RnnPass<S>& pass, const Tensor& tensor, int width) const {
    return Read<T, S>(pass, tensor, pass.steps, width);
  }
  template <typename T, typename S>
  auto ReadState(const RnnPass<S>& pass, const Tensor& tensor) const {
    return Read<T, S>(pass, tensor, pass.layers * pass.directions, pass.units);
  }

  template <typename T, typename S>
  StatusT Write(OpKernelContext* context, const RnnPass<S>& pass, int output,
                const std::vector<typename RnnPass<S>::Matrix>& values, int width,
                const TensorShape& shape) const {
    Tensor* tensor = nullptr;
    StatusT status = context->allocate_output(output, shape, &tensor);
    const int n = static_cast<int>(values.size());
    if (!status.ok() || tensor->NumElements() < int64_t{n} * pass.batch * width) return status;
    T* data = tensor->flat<T>().data();
    for (int i = 0; i < n; ++i) {
      for (int b = 0; b < pass.batch; ++b) {
        T* row = data + Begin(pass, i, n, b, width);
        for (int j = 0; j < width; ++j) row[j] = T(values[i](b, j));
      }
    }
    return status;
  }
  template <typename T, typename S>
  StatusT WriteSequence(OpKernelContext* context, const RnnPass<S>& pass, int output,
                        const std::vector<typename RnnPass<S>::Matrix>& values,
                        int width) const {
    const int outer = time_major_ ? pass.steps : pass.batch;
    const int inner = time_major_ ? pass.batch : pass.steps;
    return Write<T, S>(context, pass, output, values, width, TensorShape({outer, inner, width}));
  }
  template <typename T, typename S>
  StatusT WriteState(OpKernelContext* context, const RnnPass<S>& pass, int output,
                     const std::vector<typename RnnPass<S>::Matrix>& values,
                     const TensorShape& shape) const {
    return Write<T, S>(context, pass, output, values, pass.units, shape);
  }

  std::string mode_, direction_;
  bool backprop_ = false;
  bool time_major_ = true;
  int version_ = 1;
};

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_RNN_KERNEL_H_
