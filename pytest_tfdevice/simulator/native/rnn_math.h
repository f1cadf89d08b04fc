// cuDNN's recurrent layers on the host: forward, and backward through time.
//
// Parameters are in cuDNN's layout: for every layer and direction the input matrices, then the
// recurrent matrices of all gates; after all of those, the input biases, then the recurrent biases.
// The gates of an LSTM are i f g o, those of a GRU r z n.
#ifndef TFDEVICE_RNN_MATH_H_
#define TFDEVICE_RNN_MATH_H_

#include <algorithm>
#include <cmath>

#include "common.h"

namespace tensorflow {
namespace tfdevice {

template <typename S>  // float or double
struct RnnPass {
  using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using Row = Eigen::Matrix<S, 1, Eigen::Dynamic>;
  using Sequence = std::vector<Matrix>;  // one batch x features matrix per time step
  enum Mode { kRelu, kTanh, kLstm, kGru };

  // Set by the caller.
  Mode mode = kTanh;
  int steps = 0, batch = 0, inputs = 0, units = 0, gates = 1, directions = 1, layers = 1;
  // On a CPU wheel Keras arranges a GRU's gates in MIOpen's order, z r n: it asks
  // build_info["is_cuda_build"].  True there.
  bool update_gate_first = false;
  std::vector<int> lengths;  // valid steps of each batch entry
  std::vector<S> params;

  // One step of a layer and direction, kept for the backward pass.
  struct Step {
    Matrix h_before, c_before, c;
    Matrix act;     // batch x gates * units, after activation
    Matrix rec_n;   // GRU: the recurrent part of n, before the reset gate
  };
  struct Run {
    std::vector<Step> steps;
    Matrix h, c;  // final state
  };
  std::vector<Sequence> x;  // [layer] what goes into it; the last is the output
  std::vector<Run> runs;    // [layer * directions + direction]

  int InputsOf(int layer) const { return layer == 0 ? inputs : units * directions; }

  int64_t NumParams() const {
    int64_t n = 0;
    for (int l = 0; l < layers; ++l) {
      n += int64_t{directions} * gates * units * (InputsOf(l) + units + 2);
    }
    return n;
  }

  // Where a layer and direction has its four parts in `params`.
  struct Offsets {
    int64_t w, r, bias_w, bias_r;
  };
  Offsets OffsetsOf(int layer, int direction) const {
    const int64_t rows = int64_t{gates} * units;
    Offsets at;
    at.w = 0;
    for (int l = 0; l < layer; ++l) at.w += directions * rows * (InputsOf(l) + units);
    at.w += direction * rows * (InputsOf(layer) + units);
    at.r = at.w + rows * InputsOf(layer);
    at.bias_w = 0;
    for (int l = 0; l < layers; ++l) at.bias_w += directions * rows * (InputsOf(l) + units);
    at.bias_w += int64_t{layer * directions + direction} * 2 * rows;
    at.bias_r = at.bias_w + rows;
    return at;
  }

  int ResetGate() const { return update_gate_first ? units : 0; }
  int UpdateGate() const { return update_gate_first ? 0 : units; }
  static S Sigmoid(S v) { return S(1) / (S(1) + std::exp(-v)); }

  // `h0`, `c0`: initial states, one per layer and direction.
  void Forward(const Sequence& input, const std::vector<Matrix>& h0,
               const std::vector<Matrix>& c0) {
    x.assign(layers + 1, {});
    x[0] = input;
    runs.assign(layers * directions, {});
    for (int l = 0; l < layers; ++l) {
      x[l + 1].assign(steps, Matrix::Zero(batch, units * directions));
      for (int d = 0; d < directions; ++d) {
        const int id = l * directions + d;
        ForwardRun(l, d, h0[id], mode == kLstm ? c0[id] : Matrix::Zero(batch, units));
      }
    }
  }

