// Collective ops (MirroredStrategy's all-reduce among them).
#ifndef TFDEVICE_COLLECTIVES_H_
#define TFDEVICE_COLLECTIVES_H_

#include "common.h"

namespace tensorflow {
namespace tfdevice {

// NCCL talks to CUDA devices.  Its own ops are not registered for simulated GPUs at all.
inline bool IsNcclOp(const std::string& op) { return op.find("Nccl") != std::string::npos; }

// Ops that choose their implementation when run, by an attribute: the CUDA-enabled wheel would
// choose NCCL on its own for "auto".
inline bool IsCollective(const std::string& op) { return op.compare(0, 10, "Collective") == 0; }

// Makes a collective node use TensorFlow's ring algorithm, which works by device-to-device copies.
inline void AvoidNccl(NodeDef* node) {
  const auto hint = node->mutable_attr()->find("communication_hint");
  if (hint != node->mutable_attr()->end()) hint->second.set_s("ring");
}

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_COLLECTIVES_H_
