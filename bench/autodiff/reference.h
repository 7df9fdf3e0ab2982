#pragma once
// The problems of inputs.h and their gradients by hand in C++, all threads. What computes a gradient
// yields the value too.
#include "bench/autodiff/inputs.h"

namespace bench::reference {

double llsq(const Llsq& in, const double* at);
double llsq_gradient(const Llsq& in, const double* at, double* gradient);
double log_sum_exp(const LogSumExp& in, const double* at);
double log_sum_exp_gradient(const LogSumExp& in, const double* at, double* gradient);
double k_means(const KMeans& in, const double* at);
double k_means_gradient(const KMeans& in, const double* at, double* gradient);
double gmm(const Gmm& in, const double* at);
double gmm_gradient(const Gmm& in, const double* at, double* gradient);
double determinant(const Determinant& in, const double* at);
double determinant_gradient(const Determinant& in, const double* at, double* gradient);
double ode(const Ode& in, const double* at);
double ode_gradient(const Ode& in, const double* at, double* gradient);
double bundle(const Bundle& in, const double* at);
double bundle_gradient(const Bundle& in, const double* at, double* gradient);
double lstm(const Lstm& in, const double* at);
double lstm_gradient(const Lstm& in, const double* at, double* gradient);

double layer(const Layer& in, const double* at);
double layer_gradient(const Layer& in, const double* at, double* gradient);
double convolution(const Convolution& in, const double* at);
double convolution_gradient(const Convolution& in, const double* at, double* gradient);

}  // namespace bench::reference