  void ForwardRun(int l, int d, Matrix h, Matrix c) {
    const Offsets at = OffsetsOf(l, d);
    const int rows = gates * units;
    Eigen::Map<const Matrix> w(&params[at.w], rows, InputsOf(l)), r(&params[at.r], rows, units);
    Eigen::Map<const Row> bias_w(&params[at.bias_w], rows), bias_r(&params[at.bias_r], rows);
    Run& run = runs[l * directions + d];
    run.steps.resize(steps);
    for (int k = 0; k < steps; ++k) {
      const int t = d == 0 ? k : steps - 1 - k;
      Step& step = run.steps[t];
      step.h_before = h;
      step.c_before = c;
      step.act = Matrix::Zero(batch, rows);
      step.rec_n = Matrix::Zero(batch, units);
      const Matrix a = (x[l][t] * w.transpose()).rowwise() + bias_w;
      const Matrix u = (h * r.transpose()).rowwise() + bias_r;
      for (int b = 0; b < batch; ++b) {
        if (t >= lengths[b]) continue;  // past the end: state as it was, output zero
        for (int j = 0; j < units; ++j) {
          h(b, j) = Cell(a, u, b, j, &step, &c);
          x[l + 1][t](b, d * units + j) = h(b, j);
        }
      }
      step.c = c;
    }
    run.h = h;
    run.c = c;
  }

  // One unit at one step: the new h; `a` and `u` are the input and the recurrent parts.
  S Cell(const Matrix& a, const Matrix& u, int b, int j, Step* step, Matrix* c) const {
    Matrix& act = step->act;
    if (mode == kLstm) {
      const S i = Sigmoid(a(b, j) + u(b, j));
      const S f = Sigmoid(a(b, units + j) + u(b, units + j));
      const S g = std::tanh(a(b, 2 * units + j) + u(b, 2 * units + j));
      const S o = Sigmoid(a(b, 3 * units + j) + u(b, 3 * units + j));
      act(b, j) = i;
      act(b, units + j) = f;
      act(b, 2 * units + j) = g;
      act(b, 3 * units + j) = o;
      (*c)(b, j) = f * step->c_before(b, j) + i * g;
      return o * std::tanh((*c)(b, j));
    }
    if (mode == kGru) {
      const int reset = ResetGate(), update = UpdateGate();
      const S q = Sigmoid(a(b, reset + j) + u(b, reset + j));
      const S z = Sigmoid(a(b, update + j) + u(b, update + j));
      const S rec_n = u(b, 2 * units + j);
      const S n = std::tanh(a(b, 2 * units + j) + q * rec_n);
      step->rec_n(b, j) = rec_n;
      act(b, reset + j) = q;
      act(b, update + j) = z;
      act(b, 2 * units + j) = n;
      return (S(1) - z) * n + z * step->h_before(b, j);
    }
    const S v = a(b, j) + u(b, j);
    act(b, j) = mode == kRelu ? std::max(v, S(0)) : std::tanh(v);
    return act(b, j);
  }

  struct Gradients {
    Sequence x;
    std::vector<Matrix> h0, c0;
    std::vector<S> params;
  };

  // After Forward.  `dy`: gradients of the output; `dh`, `dc`: of the final states.
  Gradients Backward(Sequence dy, const std::vector<Matrix>& dh, const std::vector<Matrix>& dc) {
    Gradients out;
    out.params.assign(params.size(), S(0));
    out.h0.assign(layers * directions, Matrix::Zero(batch, units));
    out.c0 = out.h0;
    for (int l = layers - 1; l >= 0; --l) {
      Sequence dx(steps, Matrix::Zero(batch, InputsOf(l)));
      for (int d = 0; d < directions; ++d) {
        const int id = l * directions + d;
        BackwardRun(l, d, dy, dh[id], mode == kLstm ? dc[id] : Matrix::Zero(batch, units), &dx,
                    &out);
      }
      dy = dx;
    }
    out.x = dy;
    return out;
  }

