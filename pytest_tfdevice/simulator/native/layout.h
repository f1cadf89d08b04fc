// Channels-first ("NCHW", "NCDHW") convolution, pooling and normalisation.
//
// TensorFlow implements these layouts only for GPUs.  Here the channels-last CPU kernel computes
// them, between transpositions of its image tensors.
#ifndef TFDEVICE_LAYOUT_H_
#define TFDEVICE_LAYOUT_H_

#include "common.h"
#include "run_kernel.h"

namespace tensorflow {
namespace tfdevice {

// Roles of an op's inputs and outputs, one letter each: T is an image tensor, S a shape or window
// vector, - anything else.  What lies beyond the string's end is "-".
struct LayoutRoles {
  const char* op;
  const char* inputs;
  const char* outputs;
};

// The roles of a node that is in a channels-first layout; null for any other node.
inline const LayoutRoles* ChannelsFirstRoles(const NodeDef& node) {
  static const LayoutRoles roles[] = {
      {"Conv2D", "T-", "T"},
      {"Conv2DBackpropInput", "S-T", "T"},
      {"Conv2DBackpropFilter", "T-T", "-"},
      {"Conv2DBackpropInputV2", "T-T", "T"},
      {"Conv2DBackpropFilterV2", "T-T", "-"},
      {"DepthwiseConv2dNative", "T-", "T"},
      {"DepthwiseConv2dNativeBackpropInput", "S-T", "T"},
      {"DepthwiseConv2dNativeBackpropFilter", "T-T", "-"},
      {"_FusedConv2D", "T-", "T"},
      {"Conv3D", "T-", "T"},
      {"Conv3DBackpropInputV2", "S-T", "T"},
      {"Conv3DBackpropFilterV2", "T-T", "-"},
      {"MaxPool", "T", "T"},
      {"MaxPoolV2", "TSS", "T"},
      {"MaxPoolGrad", "TTT", "T"},
      {"MaxPoolGradV2", "TTTSS", "T"},
      {"MaxPoolGradGrad", "TTT", "T"},
      {"MaxPoolGradGradV2", "TTTSS", "T"},
      {"AvgPool", "T", "T"},
      {"AvgPoolGrad", "ST", "T"},
      {"MaxPool3D", "T", "T"},
      {"MaxPool3DGrad", "TTT", "T"},
      {"MaxPool3DGradGrad", "TTT", "T"},
      {"AvgPool3D", "T", "T"},
      {"AvgPool3DGrad", "ST", "T"},
      {"FusedBatchNorm", "T", "T"},
      {"FusedBatchNormV2", "T", "T"},
      {"FusedBatchNormV3", "T", "T"},
      {"FusedBatchNormGrad", "TT", "T"},
      {"FusedBatchNormGradV2", "TT", "T"},
      {"FusedBatchNormGradV3", "TT", "T"},
      {"SpaceToDepth", "T", "T"},
      {"DepthToSpace", "T", "T"},
  };
  const auto format = node.attr().find("data_format");
  if (format == node.attr().end()) return nullptr;
  if (format->second.s() != "NCHW" && format->second.s() != "NCDHW") return nullptr;
  for (const LayoutRoles& candidate : roles) {
    if (node.op() == candidate.op) return &candidate;
  }
  return nullptr;
}

// Where dimension `d` of a channels-last vector of `n` lies in the channels-first one.
inline int ChannelsFirstIndex(int d, int n) { return d == 0 ? 0 : d + 1 < n ? d + 1 : 1; }

// Rewrites the attributes of a channels-first node to channels-last.
inline void ToChannelsLast(NodeDef* node) {
  auto& attributes = *node->mutable_attr();
  AttrValue& format = attributes["data_format"];
  format.set_s(format.s() == "NCHW" ? "NHWC" : "NDHWC");
  // `per_dim` numbers for each dimension: one, or a pair for explicit paddings.
  const auto permute = [&](const char* name, int per_dim) {
    if (attributes.count(name) == 0) return;
    auto* list = attributes[name].mutable_list()->mutable_i();
    const int n = list->size() / per_dim;
    if (n < 3) return;  // not given, or in a form without dimensions
    const std::vector<int64_t> old(list->begin(), list->end());
    for (int d = 0; d < n; ++d) {
      for (int k = 0; k < per_dim; ++k) {
        list->Set(d * per_dim + k, old[ChannelsFirstIndex(d, n) * per_dim + k]);
      }
    }
  };
  permute("strides", 1);
  permute("ksize", 1);
  permute("dilations", 1);
  permute("explicit_paddings", 2);
}

inline TensorShape TransposedShape(const TensorShape& shape, bool to_last) {
  TensorShape out;
  const int n = shape.dims();
  out.AddDim(shape.dim_size(0));
  if (!to_last) out.AddDim(shape.dim_size(n - 1));
  for (int d = to_last ? 2 : 1; d < (to_last ? n : n - 1); ++d) out.AddDim(shape.dim_size(d));
  if (to_last) out.AddDim(shape.dim_size(1));
  return out;
}

template <typename T>
void TransposeAs(const Tensor& in, Tensor* out, bool to_last) {
  const int64_t batch = in.dim_size(0);
  const int64_t channels = in.dim_size(to_last ? 1 : in.dims() - 1);
  const int64_t pixels = batch * channels != 0 ? in.NumElements() / (batch * channels) : 0;
  const T* source = static_cast<const T*>(DMAHelper::base(&in));
  T* target = static_cast<T*>(DMAHelper::base(out));
  for (int64_t n = 0; n < batch; ++n, source += channels * pixels, target += channels * pixels) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        if (to_last) {
          target[p * channels + c] = source[c * pixels + p];
        } else {
          target[c * pixels + p] = source[p * channels + c];
        }
      }
    }
  }
}

