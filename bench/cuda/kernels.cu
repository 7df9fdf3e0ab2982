// The kernels of bench/cuda/reference.h, as one would write them without Quern.
#include "bench/cuda/reference.h"

namespace {

using bench::cuda::block;
using bench::cuda::chains;
using bench::cuda::Mpm3d;

__device__ size_t linear_index() { return size_t(blockIdx.x) * blockDim.x + threadIdx.x; }

extern "C" __global__ void nothing_kernel(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) {}

extern "C" __global__ void fill_kernel(float* y, float v, size_t n) {
  size_t i = linear_index();
  if (i < n) y[i] = v;
}

extern "C" __global__ void copy_kernel(const float* __restrict__ x, float* __restrict__ y,
                                       size_t n) {
  size_t i = linear_index();
  if (i < n) y[i] = x[i];
}

extern "C" __global__ void saxpy_kernel(float a, const float* __restrict__ x, float* __restrict__ y,
                                        size_t n) {
  size_t i = linear_index();
  if (i < n) y[i] = a * x[i] + y[i];
}

extern "C" __global__ void triad_kernel(float* __restrict__ a, const float* __restrict__ b,
                                        const float* __restrict__ c, float s, size_t n) {
  size_t i = linear_index();
  if (i < n) a[i] = b[i] + s * c[i];
}

__device__ float warp_sum(float v) {
  for (int lanes = 16; lanes > 0; lanes /= 2) v += __shfl_down_sync(~0u, v, lanes);
  return v;
}

extern "C" __global__ void sum_kernel(const float* __restrict__ x, size_t n, float* total) {
  __shared__ float of_warp[block / 32];
  float v = 0;
  const size_t stride = size_t(gridDim.x) * block;
  const float4* x4 = reinterpret_cast<const float4*>(x);
  for (size_t i = linear_index(); i < n / 4; i += stride) {
    float4 q = x4[i];
    v += (q.x + q.y) + (q.z + q.w);
  }
  if (linear_index() < n % 4) v += x[n / 4 * 4 + linear_index()];
  v = warp_sum(v);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  v = warp_sum(threadIdx.x < block / 32 ? of_warp[threadIdx.x] : 0.0f);
  if (threadIdx.x == 0) atomicAdd(total, v);
}

extern "C" __global__ void stencil_kernel(const float* __restrict__ u, float* __restrict__ v,
                                          int n) {
  const int j = blockIdx.x * blockDim.x + threadIdx.x + 1;
  const int i = blockIdx.y * blockDim.y + threadIdx.y + 1;
  if (i >= n - 1 || j >= n - 1) return;
  const size_t k = size_t(i) * n + j;
  v[k] = 0.25f * (u[k - n] + u[k + n] + u[k - 1] + u[k + 1]);
}

extern "C" __global__ void nbody_kernel(const float* __restrict__ x, const float* __restrict__ y,
                                        const float* __restrict__ z, float* __restrict__ vx,
                                        float* __restrict__ vy, float* __restrict__ vz, float dt,
                                        int n) {
  __shared__ float3 tile[block];
  const int i = int(linear_index());
  const float xi = i < n ? x[i] : 0, yi = i < n ? y[i] : 0, zi = i < n ? z[i] : 0;
  float ax = 0, ay = 0, az = 0;
  for (int start = 0; start < n; start += block) {
    const int mine = start + int(threadIdx.x);
    if (mine < n) tile[threadIdx.x] = make_float3(x[mine], y[mine], z[mine]);
    __syncthreads();
    const int count = min(block, n - start);
#pragma unroll 16
    for (int k = 0; k < count; k++) {
      const float dx = tile[k].x - xi, dy = tile[k].y - yi, dz = tile[k].z - zi;
      const float inv = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-9f);
      const float w = inv * inv * inv;
      ax += dx * w, ay += dy * w, az += dz * w;
    }
    __syncthreads();
  }
  if (i >= n) return;
  vx[i] += dt * ax, vy[i] += dt * ay, vz[i] += dt * az;
}

struct Spline {
  int base[3];
  float f[3], w[3][3];
  __device__ Spline(const Mpm3d& s, int p, float inv_dx) {
    for (int a = 0; a < 3; a++) {
      const float at = s.x[a][p] * inv_dx;
      base[a] = int(at - 0.5f);
      f[a] = at - float(base[a]);
      w[0][a] = 0.5f * (1.5f - f[a]) * (1.5f - f[a]);
      w[1][a] = 0.75f - (f[a] - 1) * (f[a] - 1);
      w[2][a] = 0.5f * (f[a] - 0.5f) * (f[a] - 0.5f);
    }
  }
  __device__ int node(int n, int i, int j, int k) const {
    return ((base[0] + i) * n + base[1] + j) * n + base[2] + k;
  }
};

