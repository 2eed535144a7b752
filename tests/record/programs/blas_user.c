// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// A plugin that uses BLAS, as a Python extension does.
double cblas_ddot(int, const double*, int, const double*, int);

int run_blas(void) { return cblas_ddot(12, 0, 1, 0, 1) == 12 ? 0 : 1; }
