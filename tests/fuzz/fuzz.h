/* SPDX-License-Identifier: Apache-2.0 */
/* The entry that every fuzz target has, for libFuzzer and for replay.c. */
#ifndef AQ_FUZZ_H
#define AQ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Returns 0; a finding aborts. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes);

#endif