constexpr float dt = 8e-5f, gravity = 9.8f, young = 400;

extern "C" __global__ void to_grid_kernel(Mpm3d s) {
  const int p = int(linear_index());
  if (p >= s.particles) return;
  const float dx = 1.0f / float(s.n_grid), inv_dx = float(s.n_grid), mass = 0.25f * dx * dx;
  const float stiffness = dt * 4 * young * mass * inv_dx * inv_dx;
  const Spline b(s, p, inv_dx);
  const float pressure = stiffness * (s.j[p] - 1);
  float momentum[3], affine[3][3];
  for (int a = 0; a < 3; a++) {
    momentum[a] = mass * s.v[a][p];
    for (int d = 0; d < 3; d++) affine[a][d] = mass * s.c[3 * a + d][p] - (a == d ? pressure : 0);
  }
#pragma unroll
  for (int i = 0; i < 3; i++)
#pragma unroll
    for (int j = 0; j < 3; j++)
#pragma unroll
      for (int k = 0; k < 3; k++) {
        const float w = b.w[i][0] * b.w[j][1] * b.w[k][2];
        const float away[3] = {(float(i) - b.f[0]) * dx, (float(j) - b.f[1]) * dx,
                               (float(k) - b.f[2]) * dx};
        float* node = s.nodes + 4 * b.node(s.n_grid, i, j, k);
        for (int a = 0; a < 3; a++)
          atomicAdd(node + a, w * (momentum[a] + affine[a][0] * away[0] + affine[a][1] * away[1] +
                                   affine[a][2] * away[2]));
        atomicAdd(node + 3, w * mass);
      }
}

extern "C" __global__ void grid_kernel(Mpm3d s) {
  const int n = s.n_grid, at = int(linear_index());
  if (at >= n * n * n) return;
  float4* nodes = reinterpret_cast<float4*>(s.nodes);
  const float4 node = nodes[at];
  if (node.w <= 0) return;
  float v[3] = {node.x / node.w, node.y / node.w - dt * gravity, node.z / node.w};
  const int index[3] = {at / n / n, at / n % n, at % n};
  for (int a = 0; a < 3; a++) {
    if (index[a] < 3) v[a] = fmaxf(v[a], 0.0f);
    if (index[a] > n - 3) v[a] = fminf(v[a], 0.0f);
  }
  nodes[at] = make_float4(v[0], v[1], v[2], node.w);
}

extern "C" __global__ void to_particles_kernel(Mpm3d s) {
  const int p = int(linear_index());
  if (p >= s.particles) return;
  const float inv_dx = float(s.n_grid);
  const Spline b(s, p, inv_dx);
  const float4* nodes = reinterpret_cast<const float4*>(s.nodes);
  float v[3] = {}, c[3][3] = {};
#pragma unroll
  for (int i = 0; i < 3; i++)
#pragma unroll
    for (int j = 0; j < 3; j++)
#pragma unroll
      for (int k = 0; k < 3; k++) {
        const float w = b.w[i][0] * b.w[j][1] * b.w[k][2];
        const float away[3] = {float(i) - b.f[0], float(j) - b.f[1], float(k) - b.f[2]};
        const float4 node = nodes[b.node(s.n_grid, i, j, k)];
        const float u[3] = {w * node.x, w * node.y, w * node.z};
        for (int a = 0; a < 3; a++) {
          v[a] += u[a];
          for (int d = 0; d < 3; d++) c[a][d] += 4 * inv_dx * u[a] * away[d];
        }
      }
  for (int a = 0; a < 3; a++) {
    s.v[a][p] = v[a];
    s.x[a][p] += dt * v[a];
    for (int d = 0; d < 3; d++) s.c[3 * a + d][p] = c[a][d];
  }
  s.j[p] *= 1 + dt * (c[0][0] + c[1][1] + c[2][2]);
}

extern "C" __global__ void multiply_adds_kernel(int rounds, float* sink) {
  float v[chains];
  for (int c = 0; c < chains; c++) v[c] = float(threadIdx.x + c);
  for (int k = 0; k < rounds; k++)
    for (int c = 0; c < chains; c++) v[c] = fmaf(v[c], 0.999f, 0.5f);
  float sum = 0;
  for (int c = 0; c < chains; c++) sum += v[c];
  if (sum < 0) *sink = sum;  // never, and the compiler cannot know
}

}  // namespace
