/* SPDX-FileCopyrightText: 2026 The Fulcrum authors
 * SPDX-License-Identifier: Apache-2.0
 *
 * The executor from C: an op by name on plain memory, a result that may stay on the device, and the reason for a place.
 */
#include <fulcrum/fulcrum_c.h>
#include <stdio.h>

#define CHECK(call)                                                          \
  if ((call) != 0) {                                                         \
    fprintf(stderr, "%s\n%s\n", fulcrum_error_text(), fulcrum_error_hint()); \
    return 1;                                                                \
  }

int main(void) {
  enum { kCount = 1000 };
  float x[kCount], y[kCount];
  for (int i = 0; i < kCount; ++i) x[i] = (float)(i - 500) / 100;

  fulcrum_executor* exec = NULL;
  CHECK(fulcrum_executor_create("strict=0", &exec));

  const fulcrum_value plain[] = {{.name = "x", .memory = x, .count = kCount},
                                 {.name = "out", .memory = y, .count = kCount}};
  CHECK(fulcrum_run(exec, "sigmoid", NULL, plain, 2, NULL));
  printf("sigmoid(0) = %.3f\n", y[500]);

  fulcrum_buffer* kept = NULL;
  CHECK(fulcrum_buffer_create(exec, "f32", kCount, &kept));
  const fulcrum_value mixed[] = {{.name = "x", .memory = x, .count = kCount},
                                 {.name = "out", .buffer = kept}};
  CHECK(fulcrum_run(exec, "leaky_relu", "al=0.1", mixed, 2, NULL));
  CHECK(fulcrum_buffer_read(kept, 0, kCount, y));
  printf("leaky_relu(-5) = %.2f\n", y[0]);

  char* text = NULL;
  CHECK(fulcrum_explain(exec, "matmul", "M=512,N=512,K=512", 0, &text));
  printf("%s", text);
  fulcrum_text_free(text);

  /* Errors are numbers with a sentence. */
  if (fulcrum_run(exec, "sigmoid", "n=999", plain, 2, NULL) != 0) printf("%s\n", fulcrum_error_text());

  fulcrum_buffer_destroy(kept);
  fulcrum_executor_destroy(exec);
  return 0;
}