  void BackwardRun(int l, int d, const Sequence& dy, Matrix gh, Matrix gc, Sequence* dx,
                   Gradients* out) const {
    const Offsets at = OffsetsOf(l, d);
    const int rows = gates * units;
    Eigen::Map<const Matrix> w(&params[at.w], rows, InputsOf(l)), r(&params[at.r], rows, units);
    std::vector<S>& dp = out->params;
    Eigen::Map<Matrix> dw(&dp[at.w], rows, InputsOf(l)), dr(&dp[at.r], rows, units);
    Eigen::Map<Row> dbias_w(&dp[at.bias_w], rows), dbias_r(&dp[at.bias_r], rows);
    for (int k = steps - 1; k >= 0; --k) {
      const int t = d == 0 ? k : steps - 1 - k;
      const Step& step = runs[l * directions + d].steps[t];
      Matrix ga = Matrix::Zero(batch, rows), gu = ga;      // of the input and recurrent parts
      Matrix direct = Matrix::Zero(batch, units);          // of h, past the recurrent matrix
      for (int b = 0; b < batch; ++b) {
        if (t >= lengths[b]) {
          direct.row(b) = gh.row(b);
          continue;
        }
        for (int j = 0; j < units; ++j) {
          const S g = gh(b, j) + dy[t](b, d * units + j);
          CellGradient(step, g, b, j, &gc, &ga, &gu, &direct);
        }
      }
      (*dx)[t] += ga * w;
      dw += ga.transpose() * x[l][t];
      dr += gu.transpose() * step.h_before;
      dbias_w += ga.colwise().sum();
      dbias_r += gu.colwise().sum();
      gh = gu * r + direct;
    }
    out->h0[l * directions + d] = gh;
    out->c0[l * directions + d] = gc;
  }

  // `g`: the gradient of the unit's h at this step.
  void CellGradient(const Step& step, S g, int b, int j, Matrix* gc, Matrix* ga, Matrix* gu,
                    Matrix* direct) const {
    const Matrix& act = step.act;
    if (mode == kLstm) {
      const S i = act(b, j), f = act(b, units + j), n = act(b, 2 * units + j),
              o = act(b, 3 * units + j), tanh_c = std::tanh(step.c(b, j));
      const S dc = (*gc)(b, j) + g * o * (S(1) - tanh_c * tanh_c);
      (*ga)(b, j) = dc * n * i * (S(1) - i);
      (*ga)(b, units + j) = dc * step.c_before(b, j) * f * (S(1) - f);
      (*ga)(b, 2 * units + j) = dc * i * (S(1) - n * n);
      (*ga)(b, 3 * units + j) = g * tanh_c * o * (S(1) - o);
      (*gc)(b, j) = dc * f;
      for (int gate = 0; gate < 4; ++gate) {
        (*gu)(b, gate * units + j) = (*ga)(b, gate * units + j);
      }
    } else if (mode == kGru) {
      const int reset = ResetGate(), update = UpdateGate();
      const S q = act(b, reset + j), z = act(b, update + j), n = act(b, 2 * units + j);
      const S dn = g * (S(1) - z) * (S(1) - n * n);
      const S dz = g * (step.h_before(b, j) - n) * z * (S(1) - z);
      const S dq = dn * step.rec_n(b, j) * q * (S(1) - q);
      (*ga)(b, reset + j) = (*gu)(b, reset + j) = dq;
      (*ga)(b, update + j) = (*gu)(b, update + j) = dz;
      (*ga)(b, 2 * units + j) = dn;
      (*gu)(b, 2 * units + j) = dn * q;
      (*direct)(b, j) = g * z;
    } else {
      const S v = act(b, j);
      const S dv = g * (mode == kRelu ? S(v > 0) : S(1) - v * v);
      (*ga)(b, j) = (*gu)(b, j) = dv;
    }
  }
};

}  // namespace tfdevice
}  // namespace tensorflow
#endif  // TFDEVICE_RNN_MATH_H_
