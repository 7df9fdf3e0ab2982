// Kernels that nvcc compiles for the machine of tests/gpu/ptx; tests/ptx/compiled.cpp knows what they
// compute.
#include <cuda_fp16.h>

#include <cstdint>

/// The sum of each block's words, by shuffles and shared memory.
extern "C" __global__ void block_sums(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t of_warp[32];
  uint32_t v = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int by = 16; by > 0; by /= 2) v += __shfl_down_sync(~0u, v, by);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x != 0) return;
  uint32_t sum = 0;
  for (unsigned w = 0; w < blockDim.x / 32; w++) sum += of_warp[w];
  out[blockIdx.x] = sum;
}

/// Steps of Collatz's map until 1: threads part for long.
extern "C" __global__ void collatz(const uint32_t* in, uint32_t* out) {
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  uint64_t n = in[k];
  uint32_t steps = 0;
  while (n > 1) {
    n = n % 2 ? 3 * n + 1 : n / 2;
    steps++;
  }
  out[k] = steps;
}

/// Integers of all widths, divisions by variables, bits.
extern "C" __global__ void integers(const uint32_t* in, uint32_t* out) {
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const uint32_t a = in[k], b = in[k ^ 1] | 1;
  const int32_t s = int32_t(a);
  const uint64_t wide = uint64_t(a) * b;
  uint32_t v = 0;
  switch (a % 7) {
    case 0: v = a / b; break;
    case 1: v = a % b; break;
    case 2: v = uint32_t(s / int32_t(b >> 3 | 1)); break;
    case 3: v = uint32_t(wide >> 20) ^ __popc(a) ^ __clz(int(b)); break;
    case 4: v = __brev(a) + uint32_t(wide % 1000003); break;
    case 5: v = uint32_t(int8_t(a)) + uint16_t(b) + __byte_perm(a, b, 0x5410); break;
    default: v = __funnelshift_l(a, b, 13) - min(s, int32_t(b));
  }
  atomicAdd(&out[1024], v);
  atomicMax(&out[1025], v);
  out[k] = v;
}

/// Floats, halves and doubles, without contraction.
extern "C" __global__ void floats(const float* in, double* out) {
  const unsigned k = blockIdx.x * blockDim.x + threadIdx.x;
  const float x = in[k], y = in[k ^ 1];
  const double d = double(x) / double(y) + sqrt(fabs(double(x)));
  const float f = __fadd_rn(__fmul_rn(x, y), __fdiv_rn(x, y)) + sqrtf(fabsf(y));
  const int i = int(x * 1000), j = __float2int_rn(y);
  out[k] = d + double(f) + double(i) + double(j) + double(__half2float(__float2half_rn(x))) +
           double(fminf(x, y)) + double(float(0x123456789abull * k)) + fma(d, 3.0, double(f));
}