// Between channels-first and channels-last; `out` has the transposed shape.
inline StatusT Transpose(const Tensor& in, Tensor* out, bool to_last) {
  switch (DataTypeSize(in.dtype())) {
    case 1: TransposeAs<uint8_t>(in, out, to_last); return Ok();
    case 2: TransposeAs<uint16_t>(in, out, to_last); return Ok();
    case 4: TransposeAs<uint32_t>(in, out, to_last); return Ok();
    case 8: TransposeAs<uint64_t>(in, out, to_last); return Ok();
    default:
      return errors::Unimplemented("Simulated GPU: a channels-first tensor of type ",
                                   DataTypeString(in.dtype()));
  }
}

template <typename T>
void PermuteVector(const Tensor& in, Tensor* out) {
  const int n = static_cast<int>(in.NumElements());
  for (int d = 0; d < n; ++d) out->flat<T>()(d) = in.flat<T>()(ChannelsFirstIndex(d, n));
}

class ChannelsFirstKernel : public OpKernel {
 public:
  // `inner`: the channels-last CPU kernel.
  ChannelsFirstKernel(OpKernelConstruction* construction, const LayoutRoles* roles,
                      std::unique_ptr<OpKernel> inner)
      : OpKernel(construction), roles_(roles), inner_(std::move(inner)) {}

  void Compute(OpKernelContext* context) override {
    std::vector<Tensor> inputs(context->num_inputs());
    for (int i = 0; i < context->num_inputs(); ++i) {
      OP_REQUIRES_OK(context, ChannelsLastInput(context, i, &inputs[i]));
    }
    std::vector<Tensor> outputs(context->num_outputs());
    OP_REQUIRES_OK(context, RunKernel(inner_.get(), context, &inputs, &outputs));
    for (int i = 0; i < context->num_outputs(); ++i) {
      if (Role(roles_->outputs, i) != 'T' || outputs[i].dims() < 3) {
        context->set_output(i, outputs[i]);
        continue;
      }
      Tensor* output = nullptr;
      OP_REQUIRES_OK(context, context->allocate_output(
                                  i, TransposedShape(outputs[i].shape(), false), &output));
      OP_REQUIRES_OK(context, Transpose(outputs[i], output, false));
    }
  }

 private:
  static char Role(const char* roles, int i) {
    return i < static_cast<int>(strlen(roles)) ? roles[i] : '-';
  }

  StatusT ChannelsLastInput(OpKernelContext* context, int i, Tensor* out) {
    const Tensor& in = context->input(i);
    const char role = Role(roles_->inputs, i);
    if (role == 'T' && in.dims() >= 3) {
      StatusT status = context->allocate_temp(in.dtype(), TransposedShape(in.shape(), true), out);
      return status.ok() ? Transpose(in, out, true) : status;
    }
    if (role == 'S' && in.NumElements() >= 4) {
      *out = Tensor(in.dtype(), in.shape());  // shapes are in host memory
      if (in.dtype() == DT_INT32) {
        PermuteVector<int32_t>(in, out);
      } else {
        PermuteVector<int64_t>(in, out);
      }
      return Ok();
    }
    *out = in;
    return Ok();
  }

  const LayoutRoles* roles_;
  std::unique_ptr<OpKernel> inner_;
};

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_LAYOUT_H_
