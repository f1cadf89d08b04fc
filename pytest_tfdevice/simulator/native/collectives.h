// Collective ops (MirroredStrategy's all-reduce among them), without NCCL.
#ifndef TFDEVICE_COLLECTIVES_H_
#define TFDEVICE_COLLECTIVES_H_

#include <algorithm>

#include "common.h"

namespace tensorflow {
namespace tfdevice {

// NCCL talks to CUDA devices.  Its all-reduce is implemented below, since MirroredStrategy uses it
// by default in TF 2.12 to 2.15 at least; the other NCCL ops are not registered for simulated GPUs.
inline bool IsNcclOp(const std::string& op) { return op.find("Nccl") != std::string::npos; }
inline bool IsAllReduce(const std::string& op) { return op == "NcclAllReduce"; }

// Ops that choose their implementation when run, by an attribute: the CUDA-enabled wheel would
// choose NCCL on its own for "auto".
inline bool IsCollective(const std::string& op) { return op.compare(0, 10, "Collective") == 0; }

// Makes a collective node use TensorFlow's ring algorithm, which works by device-to-device copies.
inline void AvoidNccl(NodeDef* node) {
  const auto hint = node->mutable_attr()->find("communication_hint");
  if (hint != node->mutable_attr()->end()) hint->second.set_s("ring");
}

// One of the `num_devices` nodes of an all-reduce.  The last of them to arrive reduces for all.
class AllReduceKernel : public AsyncOpKernel {
 public:
  explicit AllReduceKernel(OpKernelConstruction* construction) : AsyncOpKernel(construction) {
    OP_REQUIRES_OK(construction, construction->GetAttr("reduction", &reduction_));
    OP_REQUIRES_OK(construction, construction->GetAttr("num_devices", &num_devices_));
    OP_REQUIRES_OK(construction, construction->GetAttr("shared_name", &shared_name_));
  }

  void ComputeAsync(OpKernelContext* context, DoneCallback done) override {
    Participant self{context, done, context->input(0), nullptr};
    OP_REQUIRES_OK_ASYNC(context, context->allocate_output(0, self.input.shape(), &self.output),
                         done);
    std::vector<Participant> all;
    {
      static auto* mutex = new std::mutex;
      static auto* waiting = new std::map<std::string, std::vector<Participant>>;
      std::lock_guard<std::mutex> lock(*mutex);
      // Nodes meet by the name that they share, in the same step and round of a loop.
      const FrameAndIter round = context->frame_iter();
      const std::string key = shared_name_ + ";" + std::to_string(context->step_id()) + ";" +
                              std::to_string(round.frame_id) + ":" +
                              std::to_string(round.iter_id);
      std::vector<Participant>& here = (*waiting)[key];
      here.push_back(self);
      if (static_cast<int>(here.size()) < num_devices_) return;
      all.swap(here);
      waiting->erase(key);
    }
    const StatusT status = Reduce(all);
    for (const Participant& participant : all) {
      if (!status.ok()) participant.context->SetStatus(status);
      participant.done();  // the context may be gone after this
    }
  }

 private:
  struct Participant {
    OpKernelContext* context;
    DoneCallback done;
    Tensor input;
    Tensor* output;
  };

  StatusT Reduce(const std::vector<Participant>& all) const {
    for (const Participant& participant : all) {
      if (participant.input.shape() != all[0].input.shape()) {
        return errors::InvalidArgument("NcclAllReduce ", shared_name_, " of tensors of shape ",
                                       all[0].input.shape().DebugString(), " and ",
                                       participant.input.shape().DebugString());
      }
    }
    switch (all[0].input.dtype()) {
      case DT_HALF: ReduceAs<Eigen::half>(all); return Ok();
      case DT_FLOAT: ReduceAs<float>(all); return Ok();
      case DT_DOUBLE: ReduceAs<double>(all); return Ok();
      case DT_INT32: ReduceAs<int32_t>(all); return Ok();
      case DT_INT64: ReduceAs<int64_t>(all); return Ok();
      default:
        return errors::Unimplemented("Simulated GPU: NcclAllReduce of type ",
                                     DataTypeString(all[0].input.dtype()));
    }
  }

  template <typename T>
  void ReduceAs(const std::vector<Participant>& all) const {
    const int64_t n = all[0].input.NumElements();
    const T* first = static_cast<const T*>(DMAHelper::base(&all[0].input));
    std::vector<T> result(first, first + n);
    for (size_t i = 1; i < all.size(); ++i) {
      const T* more = static_cast<const T*>(DMAHelper::base(&all[i].input));
      for (int64_t k = 0; k < n; ++k) result[k] = Combine(result[k], more[k]);
    }
    for (const Participant& participant : all) {
      std::copy(result.begin(), result.end(),
                static_cast<T*>(DMAHelper::base(participant.output)));
    }
  }

  template <typename T>
  T Combine(T a, T b) const {
    if (reduction_ == "min") return b < a ? b : a;
    if (reduction_ == "max") return a < b ? b : a;
    if (reduction_ == "prod") return a * b;
    return a + b;
  }

  std::string reduction_, shared_name_;
  int num_devices_ = 0;
};

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_COLLECTIVES_H_
