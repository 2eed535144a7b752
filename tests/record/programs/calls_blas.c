// SPDX-FileCopyrightText: 2026 The Fulcrum authors
// SPDX-License-Identifier: Apache-2.0
//
// Calls BLAS functions of a library; ends with 0 when every result is right.
void cblas_sgemm(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*,
                 int);
double cblas_ddot(int, const double*, int, const double*, int);

int main(void) {
  float c = 0;
  double sum = 0;
  for (int i = 0; i < 10; ++i) cblas_sgemm(101, 111, 111, 4, 5, 6, 1, 0, 4, 0, 5, 0, &c, 4);
  for (int i = 0; i < 7; ++i) cblas_sgemm(101, 111, 111, 40, 50, 60, 1, 0, 4, 0, 5, 0, &c, 4);
  for (int i = 0; i < 3; ++i) sum += cblas_ddot(1000, 0, 1, 0, 1);
  return c == 10 * 15 + 7 * 150 && sum == 3000 ? 0 : 1;
}
